"""Checkpointing: a part of the model keeps only its inputs, and is run again when backward needs the values inside."""
from __future__ import annotations

import contextlib
import warnings
import weakref
from collections.abc import Callable, Iterable
from typing import Any

from ..arrays.random import default_generator
from ..autograd.function import Function
from ..autograd.grad_mode import enable_grad, no_grad
from ..autograd.graph import saved_tensors_hooks
from ..engine.call import backward
from ..engine.full import running
from ..graph.modes import is_grad_enabled, state
from ..tensor import Tensor


class CheckpointError(RuntimeError):
    """The second run of a checkpointed part was not the same as the first."""


class _Stop(Exception):
    """All that backward needs has been recomputed."""


class _EarlyStop:
    enabled: bool | None = None  # None: as each checkpoint says


@contextlib.contextmanager
def set_checkpoint_early_stop(enable: bool) -> Any:
    """Whether checkpoints made here stop their second run as soon as the last value needed is there."""
    previous = _EarlyStop.enabled
    _EarlyStop.enabled = enable
    try:
        yield
    finally:
        _EarlyStop.enabled = previous


def noop_context_fn() -> tuple:
    return contextlib.nullcontext(), contextlib.nullcontext()


def _described(tensor: Tensor) -> dict:
    return {"shape": tensor.shape, "dtype": tensor.dtype, "device": tensor.device}


_CHECKS: dict[str, Callable[[Tensor], Any]] = {"default": _described, "none": lambda tensor: None}


class _Holder:
    """What is kept in place of a tensor that was saved in the first run."""

    __slots__ = ("__weakref__",)


class _SaveInputs(Function):
    """Keeps a checkpoint's inputs as saved tensors: freed with the graph, and seen by an outer checkpoint."""

    @staticmethod
    def forward(ctx: Any, anchor: Tensor, *inputs: Any) -> Tensor:
        ctx.places = [i for i, one in enumerate(inputs) if isinstance(one, Tensor)]
        ctx.plain = [None if isinstance(one, Tensor) else one for one in inputs]
        ctx.save_for_backward(*(one for one in inputs if isinstance(one, Tensor)))
        return anchor.clone()  # type: ignore[attr-defined]

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        raise AssertionError("nothing leads here")


def _anchor_inputs(args: tuple) -> Any:
    """The grad_fn that holds the inputs."""
    from ..ops.table import TENSORS
    with enable_grad():
        return _SaveInputs.apply(TENSORS.empty((0,), requires_grad=True), *args).grad_fn


def _inputs_of(holder: Any) -> tuple:
    args = list(holder.plain)
    for place, tensor in zip(holder.places, holder.saved_tensors, strict=True):
        args[place] = tensor
    return tuple(args)


