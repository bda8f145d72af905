"""In-place operations: what may be written, the write, and the new history of the tensor, its base and its views."""
from __future__ import annotations

from typing import Any, Callable

import numpy as np

from ..arrays import dtypes
from ..graph import facts
from ..graph.errors import freed_error
from ..graph.modes import state
from ..graph.node import KEPT, LEAF, SAVED, SPEC, BackwardCall, Output, next_order
from ..graph.versions import family_of
from ..tensor import Tensor, wrap
from ..tensor.core import View
from .apply import Binding, edge_of
from .table import TENSORS, Op
from .unpack import type_name


def call_inplace(op: Op, values: tuple) -> Tensor:
    """Run an operation and write its result into its first argument."""
    target = values[0]
    if not isinstance(target, Tensor):
        raise TypeError(f"{op.name}_(): the first argument must be a Tensor, not {type(target).__name__}")
    bound = Binding(op, values)
    needed = bound.needed()
    check_writable(target, bool(needed))
    outputs, extras = bound.compute()
    result = outputs[0]
    check_result(op.name, target, result)
    original: Tensor | None = None
    if needed and _saves_first(op, needed):
        # The write destroys the value that the gradient needs, so a copy of it is saved.
        original = TENSORS.clone(target)
    if state.forward_level >= 0:
        from .forward import inplace_tangents
        inplace_tangents(bound, target, result)
    write(target, result)
    if needed:
        edge = edge_of(target)
        name = op.parameters[0]
        if original is not None:
            bound.named[name] = original
            node = bound.make_node(needed, [target._array], extras)
            edges = node[4] if node[4].__class__ is tuple else (node[4],)
            if name in needed:  # the gradient goes to where the tensor came from, not to the copy
                edges = (edge, *edges[1:])
                node[4] = edges[0] if len(edges) == 1 else edges
        else:
            node = bound.make_node(needed, [target._array], extras)
        rebase(target, node, name in needed)
    return target


def _saves_first(op: Op, needed: list[str]) -> bool:
    from .compile import variant_of
    mask = sum(1 << i for i, name in enumerate(op.differentiable) if name in needed)
    return op.parameters[0] in variant_of(op, mask, True).saved_names


def check_result(name: str, target: Tensor, result: np.ndarray) -> None:
    """Whether a result of this shape and dtype can be written into the target."""
    if result.shape != target._shape:
        raise RuntimeError(f"output with shape {list(target._shape)} doesn't match the broadcast shape {list(result.shape)}: "
                           f"{name}_ writes into its first argument, which cannot grow.")
    if result.dtype != target._array.dtype:
        given, wanted = dtypes.from_numpy(result.dtype), target.dtype
        if not dtypes.can_cast(given, wanted):
            raise RuntimeError(f"result type {type_name(given.name)} can't be cast to the desired output type "
                               f"{type_name(wanted.name)}")


_REFUSALS = {
    "multi": "This view is the output of a function that returns multiple views. Such functions do not allow the output views "
             "to be modified inplace. You should replace the inplace operation by an out-of-place one.",
    "no_grad": "A view was created in no_grad mode and is being modified inplace with grad mode enabled. Make the view with "
               "grad mode on, or modify it under no_grad as well.",
    "inference": "A view was created in inference mode and is being modified inplace in normal mode. Clone it first.",
    "function": "This view was created inside a custom Function (or because an input was returned as-is) and the autograd "
                "logic to handle view+inplace would override the custom backward associated with the custom Function, leading "
                "to incorrect gradients. Clone it before modifying it inplace, or return a clone from the Function."}


