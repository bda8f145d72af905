"""torch.nn.modules.module: Module, and hooks that run for every module."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...tensor.hooks import RemovableHandle
from ..hooks import (
    GLOBAL_BACKWARD_HOOKS,
    GLOBAL_BACKWARD_PRE_HOOKS,
    GLOBAL_FORWARD_HOOKS,
    GLOBAL_FORWARD_HOOKS_WITH_KWARGS,
    GLOBAL_FORWARD_PRE_HOOKS,
    add_hook,
)
from ..module import Module


def register_module_forward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """A forward pre-hook on every module."""
    Module._hooked = True
    return add_hook(GLOBAL_FORWARD_PRE_HOOKS, hook)


def register_module_forward_hook(
    hook: Callable[..., Any], *, with_kwargs: bool = False, always_call: bool = False
) -> RemovableHandle:
    """A forward hook on every module."""
    if always_call:
        raise NotImplementedError("register_module_forward_hook: always_call=True; register it on the modules instead.")
    Module._hooked = True
    return add_hook(GLOBAL_FORWARD_HOOKS, hook, marks=(GLOBAL_FORWARD_HOOKS_WITH_KWARGS,) if with_kwargs else ())


def register_module_full_backward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """A backward pre-hook on every module."""
    Module._hooked = True
    return add_hook(GLOBAL_BACKWARD_PRE_HOOKS, hook)


def register_module_full_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """A full backward hook on every module."""
    Module._hooked = True
    return add_hook(GLOBAL_BACKWARD_HOOKS, hook)
