"""Windows for spectra and filters: torch.hann_window and its kin, and torch.signal.windows."""
from __future__ import annotations

from typing import Any

import numpy as np

from ..arrays import dtypes
from ..tensor import Tensor
from ..tensor.construct import as_leaf, check_place, strided
from ..tensor.core import fresh
from .matrix import scalar_name
from .table import public


# -- the shapes, in double precision ---------------------------------------------------------------------------------
def _steps(count: int, symmetric: bool) -> np.ndarray:
    """0 to 1 in even steps; a periodic window stops one step before the end, where the next period begins."""
    return np.arange(count) / max(count - 1 if symmetric else count, 1)


def _cosines(count: int, symmetric: bool, coefficients: Any) -> np.ndarray:
    """a[0] - a[1] cos(2 pi t) + a[2] cos(4 pi t) - ..."""
    turns = 2 * np.pi * _steps(count, symmetric)
    terms: Any = [(-1) ** i * a * np.cos(i * turns) for i, a in enumerate(coefficients)]
    return sum(terms[1:], terms[0])


def _triangle(count: int, symmetric: bool) -> np.ndarray:
    return 1 - np.abs(2 * _steps(count, symmetric) - 1)


def _bessel(count: int, symmetric: bool, beta: float) -> np.ndarray:
    places = 2 * _steps(count, symmetric) - 1
    return np.i0(beta * np.sqrt(np.maximum(1 - places * places, 0))) / np.i0(np.float64(beta))


_BLACKMAN = (0.42, 0.5, 0.08)
_NUTTALL = (0.3635819, 0.4891775, 0.1365995, 0.0106411)


# -- functions of the package ----------------------------------------------------------------------------------------
def _check(name: str, window_length: Any, dtype: Any, layout: Any, device: Any, pin_memory: bool) -> np.dtype:
    check_place(device, pin_memory, layout)
    if not isinstance(window_length, (int, np.integer)):
        raise TypeError(f"{name}(): argument 'window_length' (position 1) must be int, not {type(window_length).__name__}")
    if window_length < 0:
        raise RuntimeError(f"{name} requires non-negative window_length, got window_length={window_length}")
    wanted = dtypes.default_numpy() if dtype is None else dtypes.to_numpy(dtype)
    if dtypes.category(wanted) < dtypes.FLOATING:
        raise RuntimeError(f"{name} expects floating point dtypes, got: {dtypes.from_numpy(wanted)}")
    if dtypes.category(wanted) == dtypes.COMPLEX:
        raise NotImplementedError(f"\"{name}\" not implemented for '{scalar_name(wanted)}'")
    return wanted


def _made(values: np.ndarray, wanted: np.dtype, requires_grad: bool) -> Tensor:
    if values.size == 1:
        values = np.ones(1)  # whatever the shape, a window of one point is 1
    return as_leaf(fresh(values.astype(wanted)), requires_grad)


@public
def hann_window(window_length: int, periodic: bool = True, *, dtype: Any = None, layout: Any = None, device: Any = None,
                pin_memory: bool = False, requires_grad: bool = False) -> Tensor:
    """One period of a raised cosine."""
    wanted = _check("hann_window", window_length, dtype, layout, device, pin_memory)
    return _made(_cosines(window_length, not periodic, (0.5, 0.5)), wanted, requires_grad)


@public
def hamming_window(window_length: int, periodic: bool = True, alpha: float = 0.54, beta: float = 0.46, *,
                   dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: bool = False,
                   requires_grad: bool = False) -> Tensor:
    """A raised cosine that does not reach zero."""
    wanted = _check("hamming_window", window_length, dtype, layout, device, pin_memory)
    return _made(_cosines(window_length, not periodic, (alpha, beta)), wanted, requires_grad)


@public
def blackman_window(window_length: int, periodic: bool = True, *, dtype: Any = None, layout: Any = None,
                    device: Any = None, pin_memory: bool = False, requires_grad: bool = False) -> Tensor:
    """A sum of three cosines."""
    wanted = _check("blackman_window", window_length, dtype, layout, device, pin_memory)
    return _made(_cosines(window_length, not periodic, _BLACKMAN), wanted, requires_grad)


@public
def bartlett_window(window_length: int, periodic: bool = True, *, dtype: Any = None, layout: Any = None,
                    device: Any = None, pin_memory: bool = False, requires_grad: bool = False) -> Tensor:
    """A triangle."""
    wanted = _check("bartlett_window", window_length, dtype, layout, device, pin_memory)
    return _made(_triangle(window_length, not periodic), wanted, requires_grad)


@public
def kaiser_window(window_length: int, periodic: bool = True, beta: float = 12.0, *, dtype: Any = None,
                  layout: Any = None, device: Any = None, pin_memory: bool = False,
                  requires_grad: bool = False) -> Tensor:
    """The window of a modified Bessel function; a larger beta makes it narrower."""
    wanted = _check("kaiser_window", window_length, dtype, layout, device, pin_memory)
    return _made(_bessel(window_length, not periodic, beta), wanted, requires_grad)


