"""Forward mode: pushes tangents through operations, by what their gradient formulas say.

A tangent is kept on its tensor as (level, tangent), where the level is a number of its own for each dual level that was
ever entered, so that what an earlier one left behind is never taken for the current one's. Three ways, by the entry's
jvp:

    "linear"       the operation itself, applied to the tangents
    "elementwise"  the gradient formula, which multiplies by the derivative, applied to the tangent
    otherwise      the gradient is linear in the output's gradient, and its transpose is the map wanted: differentiating
                   the formula with respect to that gradient gives it
"""
from __future__ import annotations

import weakref
from typing import Any

import numpy as np

from ..arrays.dtypes import FLOATING, category
from ..graph.modes import set_grad, state
from ..graph.node import LEAF, SPEC, Output, extra_of
from ..tensor import Tensor, wrap
from .apply import Binding
from .compile import variant_of
from .table import TENSORS

_holders: dict[int, list] = {}  # level -> weak references to the tensors that have a tangent there


def _replay(tensor: Tensor, steps: tuple) -> Tensor:
    """A view's steps on a tensor, giving the same view of it."""
    for op, arguments, number in steps:
        made = op.call(tensor, *arguments)
        tensor = made if number is None else made[number]
    return tensor


def tangent_of(tensor: Tensor) -> Tensor | None:
    """The tensor's tangent at the current level."""
    held = tensor._tangent
    if held is not None and held[0] == state.forward_level:
        return held[1]
    view = tensor._view
    if view is not None:  # its base may have got one by a write since
        held = view.base._tangent
        if held is not None and held[0] == state.forward_level and held[1] is not None:
            with Suspended():
                tangent = _replay(held[1], view.steps)
            set_tangent(tensor, tangent)
            return tangent
    return None


def set_tangent(tensor: Tensor, tangent: Tensor | None) -> None:
    level = state.forward_level
    tensor._tangent = (level, tangent)
    _holders.setdefault(level, []).append(weakref.ref(tensor))


def forget_level(level: int) -> None:
    """Drop the tangents of a level that is left."""
    for reference in _holders.pop(level, ()):
        tensor = reference()
        if tensor is not None and tensor._tangent is not None and tensor._tangent[0] == level:
            del tensor._tangent


class Suspended:
    """Within it operations see no tangents: they are computing them."""

    def __enter__(self) -> None:
        self.level = state.forward_level
        state.forward_level = -1

    def __exit__(self, *exception: Any) -> None:
        state.forward_level = self.level


def push_tangents(bound: Binding, results: list[Tensor], extras: tuple) -> None:
    """Give the results of an operation their tangents."""
    if not state.forward_enabled:
        return
    tangents = _tangents_in(bound)
    if not tangents:
        return
    for result, tangent in zip(results, _push(bound, tangents, results, extras), strict=True):
        if tangent is not None and category(result._array.dtype) >= FLOATING:
            set_tangent(result, tangent)
            _remember(result)


def _remember(result: Tensor) -> None:
    """Leave the tangent with a node that saved this output, for it saved only the array."""
    place = result._node
    if place is None or place is LEAF:
        return
    node, number = (place.node, place.number) if place.__class__ is Output else (place, 0)
    if node[SPEC].saves_output:
        extra = extra_of(node)
        if extra.tangents is None:
            extra.tangents = {}
        extra.tangents[number] = result._tangent


def inplace_tangents(bound: Binding, target: Tensor, result: np.ndarray, extras: tuple) -> None:
    """The same for an operation that is about to write its result into `target`."""
    if not state.forward_enabled:
        return
    tangents = _tangents_in(bound)
    made = _push(bound, tangents, [wrap(result)], extras)[0] if tangents else None
    write_tangent(target, made)


def write_tangent(target: Tensor, tangent: Tensor | None) -> None:
    """Make `tangent` (None: zero) that of a tensor which is written to; a base's and its views' share their memory."""
    existing = tangent_of(target)
    if existing is None and tangent is None:
        return
    if existing is None and target._view is None:
        assert tangent is not None
        if tangent._array.dtype != target._array.dtype:
            with Suspended():
                tangent = TENSORS.cast(tangent, target._array.dtype)
        set_tangent(target, tangent)
        return
    if existing is None:
        assert target._view is not None
        base = target._view.base
        whole = wrap(np.zeros_like(base._array))
        set_tangent(base, whole)
        with Suspended():
            existing = _replay(whole, target._view.steps)
        set_tangent(target, existing)
    with Suspended():
        if tangent is None:
            existing.zero_()  # type: ignore[attr-defined]
        else:
            existing.copy_(tangent)  # type: ignore[attr-defined]


def _tangents_in(bound: Binding) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in bound.op.differentiable:
        value = bound.named[name]
        if isinstance(value, Tensor):
            tangent = tangent_of(value)
            if tangent is not None:
                found[name] = tangent
        elif name in bound.op.lists:
            members = [tangent_of(member) for member in value]
            if any(one is not None for one in members):
                found[name] = members
    return found


