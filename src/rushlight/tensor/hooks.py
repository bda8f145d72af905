"""Hooks on tensors: what runs when a gradient arrives, handles to take a hook away again, and retain_grad."""
from __future__ import annotations

import weakref
from collections import OrderedDict
from collections.abc import Callable
from itertools import count
from typing import TYPE_CHECKING, Any

from ..graph.node import LEAF, Output, extra_of

if TYPE_CHECKING:
    from .core import Tensor

_next_number = count().__next__


class RemovableHandle:
    """What registering a hook returns: remove() takes the hook away, and so does leaving a `with` block."""

    def __init__(self, hooks: Any, *, extra_dict: Any = None) -> None:
        # Weak: a hook that removes itself refers to its handle, and must not keep itself alive through it.
        self.hooks_dict_ref = weakref.ref(hooks)
        self.id = _next_number()
        extras = () if extra_dict is None else extra_dict if isinstance(extra_dict, (list, tuple)) else (extra_dict,)
        self.extra_dict_ref = tuple(weakref.ref(extra) for extra in extras)

    def remove(self) -> None:
        for reference in (self.hooks_dict_ref, *self.extra_dict_ref):
            table = reference()
            if table is not None:
                table.pop(self.id, None)

    def __getstate__(self) -> tuple:
        return self.hooks_dict_ref(), self.id, tuple(reference() for reference in self.extra_dict_ref)

    def __setstate__(self, values: tuple) -> None:
        def reference(table: Any) -> Any:
            return weakref.ref(OrderedDict() if table is None else table)
        self.hooks_dict_ref = reference(values[0])
        self.id = values[1]
        self.extra_dict_ref = tuple(reference(table) for table in values[2])

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *exception: Any) -> None:
        self.remove()


def add_hook(hooks: Any, hook: Callable, prepend: bool = False) -> RemovableHandle:
    """Put a hook into a table of hooks."""
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    if prepend:
        hooks.move_to_end(handle.id, last=False)
    return handle


def _place(tensor: Tensor) -> tuple[list, int]:
    """The node that computed a tensor, and the number of the output it is."""
    node = tensor._node
    return (node.node, node.number) if node.__class__ is Output else (node, 0)


def register_tensor_hook(tensor: Tensor, hook: Callable) -> RemovableHandle:
    """Have `hook(gradient)` run when the tensor's gradient is there; what it returns replaces the gradient."""
    if tensor._node is None:
        raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
    if tensor.is_leaf:
        if tensor._hooks is None:
            tensor._hooks = OrderedDict()
        tensor._hooked = True
        return add_hook(tensor._hooks, hook)
    node, number = _place(tensor)
    extra = extra_of(node)
    if extra.tensor_hooks is None:
        extra.tensor_hooks = {}
    return add_hook(extra.tensor_hooks.setdefault(number, OrderedDict()), hook)


def register_post_accumulate_grad_hook(tensor: Tensor, hook: Callable) -> RemovableHandle:
    """Have `hook(leaf)` run after a gradient was added to leaf.grad."""
    if tensor._node is None:
        raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
    if tensor._node is not LEAF:
        raise RuntimeError("post accumulate grad hooks cannot be registered on non-leaf tensors")
    if tensor._accumulate_hooks is None:
        tensor._accumulate_hooks = OrderedDict()
    tensor._hooked = True
    return add_hook(tensor._accumulate_hooks, hook)


def retain_grad(tensor: Tensor) -> None:
    """Have a tensor that is no leaf keep its gradient in .grad too."""
    if tensor._node is None:
        raise RuntimeError("can't retain_grad on Tensor that has requires_grad=False")
    if tensor.is_leaf or tensor._retains_grad:
        return
    tensor._retains_grad = True
    _retain_here(tensor)


def _retain_here(tensor: Tensor) -> None:
    node, number = _place(tensor)
    extra = extra_of(node)
    if extra.retained is None:
        extra.retained = {}
    extra.retained[number] = weakref.ref(tensor)


def follow_history(tensor: Tensor, previous: Any) -> None:
    """Move retain_grad to a tensor's new history, which an in-place operation gave it."""
    if previous is not None and previous is not LEAF:
        node, number = (previous.node, previous.number) if previous.__class__ is Output else (previous, 0)
        extra = extra_of(node)
        if extra.retained is not None and number in extra.retained and extra.retained[number]() is tensor:
            del extra.retained[number]
    if tensor._node is not None and tensor._node is not LEAF:
        _retain_here(tensor)
