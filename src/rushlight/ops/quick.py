"""The short path of operations that take or give several tensors, where no mode is on.

ops.compile writes such a path for operations with a fixed number of tensors; these have lists, so theirs is here.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..graph import facts
from ..graph.modes import listen, state
from ..graph.node import LEAF, Output, next_order
from ..tensor import Tensor
from .apply import link_view
from .compile import Variant, variant_of
from .table import Op

modes = 0  # how many switches are away from rest: graph.modes keeps it up to date
listen(globals())
_new = object.__new__


class Quick:
    """An operation's short path."""

    __slots__ = ("op", "variant")

    def __init__(self, op: Op) -> None:
        self.op = op
        self.variant: Variant | None = None

    def node(self, kept: tuple, edges: Any, saved: Any = ()) -> list:
        """A node of the operation, for gradients that fit as they are."""
        variant = self.variant
        if variant is None:
            variant = self.variant = variant_of(self.op, 1, False)
        code, instruction = facts.here()
        return [variant, next_order(), saved, kept, edges, code, instruction, None]


def common_real(tensors: Any) -> Any:
    """The dtype of tensors that may take a short path together: None where they may not."""
    if modes or not tensors:
        return None
    try:
        real = tensors[0]._real
        for one in tensors:
            if one._real is not real:
                return None
    except (AttributeError, TypeError):
        return None  # not a sequence of tensors: the long way says so
    return real


def tensor_over(array: np.ndarray, real: Any) -> Tensor:
    """A tensor over an array of a dtype known to be `real`."""
    result: Tensor = _new(Tensor)
    result._array = array
    result._shape = array.shape
    result._real = real
    result._node = result._family = None
    return result


def edges_from(tensors: Any) -> tuple | None:
    """Where the gradients of a list of tensors go; None if nowhere."""
    if not state.grad:
        return None
    edges = tuple([one if one._node is LEAF else one._node for one in tensors])
    for edge in edges:
        if edge is not None:
            return edges
    return None


def pieces(quick: Quick, source: Tensor, arrays: tuple, arguments: tuple, kept: tuple) -> tuple[Tensor, ...]:
    """The results of an operation that gives several views."""
    op, real = quick.op, source._real
    results = []
    for number, array in enumerate(arrays):
        result = tensor_over(array, real)
        link_view(result, source, op, arguments, number)
        results.append(result)
    if source._node is not None and state.grad:
        metas = tuple([(array.shape, array.dtype) for array in arrays])
        node = quick.node((*kept, metas), source if source._node is LEAF else source._node)
        for number, result in enumerate(results):
            result._node = Output(node, number)
    return tuple(results)