def check_writable(target: Tensor, differentiable: bool) -> None:
    """Whether an in-place write is allowed; `differentiable` says whether its result will have a history."""
    if differentiable:
        view = target._view
        if view is not None and view.refusal is not None:
            node = target._node
            if view.refusal == "multi" or view.refusal == "function":
                name = "an operation" if node is None or node is LEAF else (
                    lambda n: n[SPEC].node_name(n))(node.node if node.__class__ is Output else node)
                number = node.number if node.__class__ is Output else 0
                raise RuntimeError(f"Output {number} of {name} is a view and is being modified inplace. {_REFUSALS[view.refusal]}")
            raise RuntimeError(_REFUSALS[view.refusal])
        if view is not None and view.base._node is LEAF:
            raise RuntimeError("a view of a leaf Variable that requires grad is being used in an in-place operation. Do it on a "
                               "clone, or under no_grad if it should not be differentiated.")
        if target._node is LEAF:
            raise RuntimeError("a leaf Variable that requires grad is being used in an in-place operation. Make a new tensor "
                               "(y = x + 1 rather than x += 1), or do it under no_grad if it should not be differentiated.")
    if target._inference and not state.inference:
        raise RuntimeError("Inplace update to inference tensor outside InferenceMode is not allowed. You can make a clone to "
                           "get a normal tensor before doing inplace update.")
    array = target._array
    if 0 in array.strides and any(s == 0 and n > 1 for s, n in zip(array.strides, array.shape, strict=True)):
        raise RuntimeError("unsupported operation: more than one element of the written-to tensor refers to a single memory "
                           "location. Please clone() the tensor before performing the operation.")
    if not array.flags.writeable:
        raise RuntimeError("the tensor's memory is read-only (it came from a read-only NumPy array): clone() it before writing.")


def write(target: Tensor, result: np.ndarray) -> None:
    """Write the values and count the write."""
    guard = state.mutation_guard
    if guard is not None:
        guard.before_write(target)
    np.copyto(target._array, result, casting="unsafe")
    family_of(target).wrote()


def rebase(target: Tensor, node: list, through: bool) -> None:
    """Give a tensor that was written the history `node`; `through` says whether its own old value has a gradient in it."""
    family = family_of(target)
    family.producer = node
    view = target._view
    if view is None:
        target._node = node
        base, skipped = target, None
    else:
        base = view.base
        inner = node[4] if node[4].__class__ is tuple else (node[4],)
        others = inner[1:] if through else inner
        kept = (view.steps, layout_of(base._array), node, through)
        code, instruction = facts.here()
        base._node = [COPY_SLICES, next_order(), node[SAVED], kept, (edge_of(base), *others), code, instruction, None]
        node[SAVED] = ()  # moved: freeing the outer node frees them
        family.producer = base._node if node[SPEC].saves_output else None
        target._node = _regenerate(view)
        skipped = target
    if family.views:
        for reference in family.views:
            other = reference()
            if other is not None and other is not skipped and other is not base and other._view is not None:
                other._node = _regenerate(other._view)


def layout_of(array: np.ndarray) -> tuple:
    """Shape, dtype, and the order in which dimensions lie in memory."""
    order = sorted(range(array.ndim), key=lambda i: -array.strides[i])
    return array.shape, array.dtype, tuple(order)


def copy_as(array: np.ndarray, layout: tuple) -> np.ndarray:
    """A copy that lies in memory as the layout says, so that views can be replayed on it."""
    shape, dtype, order = layout
    made = np.empty([shape[i] for i in order], dtype).transpose(np.argsort(order) if order else ())
    made[...] = array
    return made


def replay_raw(array: np.ndarray, steps: tuple) -> np.ndarray:
    """A view's steps on an array, giving the same view of it."""
    for op, arguments, number in steps:
        fixed = len(op.parameters) - op.keyword_only
        made = op.kernel(array, *arguments[:fixed - 1],
                         **dict(zip(op.parameters[fixed:], arguments[fixed - 1:], strict=True)))
        array = made if number is None else made[number]
    return array


def replay_tensor(tensor: Tensor, steps: tuple) -> Tensor:
    for op, arguments, number in steps:
        made = op.call(tensor, *arguments)
        tensor = made if number is None else made[number]
    return tensor


class Spec:
    """A kind of node that no entry of the op table stands behind."""

    saved_names: tuple[str, ...] = ()
    kept_names: tuple[str, ...] = ()
    saves_output = False
    mask = -1

    def __init__(self, name: str, run: Callable, run_tensors: Callable) -> None:
        self.name = name
        self.run = run
        self.run_tensors = run_tensors

    def node_name(self, node: list) -> str:
        return self.name