class _Frame:
    """One call of checkpoint(): how to run it again, and what of it is asked for."""

    def __init__(self, function: Callable, args: tuple, kwargs: dict, early_stop: bool, check: Callable,
                 preserve_rng: bool, context: Callable) -> None:
        self.function = function
        self.inputs = _anchor_inputs(args)
        self.kwargs = kwargs
        self.early_stop = early_stop
        self.check = check
        self.context = context
        self.random = default_generator.get_state_array() if preserve_rng else None
        self.holders: list[weakref.ref[_Holder]] = []
        self.described: list[Any] = []
        self.recomputed: weakref.WeakKeyDictionary[_Holder, Tensor] = weakref.WeakKeyDictionary()
        self.complete = False  # the first run is over

    # -- the first run -----------------------------------------------------------------------------------------------
    def pack(self, tensor: Tensor) -> _Holder:
        holder = _Holder()
        self.holders.append(weakref.ref(holder))
        self.described.append(self.check(tensor))
        return holder

    # -- the second --------------------------------------------------------------------------------------------------
    def unpack(self, holder: _Holder) -> Tensor:
        if holder not in self.recomputed:
            self.run_again()
        # Each value is handed out once; asked for again, as by another backward pass, everything is recomputed.
        return self.recomputed.pop(holder)

    def run_again(self) -> None:
        args = _inputs_of(self.inputs)
        self.recomputed.clear()
        counted = 0
        found: list[Any] = []  # what each saved value looks like now

        def pack(tensor: Tensor) -> Any:
            nonlocal counted
            position = counted
            counted += 1
            if position >= len(self.holders):
                if not self.complete:
                    return tensor
                raise CheckpointError("torch.utils.checkpoint: trying to save more tensors during recomputation than "
                                      "during the original forward pass." + _ADVICE)
            found.append(self.check(tensor))
            holder = self.holders[position]()
            if holder is not None:
                self.recomputed[holder] = tensor.detach()
            if self.early_stop and counted == len(self.holders):
                raise _Stop
            return tensor

        def unpack(tensor: Tensor) -> Tensor:
            return tensor

        random = default_generator.get_state_array() if self.random is not None else None
        if self.random is not None:
            default_generator.set_state_array(self.random)
        try:
            with _plain_modes(), self.context(), saved_tensors_hooks(pack, unpack):
                self.function(*args, **self.kwargs)
        except _Stop:
            pass
        finally:
            if random is not None:
                default_generator.set_state_array(random)
        if counted < len(self.holders):
            raise CheckpointError("torch.utils.checkpoint: A different number of tensors was saved during the original "
                                  "forward and recomputation.\nNumber of tensors saved during forward: "
                                  f"{len(self.holders)}\nNumber of tensors saved during recomputation: "
                                  f"{counted}." + _ADVICE)
        different = [f"tensor at position {i}:\nsaved metadata: {before}\nrecomputed metadata: {now}"
                     for i, (before, now) in enumerate(zip(self.described, found, strict=False)) if before != now]
        if different:
            raise CheckpointError("torch.utils.checkpoint: Recomputed values for the following tensors have different "
                                  "metadata than during the forward pass.\n" + "\n".join(different) + "." + _ADVICE)


_ADVICE = ("\nThe function gave another graph when it was run again: look for randomness outside the default "
           "generator, for counters, for state it changes, or for parameters replaced since.")


@contextlib.contextmanager
def _plain_modes() -> Any:
    """Grad mode on, and no saved-tensor hooks of whoever is running backward."""
    hooks = state.saved_hooks
    state.saved_hooks = ()
    try:
        with enable_grad():
            yield
    finally:
        state.saved_hooks = hooks


def detach_variable(inputs: tuple) -> tuple:
    """The inputs cut off from their history, each requiring grad if it did."""
    if not isinstance(inputs, tuple):
        raise RuntimeError(f"Only tuple of tensors is supported. Got Unsupported input type: {type(inputs).__name__}")
    return tuple(one.detach().requires_grad_(one.requires_grad) if isinstance(one, Tensor) else one for one in inputs)


def check_backward_validity(inputs: Iterable[Any]) -> None:
    if not any(isinstance(one, Tensor) and one.requires_grad for one in inputs):
        warnings.warn("None of the inputs have requires_grad=True. Gradients will be None", stacklevel=3)


