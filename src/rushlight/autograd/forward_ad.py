"""Forward mode as users call it: dual levels, and tensors with a tangent."""
from __future__ import annotations

from itertools import count
from typing import Any, NamedTuple

from ..arrays.dtypes import FLOATING, category
from ..graph.modes import shift, state
from ..ops.forward import Suspended, forget_level, set_tangent, tangent_of
from ..ops.table import TENSORS
from ..tensor import Tensor
from .grad_mode import Switch

# Each dual level that is entered gets a number of its own; users see it as level 0, since levels do not nest.
_next_level = count().__next__


class UnpackedDualTensor(NamedTuple):
    """A tensor's value and its tangent, which is None if it has none."""

    primal: Tensor
    tangent: Tensor | None


def enter_dual_level() -> int:
    """Begin a level: tensors made with make_dual carry tangents until it is left."""
    if state.forward_level >= 0:
        raise RuntimeError("Nested forward mode AD is not supported at the moment")
    state.forward_level = _next_level()
    shift(1)
    return 0


def exit_dual_level(*, level: int | None = None) -> None:
    """Leave the level; its tangents are gone."""
    if state.forward_level < 0:
        raise RuntimeError("Dual level must be a positive number.")
    if level is not None and level != 0:
        raise RuntimeError("Trying to exit a forward AD level that was not the last one that was created. This is not "
                           "supported.")
    forget_level(state.forward_level)
    state.forward_level = -1
    shift(-1)


class dual_level(Switch):
    """A dual level for the length of a block."""

    def __enter__(self) -> int:
        return enter_dual_level()

    def __exit__(self, *exception: Any) -> None:
        exit_dual_level()


def make_dual(tensor: Tensor, tangent: Tensor, *, level: int | None = None) -> Tensor:
    """The tensor, over the same memory, with a tangent."""
    if state.forward_level < 0:
        raise RuntimeError("Trying to create a dual Tensor for forward AD but no level exists, make sure to "
                           "enter_dual_level() first.")
    for what, one in (("primal", tensor), ("tangent", tangent)):
        if category(one._array.dtype) < FLOATING:
            raise ValueError(f"Expected {what} to be floating point or complex, but got: {one.dtype}")
    if tangent_of(tensor) is not None:
        raise RuntimeError("Making a dual Tensor based on a Tensor that already has a forward gradient at the same "
                           "level 0 is not supported.")
    dual = _alias(tensor)
    _check_size(dual, tangent)
    set_tangent(dual, tangent)
    return dual


def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """The tensor without its tangent, and the tangent."""
    if state.forward_level < 0:
        return UnpackedDualTensor(tensor, None)
    tangent = tangent_of(tensor)
    primal = _alias(tensor)
    set_tangent(primal, None)
    return UnpackedDualTensor(primal, tangent)


def _alias(tensor: Tensor) -> Tensor:
    with Suspended():
        return TENSORS._view(tensor, tensor._shape)


def _check_size(tensor: Tensor, tangent: Tensor) -> None:
    if tangent._shape != tensor._shape:
        raise RuntimeError("Trying to set a forward gradient that has a different size than that of the original "
                           f"Tensor, this is not supported. Tensor is of size {list(tensor._shape)} while the given "
                           f"forward gradient is of size {list(tangent._shape)}.")


class _set_fwd_grad_enabled(Switch):
    """Whether tangents are propagated."""

    def __init__(self, mode: bool) -> None:
        self.previous = state.forward_enabled
        self.mode = state.forward_enabled = mode

    def clone(self) -> _set_fwd_grad_enabled:
        return _set_fwd_grad_enabled(self.mode)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exception: Any) -> None:
        state.forward_enabled = self.previous


def _floating(value: Any) -> bool:
    return isinstance(value, Tensor) and category(value._array.dtype) >= FLOATING


def push_through_function(function: Any, ctx: Any, args: tuple, results: tuple) -> None:
    """Give the outputs of a custom Function the tangents that its jvp computes."""
    tangents = [tangent_of(a) if isinstance(a, Tensor) else None for a in args]
    if all(one is None for one in tangents):
        return
    if ctx.materialize_grads:
        tangents = [TENSORS.zeros_like(a) if one is None and _floating(a) else one
                    for a, one in zip(args, tangents, strict=True)]
    ctx._values = ctx.saved_for_forward
    try:
        with Suspended():
            made = function.jvp(ctx, *tangents)
    finally:
        del ctx._values
    given = made if isinstance(made, tuple) else (made,)
    if len(given) != len(results):
        raise RuntimeError(f"Function's jvp returned an invalid number of forward gradients (expected {len(results)} "
                           f"but got {len(given)})")
    for i, (result, tangent) in enumerate(zip(results, given, strict=True)):
        if tangent is None or not _floating(result):
            continue
        _check_size(result, tangent)
        position = next((k for k, a in enumerate(args) if a is result), None)
        if position is not None:  # written in place
            if tangents[position] is not None and tangents[position] is not tangent:
                raise RuntimeError("An inplace custom Function is not modifying the forward mode gradients inplace. If "
                                   "the forward is modifying an input inplace, then the jvp function must modify the "
                                   f"corresponding gradient inplace (output {i}).")
        elif result._view is not None and tangent._view is None:
            raise RuntimeError("A custom Function's forward is returning a view (or an input as-is) but the jvp is not "
                               "returning a view.")
        set_tangent(result, tangent)