# -- torch.signal.windows --------------------------------------------------------------------------------------------
def _signal(name: str, M: Any, dtype: Any, layout: Any, device: Any) -> np.dtype:
    """Check what every one of these windows is given."""
    if not isinstance(M, (int, np.integer)):
        raise TypeError(f"{name}: the window length must be int, not {type(M).__name__}")
    if M < 0:
        raise ValueError(f"{name} requires non-negative window length, got M={M}")
    if layout is not None and layout is not strided:
        raise ValueError(f"{name} is implemented for strided tensors only, got: {layout}")
    check_place(device)
    wanted = dtypes.get_default_dtype() if dtype is None else dtype
    if wanted not in (dtypes.float32, dtypes.float64):
        raise ValueError(f"{name} expects float32 or float64 dtypes, got: {wanted}")
    return dtypes.to_numpy(wanted)


def general_cosine(M: int, *, a: Any, sym: bool = True, dtype: Any = None, layout: Any = None, device: Any = None,
                   requires_grad: bool = False) -> Tensor:
    """A sum of cosines with these coefficients, whose signs alternate."""
    wanted = _signal("general_cosine", M, dtype, layout, device)
    if not hasattr(a, "__iter__"):
        raise TypeError("Coefficients must be a list/tuple")
    if not (coefficients := list(a)):
        raise ValueError("Coefficients cannot be empty")
    return _made(_cosines(M, sym, coefficients), wanted, requires_grad)


def general_hamming(M: int, *, alpha: float = 0.54, sym: bool = True, dtype: Any = None, layout: Any = None,
                    device: Any = None, requires_grad: bool = False) -> Tensor:
    """A raised cosine, `alpha` its mean."""
    return general_cosine(M, a=(alpha, 1.0 - alpha), sym=sym, dtype=dtype, layout=layout, device=device,
                          requires_grad=requires_grad)


def hamming(M: int, *, sym: bool = True, dtype: Any = None, layout: Any = None, device: Any = None,
            requires_grad: bool = False) -> Tensor:
    """A raised cosine that does not reach zero."""
    return general_hamming(M, sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad)


def hann(M: int, *, sym: bool = True, dtype: Any = None, layout: Any = None, device: Any = None,
         requires_grad: bool = False) -> Tensor:
    """One period of a raised cosine."""
    return general_hamming(M, alpha=0.5, sym=sym, dtype=dtype, layout=layout, device=device,
                           requires_grad=requires_grad)


def blackman(M: int, *, sym: bool = True, dtype: Any = None, layout: Any = None, device: Any = None,
             requires_grad: bool = False) -> Tensor:
    """A sum of three cosines."""
    wanted = _signal("blackman", M, dtype, layout, device)
    return _made(_cosines(M, sym, _BLACKMAN), wanted, requires_grad)


def nuttall(M: int, *, sym: bool = True, dtype: Any = None, layout: Any = None, device: Any = None,
            requires_grad: bool = False) -> Tensor:
    """Nuttall's sum of four cosines."""
    return general_cosine(M, a=_NUTTALL, sym=sym, dtype=dtype, layout=layout, device=device,
                          requires_grad=requires_grad)


def bartlett(M: int, *, sym: bool = True, dtype: Any = None, layout: Any = None, device: Any = None,
             requires_grad: bool = False) -> Tensor:
    """A triangle."""
    wanted = _signal("bartlett", M, dtype, layout, device)
    return _made(_triangle(M, sym), wanted, requires_grad)


def kaiser(M: int, *, beta: float = 12.0, sym: bool = True, dtype: Any = None, layout: Any = None, device: Any = None,
           requires_grad: bool = False) -> Tensor:
    """The window of a modified Bessel function; a larger beta makes it narrower."""
    wanted = _signal("kaiser", M, dtype, layout, device)
    if beta < 0:
        raise ValueError(f"beta must be non-negative, got: {beta} instead.")
    return _made(_bessel(M, sym, beta), wanted, requires_grad)


def cosine(M: int, *, sym: bool = True, dtype: Any = None, layout: Any = None, device: Any = None,
           requires_grad: bool = False) -> Tensor:
    """Half a period of a sine, at the middle of each step."""
    wanted = _signal("cosine", M, dtype, layout, device)
    values = np.sin(np.pi * (np.arange(M) + 0.5) / (M if sym else M + 1))
    return _made(values, wanted, requires_grad)


def exponential(M: int, *, center: float | None = None, tau: float = 1.0, sym: bool = True, dtype: Any = None,
                layout: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """Falls by e every `tau` steps from the center."""
    wanted = _signal("exponential", M, dtype, layout, device)
    if tau <= 0:
        raise ValueError(f"Tau must be positive, got: {tau} instead.")
    if sym and center is not None:
        raise ValueError("Center must be None for symmetric windows")
    middle = (M - 1 if sym else M) / 2 if center is None else center
    return _made(np.exp(-np.abs(np.arange(M) - middle) / tau), wanted, requires_grad)


def gaussian(M: int, *, std: float = 1.0, sym: bool = True, dtype: Any = None, layout: Any = None, device: Any = None,
             requires_grad: bool = False) -> Tensor:
    """A normal density, 1 at its top."""
    wanted = _signal("gaussian", M, dtype, layout, device)
    if std <= 0:
        raise ValueError(f"Standard deviation must be positive, got: {std} instead.")
    places = (np.arange(M) - (M - 1 if sym else M) / 2) / std
    return _made(np.exp(-0.5 * places * places), wanted, requires_grad)
