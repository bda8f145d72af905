"""Version families: the tensors that share memory, how often it was written, and which views must follow a write."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .node import ORDER, SPEC, extra_of, next_order

if TYPE_CHECKING:
    from ..tensor import Tensor

# Writes remembered one by one, so that a message can tell which version a node had saved.
_REMEMBERED = 512


def refresh_views(family: Family) -> None:
    """What a write means for the history of the views; ops.inplace puts its function here."""


class Family:
    """Tensors over one memory. Made on first need: a view, a detach, an in-place write."""

    __slots__ = ("array", "history", "producer", "sweep", "version", "views", "written")

    def __init__(self, array: Any, producer: Any = None) -> None:
        self.array = array  # the base's, to describe it by
        self.version = 0
        self.written = 0  # the order of the latest write; 0 is before every node
        self.history: list[int] = []  # the orders of the latest writes
        self.views: list | None = None  # weak references to the views, for a write to the base to reach them
        self.sweep = 64  # how many of them there may be before the dead ones are dropped
        self.producer = producer  # the node whose output this memory is, for it may have saved it

    def version_at(self, order: int) -> int:
        """The version that a value saved by a node of this order had."""
        return self.version - sum(1 for written in self.history if written < order)

    def wrote(self) -> None:
        """Count one write; a node that had saved this memory as its output is told."""
        producer = self.producer
        if producer is not None:
            self.producer = None
            node = producer if producer.__class__ is list else producer.node
            saved = node[SPEC].saves_output
            if saved and node is not producer:  # of several outputs it matters which one the node saved
                saved = {f"result{producer.number}", "results"} & set(node[SPEC].saved_names)
            if saved:
                extra_of(node).outdated = (self, self.version, self.array)
        if self.views:
            refresh_views(self)
        self.version += 1
        self.written = next_order()
        self.history.append(self.written)
        if len(self.history) > _REMEMBERED:
            del self.history[:_REMEMBERED // 2]

    def changed_since(self, node: list) -> bool:
        return self.written < node[ORDER]


def family_of(tensor: Tensor) -> Family:
    """The tensor's family, made if it has none yet."""
    family = tensor._family
    if family is None:
        node = tensor._node
        producer = node if node.__class__ is list or hasattr(node, "number") else None
        family = tensor._family = Family(tensor._array, producer)
    return family


def bump(tensor: Tensor) -> None:
    """Count one write to the tensor's memory. For code that writes to `tensor._array` itself, such as optimizers."""
    family_of(tensor).wrote()