def _push(bound: Binding, tangents: dict[str, Any], results: list[Tensor], extras: tuple) -> list[Tensor | None]:
    op = bound.op
    with Suspended():
        if op.jvp == "linear":
            made = _linear(bound, tangents)
        elif op.jvp == "elementwise" and op.outputs == 1 and _all_real(bound, results):
            made = [_elementwise(bound, tangents, results, extras)]
        elif callable(op.jvp):
            raise NotImplementedError(f"{op.name}: a jvp that is a function is not supported; leave it out to have it "
                                      "derived")
        else:
            made = _transposed(bound, tangents, results, extras)
        if not op.view:
            made = [_of_its_own(one, tangents) for one in made]
    return made


def _of_its_own(tangent: Tensor | None, tangents: dict[str, Any]) -> Tensor | None:
    """A copy where the tangent lies in an input's memory: a later in-place operation writes to it."""
    if tangent is None:
        return None
    for given in tangents.values():
        for one in given if given.__class__ is list else (given,):
            if one is not None and np.may_share_memory(one._array, tangent._array):
                return TENSORS.clone(tangent)
    return tangent


def _all_real(bound: Binding, results: list[Tensor]) -> bool:
    return not any(result._array.dtype.kind == "c" for result in results) and not any(
        isinstance(array, np.ndarray) and array.dtype.kind == "c" for array in bound.arrays.values())


def _linear(bound: Binding, tangents: dict[str, Any]) -> list[Tensor | None]:
    op = bound.op
    values = dict(bound.named)
    for name in op.differentiable:
        value = values[name]
        if name in op.lists:
            given = tangents.get(name) or [None] * len(value)
            values[name] = [wrap(np.zeros_like(member._array)) if one is None else one
                            for member, one in zip(value, given, strict=True)]
        elif name in tangents:
            values[name] = tangents[name]
        elif isinstance(value, Tensor):
            values[name] = wrap(np.zeros_like(value._array))
        elif name in bound.numbers:
            values[name] = 0
    made = op.call(*(values[name] for name in op.parameters))
    return [made] if isinstance(made, Tensor) else list(made)


def _node_for(bound: Binding, names: list[str], results: list[Tensor], extras: tuple, fitted: bool) -> list:
    """A node as backward would have it, to run its formula. It leads nowhere."""
    op = bound.op
    mask = sum(1 << i for i, name in enumerate(op.differentiable) if name in names)
    variant = variant_of(op, mask, fitted, bound.numbers, False, _all_real(bound, results))
    values: dict[str, Any] = dict(bound.named)
    # The results as tensors: the tangent may be differentiated in turn.
    if op.outputs == 1:
        values["result"] = results[0]
    elif op.outputs is None:
        values["results"] = results
    else:
        values.update((f"result{i}", result) for i, result in enumerate(results))
    values.update(zip(op.extra, extras, strict=True))
    metas = []
    for name in variant.needed:
        value = bound.named[name]
        metas.append(tuple((member._shape, member._array.dtype) for member in value) if name in op.lists
                     else (value._shape, value._array.dtype))
    outputs = None if op.outputs == 1 else tuple((result._shape, result._array.dtype) for result in results)
    return variant.make(values, (None, None), tuple(metas), outputs)


def _elementwise(bound: Binding, tangents: dict[str, Any], results: list[Tensor], extras: tuple) -> Tensor:
    total: Tensor | None = None
    shape, dtype = results[0]._shape, results[0]._array.dtype
    for name, tangent in tangents.items():
        if tangent._array.dtype != dtype:
            tangent = TENSORS.cast(tangent, dtype)
        if tangent._shape != shape:
            tangent = TENSORS.expand(tangent, shape)
        node = _node_for(bound, [name], results, extras, False)
        part = node[0].run_tensors(tangent, node[2], node)
        if part is not None:
            total = part if total is None else total + part
    if total is None:
        return wrap(np.zeros(shape, dtype))
    return total if total._shape == shape else TENSORS.expand(total, shape)


def _transposed(bound: Binding, tangents: dict[str, Any], results: list[Tensor], extras: tuple) -> list[Tensor | None]:
    from ..engine.call import grad
    names = [name for name in bound.op.differentiable if name in tangents]
    node = _node_for(bound, names, results, extras, True)
    given = [tangent for name in names for tangent in (tangents[name] if name in bound.op.lists else [tangents[name]])]
    enabled = state.grad
    set_grad(True)
    try:
        # Any value does, for the gradient is linear in it.
        probes = [wrap(np.zeros_like(result._array)).requires_grad_() if category(result._array.dtype) >= FLOATING
                  else None for result in results]
        made = node[0].run_tensors(probes[0] if bound.op.outputs == 1 else list(probes), node[2], node)
        gradients = made if isinstance(made, tuple) else (made,)
        pairs = [(g, TENSORS.cast(t, g._array.dtype) if t._array.dtype != g._array.dtype else t)
                 for g, t in zip(gradients, given, strict=True)
                 if g is not None and t is not None and g._node is not None]
        wanted = [probe for probe in probes if probe is not None]
        if not pairs:
            return [None if probe is None else wrap(np.zeros_like(probe._array)) for probe in probes]
        pushed = iter(grad([g for g, _ in pairs], wanted, [t for _, t in pairs], create_graph=enabled,
                           allow_unused=True, materialize_grads=True))
    finally:
        set_grad(enabled)
    return [None if probe is None else next(pushed) for probe in probes]
