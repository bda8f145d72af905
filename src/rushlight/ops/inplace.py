"""In-place operations: what may be written, the write, and the new history of the tensor, its base and its views."""
from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from ..arrays import dtypes
from ..graph import facts, versions
from ..graph.errors import freed_error
from ..graph.modes import state
from ..graph.node import EDGES, KEPT, LEAF, ORDER, SAVED, SPEC, BackwardCall, Output, next_order
from ..graph.versions import Family, family_of
from ..tensor import Tensor, wrap
from ..tensor.core import View
from .apply import Binding, edge_of
from .dimensions import has_overlap
from .scattering import WRITE_THEMSELVES, Target
from .table import TENSORS, Op
from .unpack import type_name


def call_inplace(op: Op, values: tuple) -> Tensor:
    """Run an operation and write its result into its first argument."""
    target = values[0]
    if not isinstance(target, Tensor):
        raise TypeError(f"{op.name}_(): the first argument must be a Tensor, not {type(target).__name__}")
    bound = Binding(op, values)
    needed = bound.needed()
    check_writable(target, bool(needed) or (state.grad and target._view is not None and target._view.base._node is not None),
                   overlap=op.name in _UNIFORM or (op.name == "copy" and values[1] is target))
    if op.elementwise and target._family is not None:
        for value in values[1:]:
            if isinstance(value, Tensor) and value._family is target._family and value is not target:
                _check_partial_overlap(target._array, value._array)
    directly = op.name in WRITE_THEMSELVES and _may_write_directly(target, values)
    if directly:
        bound.arrays[op.parameters[0]] = target._array.view(Target)
    outputs, extras = bound.compute()
    result = outputs[0]
    check_result(op.name, target, result)
    original: Tensor | None = None
    if needed and _saves_first(op, needed):
        # The write destroys the value that the gradient needs, so a copy of it is saved.
        original = TENSORS.clone(target)
    if state.forward_level >= 0:
        from .forward import inplace_tangents
        inplace_tangents(bound, target, result, extras)
    # The node counts as older than the write: an argument it saves that shares the memory is found to be written over. Where
    # the gradients go is settled before it too, for the write gives views of the memory another history.
    order = next_order()
    edges = bound.edges(needed)
    previous = target._node
    if directly:
        family_of(target).wrote()
    else:
        write(target, result)
    if needed:
        target._node = previous  # the write gave a view a history that is newer than this operation; rebase() gives it its own
        name = op.parameters[0]
        if original is not None:
            bound.named[name] = original
        node = bound.make_node(needed, [target._array], extras)
        node[EDGES] = edges[0] if len(edges) == 1 and not op.lists else edges
        node[ORDER] = order
        rebase(target, node, name in needed)
    return target


def _may_write_directly(target: Tensor, values: tuple) -> bool:
    """Whether a kernel may write to the target's memory itself: nothing else must want its old values."""
    array = target._array
    if not array.flags.c_contiguous or state.forward_level >= 0 or state.mutation_guard is not None:
        return False
    tensors = [one for value in values[1:] for one in (value if value.__class__ is list else (value,)) if isinstance(one, Tensor)]
    return not any(np.may_share_memory(one._array, array) for one in tensors)


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
    "multi": "This view is the output of a function that returns multiple views, and those cannot be written to. Write the "
             "result to a new tensor, or clone() the view first.",
    "no_grad": "Make the view with grad mode on, or make it again after the write, or write under no_grad as well.",
    "inference": "Clone it first.",
    "function": "This view was created inside a custom Function (or because an input was returned as-is), and a write to it "
                "would bypass the Function's own backward. clone() it first, or let the Function return a clone."}


def _refused(steps: tuple, refusal: str, what: str, place: Any = None) -> str:
    """Why a view cannot be written to, or used after a write."""
    if refusal in ("no_grad", "inference"):
        return f"A view was created in {refusal} mode and {what} with grad mode enabled. {_REFUSALS[refusal]}"
    op, _, number = steps[-1]
    name = op.node_name({})
    if refusal == "function" and place is not None and place is not LEAF:  # the Function's node, not that of the view in it
        node, number = (place.node, place.number) if place.__class__ is Output else (place, 0)
        name = node[SPEC].node_name(node)
    return f"Output {number or 0} of {name.rsplit('Backward', 1)[0]} is a view and {what}. {_REFUSALS[refusal]}"


# It does not matter to these where elements share their memory. (PyTorch's fill_ refuses all the same.)
_UNIFORM = frozenset(("zero",))


def _check_partial_overlap(target: np.ndarray, other: np.ndarray) -> None:
    """Refuse, as PyTorch does, to read memory that is being written unless it is read in just the same way."""
    if not target.size or not other.size or not _is_dense(target) or not _is_dense(other):
        return
    first, second = target.ctypes.data, other.ctypes.data
    if first == second and target.nbytes == other.nbytes:
        if target.strides == other.strides:
            return
    elif first + target.nbytes <= second or second + other.nbytes <= first:
        return
    raise RuntimeError("unsupported operation: some elements of the input tensor and the written-to tensor refer to a single "
                       "memory location. Please clone() the tensor before performing the operation.")


