"""Automatic mixed precision as far as a CPU in full precision has use for it: switched off, it passes everything through."""
from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

from ..arrays.devices import device as device_named


class autocast:
    """A block or a decorated function in which PyTorch may choose lower precision.

    Switched off, or asked for on a device that is not there, it does nothing, as in PyTorch. Switched on for the CPU it
    is refused: silently computing in another precision than asked would be a wrong answer.
    """

    def __init__(self, device_type: str, dtype: Any = None, enabled: bool = True, cache_enabled: bool | None = None) -> None:
        if not isinstance(device_type, str):
            raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
        self.device = device_named(device_type).type
        if enabled and self.device != "cpu":
            warnings.warn(f"{self.device.upper()} is not available or torch_xla is imported. Disabling autocast.", stacklevel=2)
            enabled = False
        if enabled:
            raise NotImplementedError("autocast on the CPU is not supported: Rushlight computes in the dtype its tensors have. "
                                      "Pass enabled=False, or convert the model and its inputs with .to(dtype).")
        self._enabled = False
        self.fast_dtype = dtype

    def __enter__(self) -> autocast:
        return self

    def __exit__(self, *exception: Any) -> None:
        return None

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def decorated(*args: Any, **kwargs: Any) -> Any:
            with self:
                return function(*args, **kwargs)

        return decorated


class GradScaler:
    """Scales a loss so that small gradients survive half precision. Only switched off, where it passes through."""

    def __init__(self, device: Any = "cuda", init_scale: float = 2.0**16, growth_factor: float = 2.0,
                 backoff_factor: float = 0.5, growth_interval: int = 2000, enabled: bool = True) -> None:
        kind = str(device).split(":")[0]
        if enabled and kind != "cpu":
            warnings.warn(f"torch.{kind}.amp.GradScaler is enabled, but {kind.upper()} is not available.  Disabling.",
                          stacklevel=2)
        elif enabled:
            raise NotImplementedError("GradScaler on the CPU is not supported, since autocast is not: pass enabled=False.")

    def is_enabled(self) -> bool:
        return False

    def scale(self, outputs: Any) -> Any:
        return outputs

    def unscale_(self, optimizer: Any) -> None:
        """There is nothing to undo."""

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        return optimizer.step(*args, **kwargs)

    def update(self, new_scale: Any = None) -> None:
        """The scale stays 1."""

    def get_scale(self) -> float:
        return 1.0

    def state_dict(self) -> dict[str, Any]:
        return {}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """A scaler that is off has no state, so whatever was saved is passed over, as in PyTorch."""


def is_autocast_available(device_type: str) -> bool:
    """Whether autocast can be switched on for this type of device: for none."""
    return False


def is_autocast_enabled(device_type: str | None = None) -> bool:
    return False


def custom_fwd(fwd: Any = None, *, device_type: str = "cuda", cast_inputs: Any = None) -> Any:
    """Marks Function.forward; it only matters where autocast is on, so it changes nothing."""
    return (lambda function: function) if fwd is None else fwd


def custom_bwd(bwd: Any = None, *, device_type: str = "cuda") -> Any:
    """Marks Function.backward; it only matters where autocast is on, so it changes nothing."""
    return (lambda function: function) if bwd is None else bwd


__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd", "is_autocast_available", "is_autocast_enabled"]
