"""The backward pass with everything: hooks, inputs=, captured gradients, create_graph, anomaly mode.

Nodes run latest first, as in engine.passes; a leaf's turn comes as soon as every node that leads to it has run, which
takes a count of the edges to it beforehand.
"""
from __future__ import annotations

from heapq import heappop, heappush
from typing import Any, Iterable

import numpy as np

from ..arrays import quiet
from ..graph.errors import freed_error
from ..graph.modes import set_grad, state
from ..graph.node import EXTRA, ORDER, SAVED, SPEC, BackwardCall, Extra, Output, edges_of
from ..ops.fit import fit, fit_tensor
from ..ops.unpack import check_output
from ..tensor import Tensor, wrap
from .accumulate import accumulate_raw, accumulate_tensor


def reachable(nodes: Iterable[list]) -> list[list]:
    """The nodes and all they lead to."""
    seen: dict[int, list] = {node[ORDER]: node for node in nodes}
    stack = list(seen.values())
    while stack:
        for edge in edges_of(stack.pop()):
            if edge.__class__ is Output:
                edge = edge.node
            if edge.__class__ is list and edge[ORDER] not in seen:
                seen[edge[ORDER]] = edge
                stack.append(edge)
    return list(seen.values())


_EMPTY = ()


class Targets:
    """What a pass with inputs= aims at: the nodes to run on the way, and where to catch gradients."""

    def __init__(self, inputs: list[Tensor], roots: list[list], accumulate: bool) -> None:
        self.accumulate = accumulate
        self.results: list[Any] = [None] * len(inputs)
        self.caught: dict[Any, list[tuple[int, int]]] = {}  # node order or leaf -> [(output number, result index)]
        self.running: set[int] = set()  # orders of the nodes to run
        self.leaves: set[Tensor] = set()
        for index, tensor in enumerate(inputs):
            node = tensor._node
            if tensor.is_leaf:
                self.leaves.add(tensor)
                self.caught.setdefault(tensor, []).append((0, index))
                continue
            owner = node.node if node.__class__ is Output else node
            if accumulate:
                self.running.add(owner[ORDER])
            else:
                self.caught.setdefault(owner[ORDER], []).append((tensor.output_nr, index))
        for node in sorted(reachable(roots), key=lambda one: -one[ORDER]):  # earliest made first
            if any(self.wants(edge) for edge in edges_of(node)):
                self.running.add(node[ORDER])

    def wants(self, edge: Any) -> bool:
        """Whether a gradient should be sent along this edge."""
        if edge is None:
            return False
        if edge.__class__ is Output:
            edge = edge.node
        if edge.__class__ is list:
            return edge[ORDER] in self.running or edge[ORDER] in self.caught
        return edge in self.leaves