def _is_dense(array: np.ndarray) -> bool:
    """Whether the elements fill a stretch of memory, each once."""
    expected = array.itemsize
    for stride, size in sorted((stride, size) for stride, size in zip(array.strides, array.shape, strict=True) if size > 1):
        if stride != expected:
            return False
        expected *= size
    return True


def check_writable(target: Tensor, differentiable: bool, values: bool = True, overlap: bool = False) -> None:
    """Whether an in-place write is allowed; `differentiable` says whether its result will have a history.

    `values` is False for an operation that changes sizes only: the memory itself need not be writable then. `overlap` is
    True for one that may write to an element more than once.
    """
    if differentiable:
        view = target._view
        if view is not None and view.refusal is not None:
            raise RuntimeError(_refused(view.steps, view.refusal, "is being modified inplace", target._node))
        if view is not None and target._node is not None and view.base.is_leaf:
            raise RuntimeError("a view of a leaf Variable that requires grad is being used in an in-place operation. Do it on a "
                               "clone, or under no_grad if it should not be differentiated.")
        if target._node is LEAF:
            raise RuntimeError("a leaf Variable that requires grad is being used in an in-place operation. Make a new tensor "
                               "(y = x + 1 rather than x += 1), or do it under no_grad if it should not be differentiated.")
    if target._inference and not state.inference:
        raise RuntimeError("Inplace update to inference tensor outside InferenceMode is not allowed. clone() it to get an "
                           "ordinary tensor first.")
    if not values:
        return
    array = target._array
    if not overlap and has_overlap(array):
        raise RuntimeError("unsupported operation: more than one element of the written-to tensor refers to a single memory "
                           "location. Please clone() the tensor before performing the operation.")
    if not array.flags.writeable and array.size:
        raise RuntimeError("the tensor's memory is read-only (it came from a read-only NumPy array): clone() it before writing.")


def write(target: Tensor, result: np.ndarray) -> None:
    """Write the values and count the write."""
    guard: Any = state.mutation_guard
    if guard is not None:
        guard.before_write(target)
    if result.size:
        np.copyto(target._array, result, casting="unsafe")
    family_of(target).wrote()


def rebase(target: Tensor, node: list, through: bool) -> None:
    """Give a tensor that was written the history `node`; `through` says whether its own old value has a gradient in it."""
    family = family_of(target)
    family.producer = node
    view = target._view
    if view is None:
        _set_history(target, node)
        base, skipped = target, None
    else:
        base = view.base
        inner = node[4] if node[4].__class__ is tuple else (node[4],)
        others = inner[1:] if through else inner
        kept = (view.steps, layout_of(base._array), through)
        code, instruction = facts.here()
        # The operation's own node is what this one saves: freeing it frees what that one saved.
        _set_history(base, [COPY_SLICES, next_order(), (node,), kept, (edge_of(base), *others), code, instruction, None])
        family.producer = base._node if node[SPEC].saves_output else None
        _set_history(target, _regenerate(view))
        skipped = target
    if family.views:
        _refresh(family, skipped)


def _refresh(family: Family, skipped: Tensor | None = None) -> None:
    """After a write: the views of the memory come from the base as it is now."""
    for reference in family.views or ():
        other = reference()
        if other is None or other is skipped or other._view is None or other._view.base._node is None:
            continue
        _set_history(other, _regenerate(other._view))
        if other._view.refusal is not None:
            other._real = None  # no short path: the next operation on it looks at its node, and refuses


versions.refresh_views = _refresh


def _set_history(tensor: Tensor, node: Any) -> None:
    previous, tensor._node = tensor._node, node
    if tensor._retains_grad:  # retain_grad means the tensor, not the node that computed it at the time
        from ..tensor.hooks import follow_history
        follow_history(tensor, previous)


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


class Places:
    """Where in a base the elements of a view lie, for gradients that must be differentiable themselves.

    A complex base seen as real numbers, or the reverse, is counted in real numbers.
    """

    def __init__(self, layout: tuple, steps: tuple) -> None:
        self.shape, dtype, order = layout
        size = prod(self.shape)
        complex_base = dtype.kind == "c"
        counted = (np.arange(2.0 * size).view(np.complex128) if complex_base else np.arange(float(size))).reshape(self.shape)
        numbers = replay_raw(copy_as(counted, (self.shape, counted.dtype, order)), steps)
        self.parts = complex_base and numbers.dtype.kind != "c"  # the view has the real numbers in a complex base
        self.pairs = not complex_base and numbers.dtype.kind == "c"  # the view takes the base's real numbers in pairs
        if self.pairs:
            numbers = np.stack([numbers.real, numbers.imag], -1)
        elif complex_base and not self.parts:
            numbers = numbers.real / 2
        self.view_shape = numbers.shape
        self.index = np.ascontiguousarray(numbers).reshape(-1).astype(np.intp)

    def flat_base(self, base: Tensor) -> Tensor:
        return TENSORS.reshape(TENSORS.view_as_real(base) if self.parts else base, (-1,))

    def whole_base(self, flat: Tensor) -> Tensor:
        if self.parts:
            return TENSORS.view_as_complex(TENSORS.reshape(flat, (*self.shape, 2)))
        return TENSORS.reshape(flat, self.shape)

    def flat_view(self, view: Tensor) -> Tensor:
        return TENSORS.reshape(TENSORS.view_as_real(view) if self.pairs else view, (-1,))

    def whole_view(self, flat: Tensor) -> Tensor:
        shaped = TENSORS.reshape(flat, self.view_shape)
        return TENSORS.view_as_complex(shaped) if self.pairs else shaped


