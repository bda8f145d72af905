"""Grad mode and inference mode, as context managers and as decorators."""
from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from ..graph.modes import set_grad, shift, state

_GENERATOR = 0x20  # a code object's flag; `inspect` would cost a millisecond at import


class Switch:
    """A context manager that also decorates: the decorated function runs inside a fresh copy of it at every call."""

    def clone(self) -> Switch:
        return type(self)()

    def __enter__(self) -> Any:
        raise NotImplementedError

    def __exit__(self, *exception: Any) -> None:
        raise NotImplementedError

    def __call__(self, function: Callable) -> Callable:
        if isinstance(function, type):
            import warnings
            warnings.warn("Decorating classes is deprecated and will be disabled in future versions. Put it "
                          "over the methods that need it: over a class it has only ever reached __init__.",
                          FutureWarning, stacklevel=2)

            def made(*args: Any, **kwargs: Any) -> Any:
                with self.clone():
                    return function(*args, **kwargs)
            return made
        code = getattr(function, "__code__", None)
        if code is not None and code.co_flags & _GENERATOR:
            return self._around_generator(function)

        @wraps(function)
        def inside(*args: Any, **kwargs: Any) -> Any:
            with self.clone():
                return function(*args, **kwargs)
        return inside

    def _around_generator(self, function: Callable) -> Callable:
        """The body runs inside the mode; the code that iterates over it does not."""

        @wraps(function)
        def inside(*args: Any, **kwargs: Any) -> Any:
            generator = function(*args, **kwargs)
            try:
                with self.clone():
                    sent = generator.send(None)
                while True:
                    try:
                        request = yield sent
                    except GeneratorExit:
                        with self.clone():
                            generator.close()
                        raise
                    except BaseException as error:
                        with self.clone():
                            sent = generator.throw(error)
                    else:
                        with self.clone():
                            sent = generator.send(request)
            except StopIteration as stop:
                return stop.value
        return inside


class _PlainSwitch(Switch):
    """One without arguments: the parentheses may be left out where it decorates."""

    def __new__(cls, function: Callable | None = None) -> Any:
        return super().__new__(cls) if function is None else cls()(function)


class no_grad(_PlainSwitch):
    """Nothing computed here gets a history."""

    def __enter__(self) -> None:
        self.previous = state.grad
        set_grad(False)

    def __exit__(self, *exception: Any) -> None:
        set_grad(self.previous)


class enable_grad(_PlainSwitch):
    """Histories are recorded again, within no_grad."""

    def __enter__(self) -> None:
        self.previous = state.grad
        set_grad(True)

    def __exit__(self, *exception: Any) -> None:
        set_grad(self.previous)


class set_grad_enabled(Switch):
    """Grad mode on or off: from now on when merely called, for the block when used with `with`."""

    def __init__(self, mode: bool) -> None:
        self.previous = state.grad
        self.mode = bool(mode)
        set_grad(self.mode)

    def __call__(self, function: Callable) -> Callable:
        set_grad(self.previous)  # a decorator changes nothing until the function is called
        return super().__call__(function)

    def clone(self) -> set_grad_enabled:
        return set_grad_enabled(self.mode)

    def __enter__(self) -> None:
        set_grad(self.mode)

    def __exit__(self, *exception: Any) -> None:
        set_grad(self.previous)


class inference_mode(Switch):
    """As no_grad, and what is made here never takes part in a graph."""

    def __new__(cls, mode: Any = True) -> Any:
        return super().__new__(cls) if isinstance(mode, bool) else cls()(mode)

    def __init__(self, mode: bool = True) -> None:
        self.mode = mode

    def clone(self) -> inference_mode:
        return inference_mode(self.mode)

    def __enter__(self) -> None:
        self.previous = (state.inference, state.grad, state.forward_enabled)
        _set_inference(self.mode)
        set_grad(not self.mode)
        state.forward_enabled = not self.mode

    def __exit__(self, *exception: Any) -> None:
        inference, grad, forward = self.previous
        _set_inference(inference)
        set_grad(grad)
        state.forward_enabled = forward


def _set_inference(enabled: bool) -> None:
    if state.inference is not enabled:
        state.inference = enabled
        shift(1 if enabled else -1)


def is_inference_mode_enabled() -> bool:
    return state.inference


class set_multithreading_enabled(Switch):
    """Kept for programs that set it: a backward pass here always runs in the thread that calls it."""

    def __init__(self, mode: bool) -> None:
        self.previous = state.multithreading
        self.mode = state.multithreading = bool(mode)

    def clone(self) -> set_multithreading_enabled:
        return set_multithreading_enabled(self.mode)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exception: Any) -> None:
        state.multithreading = self.previous


def is_multithreading_enabled() -> bool:
    return state.multithreading


class _unsafe_preserve_version_counter(Switch):
    """Writes made here to the tensors given do not count: at the end their versions are what they were."""

    def __init__(self, tensors: Any) -> None:
        from ..tensor import Tensor
        self.tensors = (tensors,) if isinstance(tensors, Tensor) else tuple(tensors)

    def __enter__(self) -> None:
        from ..graph.versions import family_of
        self.previous = []
        for tensor in self.tensors:
            family = family_of(tensor)
            self.previous.append((family, family.version, family.written, list(family.history)))

    def __exit__(self, *exception: Any) -> None:
        for family, version, written, history in self.previous:
            family.version, family.written, family.history = version, written, history