class FullPass:
    """One pass. `tensors`: gradients are tensors and get a history of their own (create_graph)."""

    def __init__(self, call: BackwardCall, retain: bool, tensors: bool, targets: Targets | None) -> None:
        self.call = call
        self.retain = retain
        self.tensors = tensors
        self.targets = targets
        self.heap: list[int] = []
        self.pending: dict[int, list] = {}
        self.leaves: dict[Any, list] = {}
        self.waiting: dict[Any, int] = {}  # leaf -> how many edges to it have yet to deliver

    def run(self) -> None:
        enabled = state.grad
        set_grad(self.tensors)
        token = quiet.hush(quiet.SILENT)
        try:
            self.count_edges()
            for leaf in [one for one in self.leaves if not self.waiting.get(one)]:
                self.finish_leaf(leaf)
            while self.heap:
                node, gradients, _ = self.pending.pop(heappop(self.heap))
                self.run_node(node, gradients)
        finally:
            quiet.unhush(token)
            set_grad(enabled)

    def count_edges(self) -> None:
        targets = self.targets
        for node in reachable(entry[0] for entry in self.pending.values()):
            if targets is not None and node[ORDER] not in targets.running:
                continue
            for edge in edges_of(node):
                if isinstance(edge, Tensor):
                    self.waiting[edge] = self.waiting.get(edge, 0) + 1

    def settle(self) -> None:
        """After an error in the short pass: the leaves that were ready get their gradients, the others do not."""
        self.count_edges()
        for leaf, holder in self.leaves.items():
            if not self.waiting.get(leaf):
                accumulate_raw(leaf, holder)

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
                    targets.results[index] = self.as_tensor(values[number])
            if not runs:
                return
        if extra is not None:
            values = self.call_tensor_hooks(extra, values)
            if extra.pre_hooks:
                values = self.call_pre_hooks(extra, values)
        saved = node[SAVED]
        if saved.__class__ is BackwardCall:
            raise freed_error(node)
        made = self.compute(node, values if several else values[0], saved)
        results = made if made.__class__ is tuple else (made,)
        if extra is not None and extra.post_hooks:
            results = self.call_post_hooks(extra, results, values)
        if not self.retain and saved is not _EMPTY:
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
                        raise RuntimeError(f"Function '{spec.node_name(node)}' returned nan values in its {i}th output.")
            return made
        except Exception:
            _warn_of_origin(node)
            raise

    def distribute(self, edges: tuple, results: tuple) -> None:
        targets = self.targets
        ready = []
        for edge, gradient in zip(edges, results, strict=True):
            if edge is None or (targets is not None and not targets.wants(edge)):
                continue
            if isinstance(edge, Tensor):
                self.waiting[edge] -= 1
                if gradient is not None:
                    self.add_to_leaf(edge, gradient)
                if not self.waiting[edge]:
                    ready.append(edge)
            elif gradient is not None:
                self.add_to_node(edge, gradient)
        for leaf in ready:
            if leaf in self.leaves:
                self.finish_leaf(leaf)

    def add_to_leaf(self, leaf: Tensor, gradient: Any) -> None:
        holder = self.leaves.get(leaf)
        if holder is None:
            self.leaves[leaf] = [gradient, False]
        else:
            holder[0] = self.add(holder[0], gradient)

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
            waiting[1] = gradient if waiting[1] is None else self.add(waiting[1], gradient)
        else:
            waiting[1][number] = gradient if waiting[1][number] is None else self.add(waiting[1][number], gradient)

    def add(self, first: Any, second: Any) -> Any:
        return first + second

    # -- leaves ------------------------------------------------------------------------------------------------------
    def finish_leaf(self, leaf: Tensor) -> None:
        holder = self.leaves.pop(leaf)
        gradient = holder[0]
        if leaf._hooks:
            gradient = self.call_hooks(leaf._hooks, gradient)
        if gradient is None:
            return
        targets = self.targets
        if targets is not None and not targets.accumulate:
            meta = (leaf._shape, leaf._array.dtype)
            caught = self.as_tensor(fit_tensor(gradient, meta) if self.tensors else fit(gradient, meta))
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
            accumulate_raw(leaf, holder)
        for hook in list((leaf._accumulate_hooks or {}).values()):
            if hook(leaf) is not None:
                raise RuntimeError("Tensor post accumulate grad hooks should return None.")
        if extra is not None and extra.post_hooks:
            for hook in list(extra.post_hooks.values()):
                hook((), (leaf._grad,))

    # -- hooks -------------------------------------------------------------------------------------------------------
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
                _check_hook_result(given, returned)
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
                if len(replaced) != len(values):
                    raise RuntimeError(f"hook has returned an incorrect number of values (got {len(replaced)}, but expected "
                                       f"{len(values)})")
                values = [self.from_tensor(v) for v in replaced]
        return values

    def call_post_hooks(self, extra: Extra, results: tuple, values: list) -> tuple:
        outputs = tuple(None if v is None else self.as_tensor(v) for v in values)
        for hook in list((extra.post_hooks or {}).values()):
            returned = hook(tuple(None if r is None else self.as_tensor(r) for r in results), outputs)
            if returned is not None:
                replaced = returned if isinstance(returned, tuple) else (returned,)
                if len(replaced) != len(results):
                    raise RuntimeError(f"hook has returned an incorrect number of values (got {len(replaced)}, but expected "
                                       f"{len(results)})")
                results = tuple(self.from_tensor(r) for r in replaced)
        return results


def _check_hook_result(given: Tensor, returned: Any) -> None:
    if not isinstance(returned, Tensor):
        raise TypeError(f"expected Variable, but hook returned '{type(returned).__name__}'")
    if returned._shape != given._shape:
        raise RuntimeError(f"hook has changed the size of value: got {list(returned._shape)}, but expected {list(given._shape)}")
    if returned._array.dtype != given._array.dtype:
        raise RuntimeError(f"hook has changed the type of value (was {given.dtype} got {returned.dtype})")


def _warn_of_origin(node: list) -> None:
    """Anomaly mode's report: the stack that made the node at which backward failed."""
    import traceback
    import warnings
    name = node[SPEC].node_name(node)
    extra = node[EXTRA]
    if extra is None or extra.anomaly is None:
        text = (f"Error detected in {name}. No forward pass information available. Enable detect anomaly during forward pass "
                "for more information.")
    else:
        stack = "".join(traceback.format_list(extra.anomaly))
        text = f"Error detected in {name}. Traceback of forward call that caused the error:\n{stack}"
    warnings.warn(text, UserWarning, stacklevel=2)
