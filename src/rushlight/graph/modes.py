"""Grad mode, inference mode and the other per-thread switches, cheap to consult while all are at rest.

`switches["active"]` counts the switches that are away from their default in any thread. While it is 0, which is the
ordinary case, an operation reads that one number; only otherwise does it look into the thread's own state.
"""
from __future__ import annotations

import threading


class State(threading.local):
    """One thread's switches. The class attributes are every new thread's defaults."""

    grad = True
    inference = False
    forward_level = -1
    forward_enabled = True
    anomaly = False
    anomaly_check_nan = True
    multithreading = True
    # The stack of (pack, unpack) pairs; the last one is in force. A string instead means "disabled, and why".
    saved_hooks: tuple = ()
    saved_hooks_disabled: str | None = None
    mutation_guard: object = None


state = State()
# Generated operations have this very dictionary's value copied into their globals by `on_change` listeners.
_active = 0
_lock = threading.Lock()
_listeners: list = []


def listen(namespace: dict) -> None:
    """Keep `namespace["modes"]` at the number of switches that are away from rest."""
    namespace["modes"] = _active
    _listeners.append(namespace)


def shift(change: int) -> None:
    """Count one more (+1) or one fewer (-1) switch away from rest."""
    global _active
    if change:
        with _lock:
            _active += change
            for namespace in _listeners:
                namespace["modes"] = _active


def set_grad(enabled: bool) -> None:
    """Set this thread's grad mode."""
    if state.grad is not enabled:
        state.grad = enabled
        shift(-1 if enabled else 1)


def is_grad_enabled() -> bool:
    return state.grad
