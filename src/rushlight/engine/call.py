"""backward() and grad(): their checks at the door, and the pass that fits."""
from __future__ import annotations

import warnings
from collections.abc import Sequence
from heapq import heappop
from itertools import count
from sys import _getframe
from typing import Any

import numpy as np

from ..arrays import dtypes
from ..graph import facts
from ..graph.modes import state
from ..graph.node import LEAF, SPEC, UNRECORDED, BackwardCall, Output
from ..ops.fit import fit
from ..tensor import Tensor, wrap
from ..tensor.visible import GradientEdge
from .full import FullPass, Targets, leads_only_to, running
from .passes import Handover, run_nodes, short_pass

_next_call = count(1).__next__
_warned_of_cycle = False


def backward(tensors: Any, grad_tensors: Any = None, retain_graph: bool | None = None, create_graph: bool = False,
             grad_variables: Any = None, inputs: Any = None) -> None:
    """Compute the gradients of the tensors with respect to the leaves, and add them to the leaves' .grad."""
    if grad_variables is not None:
        warnings.warn("`grad_variables` is deprecated. Use `grad_tensors` instead.", FutureWarning, stacklevel=2)
        if grad_tensors is not None:
            raise RuntimeError("`grad_tensors` and `grad_variables` (deprecated) arguments both passed to "
                               "`backward()`: the second is an old name of the first.")
        grad_tensors = grad_variables
    targets_given = None
    if inputs is not None:
        targets_given = [inputs] if isinstance(inputs, Tensor) else _stand_ins(inputs)
        if not targets_given:
            raise RuntimeError("`inputs` argument to `backward()` cannot be empty.")
    roots = (tensors,) if isinstance(tensors, Tensor) else tuple(_stand_ins(tensors, grad_tensors))
    gradients = _gradients(roots, _as_sequence(grad_tensors, len(roots)), False)
    if create_graph:
        _warn_of_cycle()
    _run("backward", roots, gradients, create_graph if retain_graph is None else bool(retain_graph), create_graph, targets_given,
         accumulate=True)


def grad(outputs: Any, inputs: Any, grad_outputs: Any = None, retain_graph: bool | None = None, create_graph: bool = False,
         only_inputs: bool = True, allow_unused: bool | None = None, is_grads_batched: bool = False,
         materialize_grads: bool = False) -> tuple:
    """The gradients of the outputs with respect to the inputs, as a tuple; nothing is accumulated."""
    if materialize_grads and allow_unused is False:
        raise ValueError("Expected allow_unused to be True or not passed when materialize_grads=True, but got: "
                         "allow_unused=False.")
    roots = (outputs,) if isinstance(outputs, Tensor) else tuple(_stand_ins(outputs, grad_outputs))
    wanted = [inputs] if isinstance(inputs, Tensor) else _stand_ins(inputs)
    if not wanted:
        raise RuntimeError("`inputs` argument to `grad()` cannot be empty.")
    given = _as_sequence(grad_outputs, len(roots))
    if not only_inputs:
        warnings.warn("only_inputs argument is deprecated and is ignored now: grad() never accumulates; backward() "
                      "does.",
                      FutureWarning, stacklevel=2)
    gradients = _gradients(roots, given, is_grads_batched)
    allow = materialize_grads if allow_unused is None else allow_unused
    retain = create_graph if retain_graph is None else bool(retain_graph)
    if is_grads_batched:
        results = _batched(roots, gradients, wanted, retain, create_graph, allow)
    else:
        results = _run("grad", roots, gradients, retain, create_graph, wanted, accumulate=False)
    if not allow:
        for index, result in enumerate(results):
            if result is None:
                raise RuntimeError(f"The differentiated Tensor at index {index} appears to not have been used in the "
                                   "graph. No path leads from the outputs to it (its shape is "
                                   f"{list(wanted[index]._shape)}). Set allow_unused=True to get None for it.")
    if materialize_grads:
        results = tuple(wrap(np.zeros_like(w._array)) if r is None else r for r, w in zip(results, wanted, strict=True))
    return results