class Spec:
    """A kind of node that no entry of the op table stands behind."""

    saved_names: tuple[str, ...] = ()
    kept_names: tuple[str, ...] = ()
    saves_output = False
    mask = -1
    written_by: Callable | None = None  # CopySlices: (the node of the write, whether the old value has a gradient in it)
    refuses: Callable | None = None  # the error that even looking at such a node raises

    def __init__(self, name: str, run: Callable, run_tensors: Callable) -> None:
        self.name = name
        self.run = run
        self.run_tensors = run_tensors

    def node_name(self, node: list) -> str:
        return self.name


def _copy_slices(g: np.ndarray, saved: Any, node: list) -> tuple:
    """The gradient of a base one of whose views was written: as it is outside the view; through the operation inside."""
    steps, layout, through = node[KEPT]
    inner, = saved
    if inner[SAVED].__class__ is BackwardCall:
        raise freed_error(inner)
    whole = copy_as(g, layout)
    part = replay_raw(whole, steps)
    made = inner[SPEC].run(part.copy(), inner[SAVED], inner)
    gradients = made if made.__class__ is tuple else (made,)
    part[...] = 0
    if through:
        if gradients[0] is not None:
            part[...] = gradients[0]
        gradients = gradients[1:]
    return (whole, *gradients)


def _copy_slices_tensors(g: Tensor, saved: Any, node: list) -> tuple:
    steps, layout, through = node[KEPT]
    inner, = saved
    if inner[SAVED].__class__ is BackwardCall:
        raise freed_error(inner)
    places = Places(layout, steps)
    index = wrap(places.index)
    flat = places.flat_base(g)
    part = places.whole_view(TENSORS.index_select(flat, 0, index))
    made = inner[SPEC].run_tensors(part, inner[SAVED], inner)
    gradients = made if made.__class__ is tuple else (made,)
    inside = None
    if through:
        inside, gradients = gradients[0], gradients[1:]
    values = wrap(np.zeros(index._shape, flat._array.dtype)) if inside is None else places.flat_view(inside)
    return (places.whole_base(TENSORS.index_copy(flat, 0, index, values)), *gradients)


COPY_SLICES = Spec("CopySlices", _copy_slices, _copy_slices_tensors)
COPY_SLICES.written_by = lambda node: (node[SAVED][0] if node[SAVED].__class__ is tuple else None, node[KEPT][2])
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


_REPEATING = frozenset(("_expand", "unfold", "_as_strided"))  # views that may show one element several times


def _as_strided(g: np.ndarray, saved: Any, node: list) -> np.ndarray:
    """The gradient of a base from that of its view: each element goes back to where the view took it from."""
    steps, layout, _ = node[KEPT]
    if not any(op.name in _REPEATING for op, _, _ in steps):
        whole = copy_as(np.zeros((), layout[1]), layout)
        replay_raw(whole, steps)[...] = g
        return whole
    return _as_strided_tensors(wrap(np.asarray(g)), saved, node)._array


def _as_strided_tensors(g: Tensor, saved: Any, node: list) -> Tensor:
    steps, layout, _ = node[KEPT]
    places = Places(layout, steps)
    values = places.flat_view(g)
    zeros = wrap(np.zeros(prod(layout[0]) * (2 if places.parts else 1), values._array.dtype))
    return places.whole_base(TENSORS.index_add(zeros, 0, wrap(places.index), values))


AS_STRIDED = Spec("AsStridedBackward0", _as_strided, _as_strided_tensors)


def _alias(g: Any, saved: Any, node: list) -> Any:
    return g


ALIAS = Spec("AliasBackward0", _alias, _alias)


def alias_node(edge: Any) -> list:
    """A node that hands its gradient on as it is."""
    return [ALIAS, next_order(), (), (), edge, *facts.here(), None]


def _stale(g: Any, saved: Any, node: list) -> Any:
    raise stale_error(node)


def stale_error(node: list) -> RuntimeError:
    """Why a view of a base that was written cannot be differentiated through any more."""
    steps, _, refusal = node[KEPT]
    return RuntimeError(_refused(steps, refusal, "its base or another view of its base has been modified inplace"))


STALE = Spec("AsStridedBackward0", _stale, _stale)
STALE.refuses = stale_error

__all__ = ["BackwardCall", "call_inplace", "check_writable", "freed_error", "rebase", "write"]
