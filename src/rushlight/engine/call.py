"""backward() and grad(): their checks at the door, and the pass that fits."""
from __future__ import annotations

import warnings
from heapq import heappush
from itertools import count
from typing import Any, Sequence

import numpy as np

from ..arrays import dtypes
from ..graph import facts
from ..graph.modes import state
from ..graph.node import LEAF, ORDER, BackwardCall, Output
from ..ops.fit import fit
from ..tensor import Tensor, wrap
from .full import FullPass, Targets
from .passes import Handover, short_pass

_next_call = count(1).__next__
_warned_of_cycle = False


def backward(tensors: Any, grad_tensors: Any = None, retain_graph: bool | None = None, create_graph: bool = False,
             grad_variables: Any = None, inputs: Any = None) -> None:
    """Compute the gradients of the tensors with respect to the leaves, and add them to the leaves' .grad."""
    if grad_variables is not None:
        warnings.warn("`grad_variables` is deprecated. Use `grad_tensors` instead.", FutureWarning, stacklevel=2)
        if grad_tensors is not None:
            raise RuntimeError("`grad_tensors` and `grad_variables` (deprecated) arguments both passed to `backward()`. Please "
                               "only use `grad_tensors`.")
        grad_tensors = grad_variables
    targets_given = None
    if inputs is not None:
        targets_given = [inputs] if isinstance(inputs, Tensor) else list(inputs)
        if not targets_given:
            raise RuntimeError("`inputs` argument to `backward()` cannot be empty.")
    roots = (tensors,) if isinstance(tensors, Tensor) else tuple(tensors)
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
    roots = (outputs,) if isinstance(outputs, Tensor) else tuple(outputs)
    wanted = [inputs] if isinstance(inputs, Tensor) else list(inputs)
    given = _as_sequence(grad_outputs, len(roots))
    if not only_inputs:
        warnings.warn("only_inputs argument is deprecated and is ignored now (defaults to True). To accumulate gradient for "
                      "other parts of the graph, please use torch.autograd.backward.", FutureWarning, stacklevel=2)
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
                raise RuntimeError("One of the differentiated Tensors appears to not have been used in the graph. Set "
                                   "allow_unused=True if this is the desired behavior. It is the tensor at index "
                                   f"{index} of inputs, of shape {list(wanted[index]._shape)}.")
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
                raise RuntimeError(f"Mismatch in shape: grad_output[{i}] has a shape of {gradient.shape} and output[{i}] has a "
                                   f"shape of {root.shape}.")
            if (gradient._array.dtype.kind == "c") != (root._array.dtype.kind == "c"):
                raise RuntimeError("For complex Tensors, both grad_output and output are required to have the same dtype. "
                                   f"Mismatch in dtype: grad_output[{i}] has a dtype of {gradient.dtype} and output[{i}] has a "
                                   f"dtype of {root.dtype}.")
            made.append(gradient)
        elif gradient is None:
            if root._node is None:
                made.append(None)
                continue
            if root._array.size != 1:
                raise RuntimeError("grad can be implicitly created only for scalar outputs: the output has shape "
                                   f"{list(root._shape)}. Reduce it first (loss.sum(), loss.mean()), or pass the gradient.")
            if dtypes.category(root._array.dtype) != dtypes.FLOATING:
                raise RuntimeError(f"grad can be implicitly created only for real scalar outputs but got {root.dtype}")
            made.append(wrap(np.ones(root._shape, root._array.dtype)))
        else:
            raise TypeError(f"gradients can be either Tensors or None, but got {type(gradient).__name__}")
    return made


def _run(kind: str, roots: tuple, gradients: list, retain: bool, create_graph: bool, inputs: list | None,
         accumulate: bool) -> tuple:
    for i, root in enumerate(roots):
        if root._node is None:
            raise RuntimeError(f"element {i} of tensors does not require grad and does not have a grad_fn. It was computed from "
                               "constants, under no_grad, or detached: nothing leads from it to a leaf that requires grad.")
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
    heap: list[int] = []
    pending: dict[int, list] = {}
    leaves: dict[Any, list] = {}
    nodes = [r._node.node if r._node.__class__ is Output else r._node for r in roots if r._node is not LEAF]
    targets = None if inputs is None else Targets(inputs, nodes, accumulate)
    full = FullPass(call, retain, create_graph, targets)
    if inputs is not None or create_graph or state.anomaly:
        for root, gradient in zip(roots, gradients, strict=True):
            _start(full, root, gradient if create_graph else fit(gradient._array, (root._shape, root._array.dtype)))
        full.run()
        return tuple(targets.results) if targets is not None else ()
    full.heap, full.pending, full.leaves = heap, pending, leaves
    for root, gradient in zip(roots, gradients, strict=True):
        node = root._node
        array = gradient._array
        if array.dtype != root._array.dtype:
            array = fit(array, (root._shape, root._array.dtype))
        if node.__class__ is list and node[ORDER] not in pending:
            pending[node[ORDER]] = [node, array, False]
            heappush(heap, node[ORDER])
        else:
            _start(full, root, array)
    try:
        if any(leaf._hooked for leaf in leaves):
            raise Handover
        short_pass(heap, pending, leaves, call, retain)
    except Handover:
        full.run()
    except BaseException:
        full.settle()
        raise
    return ()


def _start(full: FullPass, root: Tensor, gradient: Any) -> None:
    if root._node is LEAF:
        if full.targets is None or full.targets.wants(root):
            full.add_to_leaf(root, gradient)
    elif full.targets is None or full.targets.wants(root._node):
        full.add_to_node(root._node, gradient)


def _warn_of_cycle() -> None:
    global _warned_of_cycle
    if not _warned_of_cycle:
        _warned_of_cycle = True
        warnings.warn("Using backward() with create_graph=True will create a reference cycle between the parameter and its "
                      "gradient which can cause a memory leak. We recommend using autograd.grad when creating the graph to avoid "
                      "this. If you have to use this function, make sure to reset the .grad fields of your parameters to None "
                      "after use to break the cycle and avoid the leak.", UserWarning, stacklevel=3)
