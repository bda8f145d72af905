"""CUDA as a program without a GPU sees it: not available, no devices, nothing to seed or to wait for."""
from __future__ import annotations

from contextlib import nullcontext
from typing import Any, NoReturn

from . import amp
from .amp import GradScaler


def no_device(*args: Any, **kwargs: Any) -> NoReturn:
    """PyTorch's error for CUDA where there is none, with the way out."""
    raise AssertionError("Torch not compiled with CUDA enabled. Rushlight runs on the CPU only: ask cuda.is_available() "
                         "first, and use device='cpu'.")


current_device = set_device = get_device_name = get_device_properties = get_device_capability = mem_get_info = no_device
get_rng_state = set_rng_state = current_stream = default_stream = set_stream = Stream = Event = init = no_device
memory_summary = can_device_access_peer = utilization = temperature = CUDAGraph = graph = no_device


def is_available() -> bool:
    return False


def is_initialized() -> bool:
    return False


def is_bf16_supported(including_emulation: bool = True) -> bool:
    return False


def device_count() -> int:
    return 0


def get_arch_list() -> list[str]:
    return []


def get_rng_state_all() -> list[Any]:
    return []


def set_rng_state_all(new_states: Any) -> None:
    """There are no devices to set; states that were saved where there were some cannot be used."""
    if len(new_states):
        no_device()


def manual_seed(seed: int) -> None:
    """There is no stream to seed; as in PyTorch, that is no reason to fail."""


def manual_seed_all(seed: int) -> None:
    """There are no streams to seed; as in PyTorch, that is no reason to fail."""


def seed() -> None:
    """There is no stream to seed."""


seed_all = seed


def synchronize(device: Any = None) -> None:
    """Nothing runs in the background, so there is nothing to wait for."""


def empty_cache() -> None:
    """Nothing is cached."""


ipc_collect = empty_cache


def memory_allocated(device: Any = None) -> int:
    return 0


max_memory_allocated = memory_reserved = max_memory_reserved = memory_allocated


def reset_peak_memory_stats(device: Any = None) -> None:
    """There are no statistics."""


reset_max_memory_allocated = reset_peak_memory_stats


def stream(stream: Any) -> Any:
    """A block that runs on a stream: of None, which is all there is, an ordinary block."""
    return nullcontext() if stream is None else no_device()


def device(device: Any) -> Any:
    """A block that runs on a device: PyTorch lets None and negative numbers stand for the current one."""
    if device is None or (isinstance(device, int) and device < 0):
        return nullcontext()
    return no_device()


__all__ = ["GradScaler", "amp"]