def _copy_slices(g: np.ndarray, saved: Any, node: list) -> tuple:
    """The gradient of a base one of whose views was written: as it is outside the view; through the operation inside."""
    steps, layout, inner, through = node[KEPT]
    whole = copy_as(g, layout)
    part = replay_raw(whole, steps)
    spec = inner[SPEC]
    made = spec.run(part.copy(), saved, inner)
    gradients = made if made.__class__ is tuple else (made,)
    part[...] = 0
    if through:
        if gradients[0] is not None:
            part[...] = gradients[0]
        gradients = gradients[1:]
    return (whole, *gradients)


def _copy_slices_tensors(g: Tensor, saved: Any, node: list) -> tuple:
    steps, layout, inner, through = node[KEPT]
    part = replay_tensor(g, steps)
    made = inner[SPEC].run_tensors(TENSORS.clone(part), saved, inner)
    gradients = made if made.__class__ is tuple else (made,)
    inside = None
    if through:
        inside, gradients = gradients[0], gradients[1:]
    numbers = replay_raw(np.arange(int(np.prod(layout[0]))).reshape(layout[0]), steps)
    flat = TENSORS.reshape(g, (-1,))
    index = wrap(np.ascontiguousarray(numbers).reshape(-1))
    values = (wrap(np.zeros(numbers.size, layout[1])) if inside is None else TENSORS.reshape(inside, (-1,)))
    return (TENSORS.reshape(TENSORS.index_copy(flat, 0, index, values), layout[0]), *gradients)


COPY_SLICES = Spec("CopySlices", _copy_slices, _copy_slices_tensors)
COPY_SLICES.saves_output = True  # asked only where the operation inside does


def _regenerate(view: View) -> Any:
    """The history of a view of a base that was written: it comes from the base as it is now."""
    base = view.base
    if base._node is None:
        return None
    code, instruction = facts.here()
    spec = AS_STRIDED if view.refusal is None else STALE
    kept = (view.steps, layout_of(base._array), view.refusal)
    return [spec, next_order(), (), kept, edge_of(base), code, instruction, None]


def _as_strided(g: np.ndarray, saved: Any, node: list) -> np.ndarray:
    """The gradient of a base from that of its view: each element goes back to where the view took it from."""
    steps, layout, _ = node[KEPT]
    whole = copy_as(np.zeros((), layout[1]), layout)
    numbers = replay_raw(copy_as(np.arange(whole.size).reshape(layout[0]), (layout[0], np.dtype(np.int64), layout[2])), steps)
    flat = np.zeros(whole.size, layout[1])
    np.add.at(flat, numbers.reshape(-1), g.reshape(-1))
    return flat.reshape(layout[0])


def _as_strided_tensors(g: Tensor, saved: Any, node: list) -> Tensor:
    steps, layout, _ = node[KEPT]
    size = int(np.prod(layout[0]))
    numbers = replay_raw(copy_as(np.arange(size).reshape(layout[0]), (layout[0], np.dtype(np.int64), layout[2])), steps)
    zeros = wrap(np.zeros(size, layout[1]))
    index = wrap(np.ascontiguousarray(numbers).reshape(-1))
    return TENSORS.reshape(TENSORS.index_add(zeros, 0, index, TENSORS.reshape(g, (-1,))), layout[0])


AS_STRIDED = Spec("AsStridedBackward0", _as_strided, _as_strided_tensors)


def _stale(g: Any, saved: Any, node: list) -> Any:
    refusal = node[KEPT][2]
    what = {"multi": "returned by a function that returns multiple views", "no_grad": "created in no_grad mode",
            "inference": "created in inference mode", "function": "created inside a custom Function"}[refusal]
    raise RuntimeError(f"A view {what} is used after its base or another view of its base has been modified inplace with grad "
                       "mode enabled. Make the view again after the write, or clone it before.")


STALE = Spec("AsStridedBackward0", _stale, _stale)

__all__ = ["BackwardCall", "call_inplace", "check_writable", "freed_error", "rebase", "write"]
