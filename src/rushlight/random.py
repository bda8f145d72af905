"""The default random stream: its seed, its state, and a way to use it without leaving a trace."""
from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .arrays.random import default_generator
from .ops.randomness import get_rng_state, initial_seed, manual_seed, seed, set_rng_state


@contextmanager
def fork_rng(devices: Any = None, enabled: bool = True, _caller: str = "fork_rng", _devices_kw: str = "devices",
             device_type: str = "cuda") -> Iterator[None]:
    """Within the block the stream goes on as usual; after it, it stands where it stood before."""
    if not enabled:
        yield
        return
    if devices:
        from .cuda import no_device
        no_device()
    before = get_rng_state()
    try:
        yield
    finally:
        set_rng_state(before)


__all__ = ["default_generator", "fork_rng", "get_rng_state", "initial_seed", "manual_seed", "seed", "set_rng_state"]
