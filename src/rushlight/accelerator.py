"""Accelerators in general: Rushlight runs on the CPU, so there are none."""
from __future__ import annotations

from typing import Any, NoReturn


def is_available() -> bool:
    return False


def device_count() -> int:
    return 0


def current_accelerator(check_available: bool = False) -> None:
    return None


def _absent(*args: Any, **kwargs: Any) -> NoReturn:
    raise RuntimeError("Cannot access accelerator device when none is available. Rushlight runs on the CPU only: ask "
                       "accelerator.is_available() first.")


current_device_index = current_device_idx = current_stream = set_device_index = set_device_idx = set_stream = _absent


def synchronize(device: Any = None) -> None:
    """Nothing runs in the background, so there is nothing to wait for."""


def empty_cache() -> None:
    """Nothing is cached."""
