"""Windows against real torch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rushlight
from tests.ops.comparing import plain

torch = pytest.importorskip("torch", reason="these tests compare with real torch")

LENGTHS = (0, 1, 2, 3, 8, 9)
SIGNAL: dict[str, dict[str, Any]] = {
    "bartlett": {}, "blackman": {}, "cosine": {}, "exponential": {"tau": 1.7}, "gaussian": {"std": 2.5},
    "general_cosine": {"a": [0.4, 0.3, 0.2, 0.1]}, "general_hamming": {"alpha": 0.6}, "hamming": {}, "hann": {},
    "kaiser": {"beta": 5.0}, "nuttall": {},
}  # fmt: skip


@pytest.mark.parametrize("name", ["hann", "hamming", "blackman", "bartlett", "kaiser"])
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
def test_functions_of_the_package(name: str, dtype: str) -> None:
    tolerance = {"float64": 1e-14, "float32": 1e-6, "float16": 2e-3}[dtype]
    for length in LENGTHS:
        for periodic in (True, False):
            wanted, found = (
                getattr(m, f"{name}_window")(length, periodic, dtype=getattr(m, dtype)) for m in (torch, rushlight)
            )
            assert plain(found).dtype == plain(wanted).dtype
            np.testing.assert_allclose(plain(found), plain(wanted), atol=tolerance)


def test_parameters() -> None:
    for make in (
        lambda m: m.hamming_window(7, True, 0.5, 0.4, dtype=m.float64),
        lambda m: m.kaiser_window(7, False, 3.0, dtype=m.float64),
        lambda m: m.signal.windows.exponential(7, center=1.5, sym=False, dtype=m.float64),
    ):
        np.testing.assert_allclose(plain(make(rushlight)), plain(make(torch)), atol=1e-14)
    assert rushlight.hann_window(4).dtype is rushlight.float32
    assert rushlight.hann_window(4, requires_grad=True).requires_grad


@pytest.mark.parametrize("name", SIGNAL)
def test_signal_windows(name: str) -> None:
    for length in LENGTHS:
        for sym in (True, False):
            wanted, found = (
                getattr(m.signal.windows, name)(length, sym=sym, dtype=m.float64, **SIGNAL[name])
                for m in (torch, rushlight)
            )
            np.testing.assert_allclose(plain(found), plain(wanted), atol=1e-14)
    assert getattr(rushlight.signal.windows, name)(3, requires_grad=True, **SIGNAL[name]).requires_grad


@pytest.mark.parametrize(
    "make",
    [
        lambda m: m.hann_window(-1),
        lambda m: m.hann_window(2.5),
        lambda m: m.hann_window(4, dtype=m.int64),
        lambda m: m.kaiser_window(4, dtype=m.complex64),
        lambda m: m.signal.windows.hann(-1),
        lambda m: m.signal.windows.blackman(-1),
        lambda m: m.signal.windows.hann(4, dtype=m.float16),
        lambda m: m.signal.windows.exponential(4, tau=-1.0),
        lambda m: m.signal.windows.exponential(4, center=1.0),
        lambda m: m.signal.windows.gaussian(4, std=0.0),
        lambda m: m.signal.windows.kaiser(4, beta=-1.0),
        lambda m: m.signal.windows.general_cosine(4, a=[]),
        lambda m: m.signal.windows.general_cosine(4, a=3),
    ],
)
def test_errors(make) -> None:
    with pytest.raises(Exception) as wanted:
        make(torch)
    with pytest.raises(type(wanted.value)) as found:
        make(rushlight)
    if not isinstance(wanted.value, NotImplementedError):  # there torch names the function it is made of
        assert str(found.value).startswith(str(wanted.value)[:20])
