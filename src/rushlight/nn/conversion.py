"""Reading the arguments of Module.to."""

from __future__ import annotations

from typing import Any

from ..tensor import Tensor


def parse_to(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any]:
    """The device and dtype asked for (each may be None) by the arguments of ``Module.to``."""
    import rushlight

    device, dtype = kwargs.get("device"), kwargs.get("dtype")
    other = kwargs.get("tensor")
    for argument in args:
        if isinstance(argument, Tensor):
            other = argument
        elif isinstance(argument, rushlight.dtype):
            dtype = argument
        elif isinstance(argument, (str, int, rushlight.device)) and not isinstance(argument, bool):
            device = argument
        elif not (argument is None or isinstance(argument, bool)):
            raise TypeError(f"to() received an invalid combination of arguments - got ({type(argument).__name__})")
    if other is not None:
        device, dtype = other.device, other.dtype
    if device is not None and not isinstance(device, rushlight.device):
        device = rushlight.device(device)
    if dtype is not None and not (dtype.is_floating_point or dtype.is_complex):
        raise TypeError(
            f"nn.Module.to only accepts floating point or complex dtypes, but got desired dtype={dtype}"
        )
    return device, dtype
