"""The backward pass with everything: hooks, inputs=, captured gradients, create_graph, anomaly mode.

Nodes run latest first, as in engine.passes; a leaf's turn comes as soon as every node that leads to it has run, which
takes a count of the edges to it beforehand.
"""
from __future__ import annotations

import threading
from collections.abc import Iterable
from heapq import heappop, heappush
from operator import itemgetter
from typing import Any

import numpy as np

from ..arrays import quiet
from ..graph import facts
from ..graph.errors import freed_error
from ..graph.modes import set_grad, state
from ..graph.node import EDGES, EXTRA, ORDER, SAVED, SPEC, BackwardCall, Extra, Output, edges_of
from ..ops.fit import fit, fit_tensor
from ..ops.unpack import check_output
from ..tensor import Tensor, wrap
from ..tensor.visible import gather, spread
from .accumulate import accumulate_all, accumulate_tensor


def reachable(nodes: Iterable[list]) -> list[list]:
    """The nodes and all they lead to."""
    seen: dict[int, list] = {node[ORDER]: node for node in nodes}
    found = list(seen.values())
    for node in found:  # which grows as it is read
        edges = node[EDGES]
        for edge in edges if edges.__class__ is tuple else (edges,):
            if edge.__class__ is Output:
                edge = edge.node
            if edge.__class__ is list and edge[ORDER] not in seen:
                seen[edge[ORDER]] = edge
                found.append(edge)
    return found


def leads_only_to(roots: list[list], leaves: set) -> bool:
    """Whether every way through the graph ends at one of these leaves, and none at nothing."""
    seen = {node[ORDER] for node in roots}
    found = list(roots)
    for node in found:  # which grows as it is read
        edges = node[EDGES]
        ends = True
        for edge in edges if edges.__class__ is tuple else (edges,):
            if edge.__class__ is Output:
                edge = edge.node
            if edge.__class__ is list:
                ends = False
                if edge[ORDER] not in seen:
                    seen.add(edge[ORDER])
                    found.append(edge)
            elif edge is not None:
                if edge not in leaves:
                    return False
                ends = False
        if ends:
            return False
    return True


_EMPTY = ()
_by_order = itemgetter(ORDER)


class Targets:
    """What a pass with inputs= aims at: the nodes to run on the way, and where to catch gradients."""

    def __init__(self, inputs: list[Tensor], roots: list[list], accumulate: bool) -> None:
        self.accumulate = accumulate
        self.results: list[Any] = [None] * len(inputs)
        self.caught: dict[Any, list[tuple[int, int]]] = {}  # node order or leaf -> [(output number, result index)]
        self.running: set[int] = set()  # orders of the nodes to run
        self.leaves: set[Tensor] = set()
        wanted: set[int] = set()
        self.wanted = wanted  # orders of the nodes to send gradients to: to run, or to catch at
        for index, tensor in enumerate(inputs):
            node = tensor._node
            if tensor.is_leaf:
                self.leaves.add(tensor)
                self.caught.setdefault(tensor, []).append((0, index))
                continue
            owner = node.node if node.__class__ is Output else node
            wanted.add(owner[ORDER])
            if accumulate:
                self.running.add(owner[ORDER])
            else:
                self.caught.setdefault(owner[ORDER], []).append((tensor.output_nr, index))
        self.nodes = reachable(roots)
        self.nodes.sort(key=_by_order, reverse=True)  # earliest made first
        wants = self.wants
        for node in self.nodes:
            edges = node[EDGES]
            for edge in edges if edges.__class__ is tuple else (edges,):
                if edge[ORDER] in wanted if edge.__class__ is list else wants(edge):
                    self.running.add(node[ORDER])
                    wanted.add(node[ORDER])
                    break

    def wants(self, edge: Any) -> bool:
        """Whether a gradient should be sent along this edge."""
        if edge is None:
            return False
        if edge.__class__ is Output:
            edge = edge.node
        return edge[ORDER] in self.wanted if edge.__class__ is list else edge in self.leaves


class _Running(threading.local):
    """The passes that are running in this thread, the innermost last."""

    def __init__(self) -> None:
        self.passes: list[FullPass] = []


running = _Running()