def _batched(roots: tuple, gradients: list, wanted: list, retain: bool, create_graph: bool, allow: bool) -> tuple:
    """One pass per row of the batch; the rows' gradients are stacked."""
    from ..ops.table import TENSORS
    size = next(g._shape[0] for g in gradients if g is not None)
    rows = []
    for i in range(size):
        one = [None if g is None else g[i] for g in gradients]
        rows.append(_run("grad", roots, one, retain or i + 1 < size, create_graph, wanted, accumulate=False))
    return tuple(None if any(one is None for one in column) else TENSORS.stack(list(column))
                 for column in zip(*rows, strict=True))


def _stand_ins(places: Any, gradients: Any = None) -> list:
    """A list of tensors, from one or several tensors and gradient edges."""
    if isinstance(places, GradientEdge):
        places = (places,)
    places = list(places)
    given = list(_as_sequence(gradients, len(places)))
    given += [None] * (len(places) - len(given))
    return [place.stand_in(gradient) if isinstance(place, GradientEdge) else place
            for place, gradient in zip(places, given, strict=False)]


def _as_sequence(gradients: Any, length: int) -> Sequence:
    if gradients is None:
        return (None,) * length
    return (gradients,) if isinstance(gradients, Tensor) else tuple(gradients)


def _gradients(roots: tuple, given: Sequence, batched: bool) -> list:
    """The gradient each root starts with, after the checks PyTorch makes, in its order."""
    if len(roots) != len(given):
        raise RuntimeError(f"got {len(roots)} tensors and {len(given)} gradients")
    made: list[Tensor | None] = []
    for i, (root, gradient) in enumerate(zip(roots, given, strict=True)):
        if isinstance(gradient, Tensor):
            shape = gradient._shape[1:] if batched else gradient._shape
            if shape != root._shape:
                raise RuntimeError(f"Mismatch in shape: grad_output[{i}] has a shape of {gradient.shape} and "
                                   f"output[{i}] has a shape of {root.shape}.")
            if (gradient._array.dtype.kind == "c") != (root._array.dtype.kind == "c"):
                raise RuntimeError("For complex Tensors, both grad_output and output are required to have the same "
                                   f"dtype. Mismatch in dtype: grad_output[{i}] has a dtype of {gradient.dtype} and "
                                   f"output[{i}] has a dtype of {root.dtype}.")
            made.append(gradient)
        elif gradient is None:
            if root._node is None:
                made.append(None)
                continue
            if root._array.size != 1:
                raise RuntimeError("grad can be implicitly created only for scalar outputs: the output has shape "
                                   f"{list(root._shape)}. Reduce it first (loss.sum(), loss.mean()), or pass the "
                                   "gradient.")
            if dtypes.category(root._array.dtype) != dtypes.FLOATING:
                raise RuntimeError(f"grad can be implicitly created only for real scalar outputs but got {root.dtype}")
            made.append(wrap(np.ones(root._shape, root._array.dtype)))
        else:
            raise TypeError(f"gradients can be either Tensors or None, but got {type(gradient).__name__}")
    return made


def _refuse_outgrown(root: Any) -> None:
    """A view that its base outgrew is refused before anything has run: no hook, no retained gradient."""
    node = root._node
    refuses = getattr(node[SPEC], "refuses", None) if node.__class__ is list else None
    if refuses is not None:
        raise refuses(node)


