"""cuDNN's switches, which a program may set before it knows whether there is a GPU."""
from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

enabled = allow_tf32 = True
benchmark = deterministic = False
benchmark_limit: int | None = None  # cuDNN sets it, and there is none


def is_available() -> bool:
    return False


def version() -> None:
    return None


@contextmanager
def flags(enabled: bool = False, benchmark: bool = False, benchmark_limit: int = 10, deterministic: bool = False,
          allow_tf32: bool = True) -> Iterator[None]:
    """The switches as given, for the length of the block."""
    now = dict(enabled=enabled, benchmark=benchmark, benchmark_limit=benchmark_limit, deterministic=deterministic,
               allow_tf32=allow_tf32)
    before = {name: globals()[name] for name in now}
    globals().update(now)
    try:
        yield
    finally:
        globals().update(before)