class FullPass:
    """One pass. `tensors`: gradients are tensors and get a history of their own (create_graph)."""

    def __init__(self, call: BackwardCall, retain: bool, tensors: bool, targets: Targets | None) -> None:
        self.call = call
        self.retain = retain
        self.records = tensors
        # Inside a dual level gradients are tensors too, since they have tangents.
        self.tensors = tensors or state.forward_level >= 0
        self.targets = targets
        self.for_inputs = targets is not None  # whether the call named inputs
        self.heap: list[int] = []
        self.pending: dict[int, list] = {}
        self.leaves: dict[Any, list] = {}
        self.waiting: dict[Any, int] = {}  # leaf -> how many edges to it have yet to deliver
        self.reached: set[int] = set()  # orders of the nodes that get a gradient
        self.shown: dict[int, tuple] = {}  # id of an array -> the array, the tensor it was handed out as

    def run(self) -> None:
        enabled = state.grad
        set_grad(self.records)
        token = quiet.hush(quiet.SILENT)
        running.passes.append(self)
        facts.passing.sites.append(facts.CallSite(self.call.code, self.call.instruction))
        try:
            self.count_edges()
            for leaf in [one for one in self.leaves if not self.waiting.get(one)]:
                self.finish_leaf(leaf)
            heap, pending, targets = self.heap, self.pending, self.targets
            while heap:
                node, gradients, _ = pending.pop(heappop(heap))
                spec, order, saved, _, edges, _, _, extra = node
                if extra is not None or saved.__class__ is BackwardCall or state.anomaly or (
                        targets is not None and (order not in targets.running or order in targets.caught)):
                    self.run_node(node, gradients)
                    continue
                made = (spec.run_tensors if self.tensors else spec.run)(gradients, saved, node)
                if not self.retain and saved is not _EMPTY:
                    node[SAVED] = self.call
                saved = None
                self.distribute(edges if edges.__class__ is tuple else (edges,), made if made.__class__ is tuple else (made,))
                made = gradients = None
        finally:
            running.passes.pop()
            facts.passing.sites.pop()
            quiet.unhush(token)
            set_grad(enabled)

    def reaches_leaf(self, leaf: Tensor) -> bool:
        """Whether this pass brings a gradient to a leaf. (For nodes, `reached` says it.)"""
        return (leaf in self.waiting or leaf in self.leaves) and (self.targets is None or self.targets.wants(leaf))

    def count_edges(self) -> None:
        targets, waiting = self.targets, self.waiting
        nodes = reachable(entry[0] for entry in self.pending.values()) if targets is None else targets.nodes
        for node in nodes:
            if targets is not None and node[ORDER] not in targets.running:
                if node[ORDER] in targets.caught:
                    self.reached.add(node[ORDER])
                continue
            self.reached.add(node[ORDER])
            edges = node[EDGES]
            for edge in edges if edges.__class__ is tuple else (edges,):
                if edge.__class__ is not list and isinstance(edge, Tensor):
                    waiting[edge] = waiting.get(edge, 0) + 1

    def settle(self) -> None:
        """After an error in the short pass: the leaves that were ready get their gradients, the others do not."""
        self.count_edges()
        accumulate_all({leaf: holder for leaf, holder in self.leaves.items() if not self.waiting.get(leaf)})

    # -- one node ----------------------------------------------------------------------------------------------------
    def run_node(self, node: list, gradients: Any) -> None:
        extra: Extra | None = node[EXTRA]
        spec = node[SPEC]
        several = gradients.__class__ is list
        values = gradients if several else [gradients]
        targets = self.targets
        runs = targets is None or node[ORDER] in targets.running
        if targets is not None:
            if not runs and extra is not None:
                values = self.call_tensor_hooks(extra, values)
            for number, index in targets.caught.get(node[ORDER], ()):
                if values[number] is not None:
                    targets.results[index] = self.hand_out(values[number])
            if not runs:
                return
        if extra is not None:
            values = self.call_tensor_hooks(extra, values)
            if extra.pre_hooks:
                values = self.call_pre_hooks(extra, values)
        saved = node[SAVED]
        if saved.__class__ is BackwardCall and not getattr(spec, "runs_freed", False):
            raise freed_error(node)
        made = self.compute(node, values if several else values[0], saved)
        results = made if made.__class__ is tuple else (made,)
        if extra is not None and extra.post_hooks:
            if targets is not None:
                results = tuple(one if targets.wants(edge) else None
                                for one, edge in zip(results, edges_of(node), strict=True))
            results = gather(node, self.call_post_hooks(extra, spread(node, results), values))
        if not self.retain and saved is not _EMPTY and saved.__class__ is not BackwardCall:
            node[SAVED] = self.call
        del saved
        self.distribute(edges_of(node), results)


    def compute(self, node: list, gradient: Any, saved: Any) -> Any:
        spec = node[SPEC]
        if not state.anomaly:
            check_output(node)
            return (spec.run_tensors if self.tensors else spec.run)(gradient, saved, node)
        try:
            check_output(node)
            made = (spec.run_tensors if self.tensors else spec.run)(gradient, saved, node)
            if state.anomaly_check_nan:
                for i, one in enumerate(made if made.__class__ is tuple else (made,)):
                    array = one._array if isinstance(one, Tensor) else one
                    if array is not None and array.dtype.kind in "fc" and np.isnan(array).any():
                        raise RuntimeError(f"Function '{spec.node_name(node)}' returned nan values in its {i}th "
                                           "output.")
            return made
        except Exception:
            _warn_of_origin(node)
            raise

    def distribute(self, edges: tuple, results: tuple) -> None:
        targets, pending = self.targets, self.pending
        ready: list[Tensor] = []
        for edge, gradient in zip(edges, results, strict=True):
            if edge.__class__ is list:
                key = edge[ORDER]
                if gradient is None or (targets is not None and key not in targets.wanted):
                    continue
                entry = pending.get(key)
                if entry is None:
                    pending[key] = [edge, gradient, False]
                    heappush(self.heap, key)
                else:
                    entry[1] = entry[1] + gradient
            elif edge is None or (targets is not None and not targets.wants(edge)):
                continue
            elif edge.__class__ is Output:
                if gradient is not None:
                    self.add_to_node(edge, gradient)
            else:
                self.waiting[edge] -= 1
                if gradient is not None:
                    self.add_to_leaf(edge, gradient)
                if not self.waiting[edge]:
                    ready.append(edge)
        for leaf in ready:
            if leaf in self.leaves:
                self.finish_leaf(leaf)

    def add_to_leaf(self, leaf: Tensor, gradient: Any) -> None:
        holder = self.leaves.get(leaf)
        if holder is None:
            self.leaves[leaf] = [gradient, False]
        else:
            holder[0] = holder[0] + gradient

    def add_to_node(self, edge: Any, gradient: Any) -> None:
        number = None
        if edge.__class__ is Output:
            edge, number = edge.node, edge.number
        key = edge[ORDER]
        waiting = self.pending.get(key)
        if waiting is None:
            empty = None if number is None else [None] * edge[SPEC].output_count(edge)
            waiting = self.pending[key] = [edge, empty, False]
            heappush(self.heap, key)
        if number is None:
            waiting[1] = gradient if waiting[1] is None else waiting[1] + gradient
        else:
            waiting[1][number] = gradient if waiting[1][number] is None else waiting[1][number] + gradient

    # -- leaves ------------------------------------------------------------------------------------------------------
    def finish_leaf(self, leaf: Tensor) -> None:
        holder = self.leaves.pop(leaf)
        gradient = holder[0]
        if leaf._hooks:
            gradient = self.call_hooks(leaf._hooks, gradient)
        if gradient is None:
            return
        targets = self.targets
        if targets is not None and leaf not in targets.leaves:
            return
        if targets is not None and not targets.accumulate:
            meta = (leaf._shape, leaf._array.dtype)
            caught = self.hand_out(fit_tensor(gradient, meta) if self.tensors else fit(gradient, meta))
            for _, index in targets.caught[leaf]:
                targets.results[index] = caught
            return
        extra: Extra | None = leaf._accumulator_extra
        if extra is not None and extra.pre_hooks:
            gradient = self.call_pre_hooks(extra, [gradient])[0]
        if self.tensors:
            accumulate_tensor(leaf, gradient)
        else:
            holder[0] = gradient
            del gradient
            accumulate_all({leaf: holder})
        for hook in list((leaf._accumulate_hooks or {}).values()):
            if hook(leaf) is not None:
                raise RuntimeError("Tensor post accumulate grad hooks should return None.")
        if extra is not None and extra.post_hooks:
            for hook in list(extra.post_hooks.values()):
                hook((), (leaf._grad,))

    # -- hooks -------------------------------------------------------------------------------------------------------
    def hand_out(self, gradient: Any) -> Tensor:
        """A gradient as grad() returns it: one array is one tensor, whatever it is the gradient of."""
        if isinstance(gradient, Tensor):
            return gradient
        known = self.shown.get(id(gradient))
        if known is None:  # the gradient is kept beside its tensor, so that its id stays its own
            known = self.shown[id(gradient)] = (gradient, self.as_tensor(gradient))
        return known[1]

    def as_tensor(self, gradient: Any) -> Tensor:
        return gradient if isinstance(gradient, Tensor) else wrap(np.asarray(gradient))

    def from_tensor(self, gradient: Tensor | None) -> Any:
        return gradient if gradient is None or self.tensors else gradient._array

    def call_hooks(self, hooks: dict, gradient: Any) -> Any:
        """Tensor hooks in order; each may replace the gradient."""
        for hook in list(hooks.values()):
            given = self.as_tensor(gradient)
            returned = hook(given)
            if returned is not None:
                _check_hook_result(hook, given, returned)
                gradient = self.from_tensor(returned)
            elif given is not gradient:
                gradient = self.from_tensor(given)
        return gradient

    def call_tensor_hooks(self, extra: Extra, values: list) -> list:
        values = list(values)
        for number, hooks in (extra.tensor_hooks or {}).items():
            if values[number] is not None:
                values[number] = self.call_hooks(hooks, values[number])
        for number, reference in (extra.retained or {}).items():
            tensor = reference()
            if tensor is not None and values[number] is not None:
                gradient = self.as_tensor(values[number])
                if tensor._grad is not None:
                    tensor._grad = tensor._grad + gradient  # type: ignore[operator]
                else:
                    tensor._grad = gradient if self.tensors else wrap(np.array(gradient._array))
        return values

    def call_pre_hooks(self, extra: Extra, values: list) -> list:
        for hook in list((extra.pre_hooks or {}).values()):
            returned = hook(tuple(None if v is None else self.as_tensor(v) for v in values))
            if returned is not None:
                replaced = returned if isinstance(returned, tuple) else (returned,)
                _check_count(hook, replaced, len(values))
                values = [self.from_tensor(v) for v in replaced]
        return values

    def call_post_hooks(self, extra: Extra, results: tuple, values: list) -> tuple:
        outputs = tuple(None if v is None else self.as_tensor(v) for v in values)
        for hook in list((extra.post_hooks or {}).values()):
            returned = hook(tuple(None if r is None else self.as_tensor(r) for r in results), outputs)
            if returned is not None:
                replaced = returned if isinstance(returned, tuple) else (returned,)
                _check_count(hook, replaced, len(results))
                results = tuple(self.from_tensor(r) for r in replaced)
        return results


