"""Grad mode, inference mode and the other per-thread switches, cheap to consult while all are at rest.

Two numbers tell how many switches are away from rest in any thread: `grad_off` for grad mode, `modes` for all others.
They are copied into the globals of generated operations, which look into the thread's own state only when one is not 0.
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
_counts = {"modes": 0, "grad_off": 0}
_lock = threading.Lock()
_listeners: list[dict] = []


def listen(namespace: dict) -> None:
    """Keep `modes` and `grad_off` in the namespace true."""
    namespace.update(_counts)
    _listeners.append(namespace)


def shift(change: int, which: str = "modes") -> None:
    """Count one more (+1) or one fewer (-1) switch away from rest."""
    if change:
        with _lock:
            _counts[which] += change
            for namespace in _listeners:
                namespace[which] = _counts[which]


def set_grad(enabled: bool) -> None:
    """Set this thread's grad mode."""
    if state.grad is not enabled:
        state.grad = enabled
        shift(-1 if enabled else 1, "grad_off")


def is_grad_enabled() -> bool:
    return state.grad