class CheckpointFunction(Function):
    """The reentrant kind: no graph in the first run, a backward pass of its own in the second."""

    @staticmethod
    def forward(ctx: Any, run_function: Callable, preserve_rng_state: bool, *args: Any) -> Any:
        check_backward_validity(args)
        ctx.run_function = run_function
        ctx.random = default_generator.get_state_array() if preserve_rng_state else None
        ctx.places = [i for i, one in enumerate(args) if isinstance(one, Tensor)]
        ctx.plain = [None if isinstance(one, Tensor) else one for one in args]
        ctx.save_for_backward(*(one for one in args if isinstance(one, Tensor)))
        with no_grad():
            return run_function(*args)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        if running.passes and running.passes[-1].for_inputs:
            raise RuntimeError("When use_reentrant=True, torch.utils.checkpoint is incompatible with .grad() or "
                               "passing an `inputs` parameter to .backward(). Pass "
                               "use_reentrant=False, or call .backward() alone.")
        detached = detach_variable(_inputs_of(ctx))
        random = default_generator.get_state_array()
        if ctx.random is not None:
            default_generator.set_state_array(ctx.random)
        try:
            with enable_grad():
                made = ctx.run_function(*detached)
        finally:
            if ctx.random is not None:
                default_generator.set_state_array(random)
        outputs = made if isinstance(made, tuple) else (made,)
        pairs = [(o, g) for o, g in zip(outputs, gradients, strict=True) if isinstance(o, Tensor) and o.requires_grad]
        if not pairs:
            raise RuntimeError("none of output has requires_grad=True, this checkpoint() is not necessary")
        backward([o for o, _ in pairs], [g for _, g in pairs])
        return (None, None, *(one._grad if isinstance(one, Tensor) else None for one in detached))


def checkpoint(function: Callable, *args: Any, use_reentrant: bool | None = None,
               context_fn: Callable = noop_context_fn, determinism_check: str = "default", debug: bool = False,
               early_stop: bool = True, **kwargs: Any) -> Any:
    """Run a function without keeping the values inside for backward: they are computed again when it needs them."""
    if use_reentrant is None:
        warnings.warn("torch.utils.checkpoint: the use_reentrant parameter should be passed explicitly. It "
                      "is True where it is not, for now; False is the better choice.", stacklevel=2)
        use_reentrant = True
    preserve = kwargs.pop("preserve_rng_state", True)
    if use_reentrant:
        if kwargs:
            raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
        if context_fn is not noop_context_fn or debug:
            raise ValueError("Passing `context_fn` or `debug` is only supported when use_reentrant=False.")
        return CheckpointFunction.apply(function, preserve, *args)
    if determinism_check not in _CHECKS:
        raise ValueError(f"determinism_check should be one of {list(_CHECKS)}, but got {determinism_check}")
    forward_context, recompute_context = context_fn()
    if not is_grad_enabled():
        with forward_context:
            return function(*args, **kwargs)
    frame = _Frame(function, args, kwargs, early_stop if _EarlyStop.enabled is None else _EarlyStop.enabled,
                   _CHECKS[determinism_check], preserve, lambda: recompute_context)
    with forward_context, saved_tensors_hooks(frame.pack, frame.unpack):
        result = function(*args, **kwargs)
    frame.complete = True
    return result


def checkpoint_sequential(functions: Any, segments: int, input: Any, use_reentrant: bool | None = None,
                          **kwargs: Any) -> Any:
    """Run modules one after the other, in segments that are each checkpointed, but for the last."""
    if use_reentrant is None:
        warnings.warn("torch.utils.checkpoint.checkpoint_sequential: the use_reentrant parameter should be passed "
                      "explicitly. use_reentrant=False is recommended.", stacklevel=2)
        use_reentrant = True
    preserve = kwargs.pop("preserve_rng_state", True)
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    steps = list(functions.children()) if hasattr(functions, "children") else list(functions)

    def run(start: int, end: int) -> Callable:
        def segment(value: Any) -> Any:
            for step in steps[start:end + 1]:
                value = step(value)
            return value
        return segment

    size = len(steps) // segments
    end = -1
    for start in range(0, size * (segments - 1), size):
        end = start + size - 1
        input = checkpoint(run(start, end), input, use_reentrant=use_reentrant, preserve_rng_state=preserve)
    return run(end + 1, len(steps) - 1)(input)


__all__ = ["CheckpointError", "CheckpointFunction", "check_backward_validity", "checkpoint", "checkpoint_sequential",
           "detach_variable", "noop_context_fn", "set_checkpoint_early_stop"]
