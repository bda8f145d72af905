"""The graph as users work with it: hooks on saved tensors, hooks over several gradients, edges and nodes."""
from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from ..engine.full import running
from ..graph.modes import shift, state
from ..graph.node import ORDER
from ..graph.versions import bump
from ..ops.table import TENSORS
from ..tensor import Tensor
from ..tensor.hooks import RemovableHandle
from ..tensor.visible import GradientEdge, Node, SavedTensor, gradient_edge


class saved_tensors_hooks:
    """Within it, a tensor saved for backward is kept as what `pack_hook` makes of it; `unpack_hook` gets it back."""

    def __init__(self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]) -> None:
        self.pack_hook = pack_hook
        self.unpack_hook = unpack_hook

    def __enter__(self) -> Any:
        if state.saved_hooks_disabled is not None:
            raise RuntimeError(state.saved_hooks_disabled)
        state.saved_hooks = (*state.saved_hooks, (self.pack_hook, self.unpack_hook))
        shift(1)
        return None

    def __exit__(self, *exception: Any) -> None:
        state.saved_hooks = state.saved_hooks[:-1]
        shift(-1)


class save_on_cpu(saved_tensors_hooks):
    """Keeps saved tensors in the CPU's memory until backward needs them."""

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        def pack(tensor: Tensor) -> tuple:
            return tensor.device, tensor.cpu()  # type: ignore[attr-defined]

        def unpack(packed: tuple) -> Tensor:
            device, tensor = packed
            return tensor.to(device=device, non_blocking=pin_memory)

        super().__init__(pack, unpack)


class disable_saved_tensors_hooks:
    """Within it, saved_tensors_hooks raises an error with this message."""

    def __init__(self, error_message: str) -> None:
        self.message = error_message

    def __enter__(self) -> None:
        self.previous = state.saved_hooks_disabled
        if state.saved_hooks:
            raise RuntimeError(self.message)
        state.saved_hooks_disabled = self.message

    def __exit__(self, *exception: Any) -> None:
        state.saved_hooks_disabled = self.previous

    def __call__(self, function: Callable) -> Callable:
        from functools import wraps

        @wraps(function)
        def inside(*args: Any, **kwargs: Any) -> Any:
            with type(self)(self.message):
                return function(*args, **kwargs)
        return inside


class _Handle:
    """Stands for a saved tensor while mutation is allowed."""

    __slots__ = ("__weakref__", "tensor")

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor


class _Guard:
    """Copies saved tensors just before they are written over."""

    def __init__(self) -> None:
        self.handles: weakref.WeakSet[_Handle] = weakref.WeakSet()
        self.written: weakref.WeakSet[_Handle] = weakref.WeakSet()

    def clear(self) -> None:
        """Forget every saved tensor."""
        self.handles.clear()
        self.written.clear()

    def pack(self, tensor: Tensor) -> _Handle:
        handle = _Handle(tensor)
        self.handles.add(handle)
        return handle

    def unpack(self, handle: _Handle) -> Tensor:
        if state.mutation_guard is not self:
            raise AssertionError("Trying to backward outside of the 'allow_mutation_on_saved_tensors' context in which "
                                 "the graph was originally recorded.")
        return handle.tensor

    def before_write(self, target: Tensor) -> None:
        import numpy as np
        for handle in list(self.handles):
            if handle not in self.written and np.may_share_memory(handle.tensor._array, target._array):
                self.written.add(handle)
                handle.tensor = TENSORS.clone(handle.tensor)


class allow_mutation_on_saved_tensors:
    """Within it, writing to a tensor that was saved for backward is no error: the saved value is copied first."""

    def __enter__(self) -> _Guard:
        if state.mutation_guard is not None:
            raise RuntimeError("allow_mutation_on_saved_tensors contexts cannot be nested")
        guard = _Guard()
        self.hooks = saved_tensors_hooks(guard.pack, guard.unpack)
        self.hooks.__enter__()
        state.mutation_guard = guard
        shift(1)
        return guard

    def __exit__(self, *exception: Any) -> None:
        guard: Any = state.mutation_guard
        state.mutation_guard = None
        shift(-1)
        self.hooks.__exit__()
        guard.clear()


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """The place in the graph where this tensor's gradient arrives."""
    return gradient_edge(tensor)


def increment_version(tensor: Any) -> None:
    """Count a write to the tensor (or tensors) that was made behind autograd's back."""
    for one in (tensor,) if isinstance(tensor, Tensor) else tensor:
        if one._inference:
            raise RuntimeError("Cannot increment the version of an inference tensor, which tracks none.")
        bump(one)


class _Handles(RemovableHandle):
    """Removes several hooks at once."""

    def __init__(self, handles: tuple) -> None:
        self.handles = handles

    def remove(self) -> None:
        for handle in self.handles:
            handle.remove()

    def __getstate__(self) -> tuple:
        return self.handles

    def __setstate__(self, values: tuple) -> None:
        self.handles = values


def register_multi_grad_hook(tensors: Sequence[Tensor], fn: Callable, *, mode: str = "all") -> RemovableHandle:
    """Run a hook over several tensors' gradients.

    mode "all": `fn(gradients)` once all those that the backward pass reaches are there, None for the others.
    mode "any": `fn(gradient)` for the first that is there.
    """
    if mode not in ("all", "any"):
        raise ValueError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    lock = threading.Lock()
    if mode == "any":
        seen: set[int] = set()

        def first(gradient: Tensor) -> None:
            number = running.passes[-1].call.number
            with lock:
                if number in seen:
                    return
                seen.add(number)
            fn(gradient)

        return _Handles(tuple(tensor.register_hook(first) for tensor in tensors))
    collected: dict[int, list] = {}
    # A node's order or a weak reference to a leaf: a hook must not keep the graph it belongs to alive.
    places: list[Any] = [weakref.ref(tensor) if tensor.is_leaf else tensor.grad_fn._list[ORDER] for tensor in tensors]

    def hook_for(index: int) -> Callable:
        def hook(gradient: Tensor) -> None:
            current = running.passes[-1]
            with lock:
                entry = collected.get(current.call.number)
                if entry is None:
                    expected = sum(_reaches(current, place) for place in places)
                    entry = collected[current.call.number] = [[None] * len(places), expected]
                entry[0][index] = gradient
                entry[1] -= 1
                if entry[1]:
                    return
                del collected[current.call.number]
            fn(entry[0])
        return hook

    return _Handles(tuple(tensor.register_hook(hook_for(i)) for i, tensor in enumerate(tensors)))


def _reaches(current: Any, place: Any) -> bool:
    if isinstance(place, int):
        return place in current.reached
    leaf = place()
    return leaf is not None and current.reaches_leaf(leaf)


__all__ = [
    "GradientEdge", "Node", "SavedTensor", "allow_mutation_on_saved_tensors", "disable_saved_tensors_hooks",
    "get_gradient_edge", "increment_version", "register_multi_grad_hook", "save_on_cpu", "saved_tensors_hooks"]
