"""Anomaly mode: backward tells which forward line a nan or an error comes from."""
from __future__ import annotations

import warnings
from typing import Any

from ..graph.modes import shift, state


def _set(enabled: bool, check_nan: bool) -> None:
    if state.anomaly is not enabled:
        state.anomaly = enabled
        shift(1 if enabled else -1)
    state.anomaly_check_nan = check_nan


def is_anomaly_enabled() -> bool:
    return state.anomaly


def is_anomaly_check_nan_enabled() -> bool:
    return state.anomaly_check_nan


class detect_anomaly:
    """Within this block each node keeps the stack that made it, and backward raises where nan first appears."""

    def __init__(self, check_nan: bool = True) -> None:
        self.check_nan = check_nan
        self.previous = (state.anomaly, state.anomaly_check_nan)
        warnings.warn("Anomaly Detection has been enabled. This mode will increase the runtime and should only be "
                      "enabled for debugging.", UserWarning, stacklevel=2)

    def __enter__(self) -> None:
        self.previous = (state.anomaly, state.anomaly_check_nan)
        _set(True, self.check_nan)

    def __exit__(self, *exception: Any) -> None:
        _set(*self.previous)


class set_detect_anomaly:
    """Anomaly mode on or off: from now on when merely called, for the block when used with `with`."""

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        self.previous = (state.anomaly, state.anomaly_check_nan)
        _set(mode, check_nan)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exception: Any) -> None:
        _set(*self.previous)