facts.pass_code = FullPass.run.__code__


def _check_hook_result(hook: Any, given: Tensor, returned: Any) -> None:
    name = getattr(hook, "__name__", None) or type(hook).__name__
    if not isinstance(returned, Tensor):
        raise TypeError(f"expected Variable, but hook returned '{type(returned).__name__}'")
    if returned._shape != given._shape:
        raise RuntimeError(f"hook '{name}' has changed the size of value: got {list(returned._shape)}, but expected "
                           f"{list(given._shape)}")
    if returned._array.dtype != given._array.dtype:
        raise RuntimeError(f"hook '{name}' has changed the type of value (was {given.dtype} got {returned.dtype})")


def _check_count(hook: Any, returned: tuple, expected: int) -> None:
    if len(returned) != expected:
        name = getattr(hook, "__name__", None) or type(hook).__name__
        raise RuntimeError(f"hook '{name}' has returned an incorrect number of values (got {len(returned)}, but "
                           f"expected {expected})")


def _warn_of_origin(node: list) -> None:
    """Anomaly mode's report: the stack that made the node at which backward failed."""
    import traceback
    import warnings
    name = node[SPEC].node_name(node)
    extra = node[EXTRA]
    if extra is None or extra.anomaly is None:
        text = (f"Error detected in {name}. No forward pass information available. Enable detect anomaly during "
                "forward pass for more information.")
    else:
        stack = "".join(traceback.format_list(extra.anomaly))
        text = f"Error detected in {name}. Traceback of forward call that caused the error:\n{stack}"
    warnings.warn(text, UserWarning, stacklevel=2)