def _run(kind: str, roots: tuple, gradients: list, retain: bool, create_graph: bool, inputs: list | None,
         accumulate: bool) -> tuple:
    for i, root in enumerate(roots):
        _refuse_outgrown(root)
        if root._node is None or root._node is UNRECORDED:
            raise RuntimeError(f"element {i} of tensors does not require grad and does not have a grad_fn. It was "
                               "computed from constants, under no_grad, or detached: nothing leads from it to a leaf "
                               "that requires grad.")
    if inputs is not None:
        for one in inputs:
            if not isinstance(one, Tensor):
                raise TypeError(f"inputs must be Tensors, not {type(one).__name__}")
            if one._node is None:
                raise RuntimeError("One of the differentiated Tensors does not require grad")
            if accumulate and one._node is not LEAF:
                one.retain_grad()
    code, instruction = facts.here()
    call = BackwardCall(kind, _next_call(), code, instruction)
    nodes = [r._node.node if r._node.__class__ is Output else r._node for r in roots if r._node is not LEAF]
    full = FullPass(call, retain, create_graph, None)
    full.for_inputs = inputs is not None
    for root, gradient in zip(roots, gradients, strict=True):
        _start(full, root, gradient if full.tensors else fit(gradient._array, (root._shape, root._array.dtype)))
    special = full.tensors or state.anomaly or not full.heap or any(leaf._hooked for leaf in full.leaves)
    if inputs is not None:
        if not accumulate and not special and all(one._node is LEAF for one in inputs) and leads_only_to(nodes, set(inputs)):
            return _collect(full, inputs)
        full.targets = targets = Targets(inputs, nodes, accumulate)
        full.run()
        return tuple(targets.results)
    if special:
        full.run()
    else:
        node, gradient, _ = full.pending.pop(heappop(full.heap))
        _short(full, node, gradient)
    return ()


def _collect(full: FullPass, inputs: list) -> tuple:
    """grad() where the whole graph leads to the inputs and to nothing else: the short pass finds all gradients."""
    node, gradient, _ = full.pending.pop(heappop(full.heap))
    running.passes.append(full)
    try:
        run_nodes(node, gradient, full.heap, full.pending, full.leaves, full.call, full.retain)
    except Handover:
        full.targets = Targets(inputs, [entry[0] for entry in full.pending.values()], False)  # what is left to do
        full.run()
        return tuple(full.targets.results)
    finally:
        running.passes.pop()
    holders = [(leaf, full.leaves.get(leaf)) for leaf in inputs]
    return tuple(None if holder is None else full.hand_out(fit(holder[0], (leaf._shape, leaf._array.dtype)))
                 for leaf, holder in holders)


def _short(full: FullPass, node: list, gradient: Any) -> None:
    """The short pass, with `full` to go on where it cannot."""
    try:
        short_pass(node, gradient, full.heap, full.pending, full.leaves, full.call, full.retain)
    except Handover:
        full.run()
    except BaseException:
        full.settle()
        raise


_ones: dict[Any, np.ndarray] = {}


def backward_from(root: Tensor, gradient: Tensor | None, retain_graph: bool | None, create_graph: bool, inputs: Any) -> None:
    """Tensor.backward(). The ordinary call on a real scalar skips all checks that it cannot fail."""
    node = root._node
    if (gradient is None and inputs is None and not create_graph and node.__class__ is list and node is not UNRECORDED
            and root._shape == () and root._real is not None and not state.anomaly and state.forward_level < 0):
        one = _ones.get(root._real)
        if one is None:
            one = _ones[root._real] = np.ones((), root._real)
            one.flags.writeable = False
        if facts.ENABLED:
            frame = _getframe(2)
            if facts.is_library(frame.f_code):
                frame = facts.leave_library(frame)
            call = BackwardCall("backward", _next_call(), frame.f_code, frame.f_lasti)
        else:
            call = BackwardCall("backward", _next_call(), None, -1)
        _short(FullPass(call, bool(retain_graph), False, None), node, one)
    else:
        backward(root, gradient, retain_graph, create_graph, inputs=inputs)


def _start(full: FullPass, root: Tensor, gradient: Any) -> None:
    # Also where inputs= leaves the root out: its hooks run all the same.
    if root._node is LEAF:
        full.add_to_leaf(root, gradient)
    else:
        full.add_to_node(root._node, gradient)


def _warn_of_cycle() -> None:
    global _warned_of_cycle
    if not _warned_of_cycle:
        _warned_of_cycle = True
        warnings.warn("Using backward() with create_graph=True will create a reference cycle between the parameter and "
                      "its gradient: the gradient's graph leads back to the parameter. autograd.grad has no such "
                      "cycle; otherwise set .grad to None when done with it.", UserWarning, stacklevel=facts.user_level())
