"""Functions of one number: exponentials, logarithms, angles, rounding, signs, limits, gamma and error functions."""
from __future__ import annotations

from typing import Any

import numpy as np

from ..arrays import dtypes
from ..tensor import Tensor
from .arithmetic import install, refuse, with_numbers
from .masking import choose
from .table import TENSORS, elementwise, method, public

_SINGLE = np.dtype(np.float32)


def widely(function: Any, input: np.ndarray, *rest: Any) -> np.ndarray:
    """Compute in single precision what is of half precision, as PyTorch does, so that it is rounded once."""
    if input.dtype.itemsize == 2:
        return function(input.astype(_SINGLE), *rest).astype(input.dtype)
    return function(input, *rest)


def scipy_special(name: str) -> Any:
    """A function of scipy.special."""
    try:
        from scipy import special
    except ImportError:
        raise ImportError(f"{name} needs SciPy, which is not installed: pip install scipy") from None
    return getattr(special, name)


# -- exponentials, logarithms, roots ---------------------------------------------------------------------------------
@elementwise(input="g * conj(result)", promote="float")
def exp(input):
    return np.exp(input)


@elementwise(input="g * conj(result) * 0.6931471805599453", promote="float")
def exp2(input):
    return np.exp2(input)


@elementwise(input="g * (conj(result) + 1)", promote="float")
def expm1(input):
    return np.expm1(input)


@elementwise(input="g / conj(input)", promote="float")
def log(input):
    return np.log(input)


@elementwise(input="g / (conj(input) * 0.6931471805599453)", promote="float")
def log2(input):
    return np.log2(input)


@elementwise(input="g / (conj(input) * 2.302585092994046)", promote="float")
def log10(input):
    return np.log10(input)


@elementwise(input="g / (conj(input) + 1)", promote="float", node="Log1PBackward0")
def log1p(input):
    return np.log1p(input)


@elementwise(input="g / (2 * conj(result))", promote="float")
def sqrt(input):
    return np.sqrt(input)


@elementwise(input="-0.5 * g * (conj(result) * conj(result) * conj(result))", promote="float")
def rsqrt(input):
    return widely(_reciprocal_root, input)


def _reciprocal_root(input: np.ndarray) -> np.ndarray:
    return np.true_divide(1, np.sqrt(input), dtype=input.dtype)


# -- trigonometry ----------------------------------------------------------------------------------------------------
# The slope of these at conj(x) is the conjugate of their slope at x.
@elementwise(input="g * cos(conj(input))", promote="float")
def sin(input):
    return np.sin(input)


@elementwise(input="g * -sin(conj(input))", promote="float")
def cos(input):
    return np.cos(input)


@elementwise(input="g * (1 + conj(result) * conj(result))", promote="float")
def tan(input):
    return np.tan(input)


@elementwise(input="g * rsqrt(1 - conj(input) * conj(input))", promote="float", aliases="arcsin")
def asin(input):
    return np.arcsin(input)


@elementwise(input="-g * rsqrt(1 - conj(input) * conj(input))", promote="float", aliases="arccos")
def acos(input):
    return np.arccos(input)


@elementwise(input="g / (conj(input) * conj(input) + 1)", promote="float", aliases="arctan")
def atan(input):
    return np.arctan(input)


@elementwise(input="g * cosh(conj(input))", promote="float")
def sinh(input):
    return np.sinh(input)


@elementwise(input="g * sinh(conj(input))", promote="float")
def cosh(input):
    return np.cosh(input)


@elementwise(input="g * (1 - conj(result) * conj(result))", promote="float")
def tanh(input):
    return np.tanh(input)


@elementwise(input="g * rsqrt(conj(input) * conj(input) + 1)", promote="float", aliases="arcsinh")
def asinh(input):
    return np.arcsinh(input)


def _acosh_gradient(F: Any, g: Any, input: Any) -> Any:
    if not F.is_complex(input):
        return g * F.rsqrt(input * input - 1)
    return g * F.conj(F.rsqrt(input - 1) * F.rsqrt(input + 1))  # this, of the two ways to write it, has acosh's cut


@elementwise(input=_acosh_gradient, promote="float", aliases="arccosh")
def acosh(input):
    return np.arccosh(input)


@elementwise(input="g / (1 - conj(input) * conj(input))", promote="float", aliases="arctanh")
def atanh(input):
    return np.arctanh(input)


def _sinc_gradient(F: Any, g: Any, input: Any) -> Any:
    scaled = F.conj(input) * 3.141592653589793
    squared = scaled * F.conj(input)
    zero = squared == 0
    slope = (scaled * F.cos(scaled) - F.sin(scaled)) / F.where(zero, 1, squared)
    return F.where(zero, 0, g * slope)


@elementwise(input=_sinc_gradient, promote="float")
def sinc(input):
    return widely(np.sinc, input)


@elementwise(input="g * 0.017453292519943295", promote="float", node="Deg2RadBackward0")
def deg2rad(input):
    return np.multiply(input, 0.017453292519943295, dtype=input.dtype)


@elementwise(input="g * 57.29577951308232", promote="float", node="Rad2DegBackward0")
def rad2deg(input):
    return np.multiply(input, 57.29577951308232, dtype=input.dtype)


# -- sigmoid and logit -----------------------------------------------------------------------------------------------
@elementwise(input="g * ((1 - conj(result)) * conj(result))", promote="float")
def sigmoid(input):
    return widely(logistic, input)


def into(array: Any) -> Any:
    """The `out` of a NumPy function that may overwrite this temporary: fresh memory costs more than most functions."""
    return array if array.__class__ is np.ndarray else None


def logistic(input: np.ndarray) -> np.ndarray:
    result = np.exp(-input)
    result += 1
    return np.true_divide(1, result, out=into(result))


def _logit_gradient(F: Any, g: Any, input: Any, eps: Any) -> Any:
    slope = g / (input * (1 - input))
    if eps is None:
        return F.where(F.logical_and(input >= 0, input <= 1), slope, float("nan"))
    return F.where(F.logical_and(input >= eps, input <= 1 - eps), slope, 0)


@elementwise(input=_logit_gradient, promote="float")
def logit(input, eps=None):
    return widely(_log_odds, input, eps)


def _log_odds(input: np.ndarray, eps: float | None) -> np.ndarray:
    if eps is not None:
        input = np.clip(input, eps, 1 - eps)
    return np.log(input / (1 - input))


# -- rounding and parts ----------------------------------------------------------------------------------------------
def _refuse_rounding(name: str, input: np.ndarray) -> None:
    if input.dtype.kind == "c":
        raise NotImplementedError(f"{name} is not supported for complex inputs")
    if input.dtype.kind == "b":
        raise refuse(name, input)


def _rounding(name: str, function: Any, aliases: str = "") -> None:
    """Roundings have no slope. Integers are rounded already."""
    def kernel(input):
        _refuse_rounding(name, input)
        return function(input) if dtypes.category(input.dtype) >= dtypes.FLOATING else input.copy()

    elementwise(name=name, aliases=aliases, input="zeros_of(g)")(kernel)


for _name, _function, _aliases in (("floor", np.floor, ""), ("ceil", np.ceil, ""), ("trunc", np.trunc, "fix")):
    _rounding(_name, _function, _aliases)


def _round_gradient(F: Any, g: Any, decimals: Any) -> Any:
    return F.zeros_of(g)


@elementwise(input=_round_gradient, node=lambda kept: "RoundBackward1" if kept["decimals"] else "RoundBackward0")
def round(input, *, decimals=0):
    _refuse_rounding("round", input)
    if dtypes.category(input.dtype) < dtypes.FLOATING:
        if decimals:
            raise refuse("round_decimals", input)
        return input.copy()
    return np.rint(input) if decimals == 0 else widely(np.round, input, decimals)


@elementwise(input="g")
def frac(input):
    if dtypes.category(input.dtype) != dtypes.FLOATING:
        raise refuse("frac", input)
    return input - np.trunc(input)


@elementwise(input="where(isfinite(input), g, 0)")
def nan_to_num(input, nan=None, posinf=None, neginf=None):
    if dtypes.category(input.dtype) < dtypes.FLOATING:
        return input.copy()
    if input.dtype.kind == "c":
        out = input.copy()
        out.real = nan_to_num(input.real, nan, posinf, neginf)
        out.imag = nan_to_num(input.imag, nan, posinf, neginf)
        return out
    largest = dtypes.finfo(dtypes.from_numpy(input.dtype)).max
    out = choose(np.isnan(input), input.dtype.type(0.0 if nan is None else nan), input)
    out = choose(out == np.inf, input.dtype.type(largest if posinf is None else posinf), out)
    return choose(out == -np.inf, input.dtype.type(-largest if neginf is None else neginf), out)


# -- signs -----------------------------------------------------------------------------------------------------------
def _abs_gradient(F: Any, g: Any, input: Any) -> Any:
    return g * F.sgn(input)


@elementwise(input=_abs_gradient, aliases="absolute")
def abs(input):
    if input.dtype.kind == "b":
        raise refuse("abs", input)
    return np.absolute(input)


@elementwise(input="zeros_of(g)")
def sign(input):
    if input.dtype.kind == "c":
        raise NotImplementedError("Unlike NumPy, torch.sign is not intended to support complex numbers. Please use "
                                  "torch.sgn "
                                  "instead.")
    if input.dtype.kind == "b":
        return input.copy()
    return choose(np.isnan(input), 0,
                    np.sign(input)).astype(input.dtype) if input.dtype.kind != "u" else np.sign(input)


def _sgn_gradient(F: Any, g: Any, input: Any, result: Any) -> Any:
    if not F.is_complex(input):
        return F.zeros_of(g)
    size = F.abs(input)
    zero = size == 0
    scaled = g / F.where(zero, 1, size)
    return F.where(zero, 0, scaled - F.real(scaled * F.conj(result)) * result)


@elementwise(input=_sgn_gradient)
def sgn(input):
    return np.sign(input) if input.dtype.kind == "c" else sign(input)


@elementwise(tensors="input", promote="none", inplace=False)
def signbit(input):
    if input.dtype.kind == "c":
        raise RuntimeError("signbit is not implemented for complex tensors.")
    return np.signbit(input) if dtypes.category(input.dtype) >= dtypes.FLOATING else np.less(input, 0)


# -- limits ----------------------------------------------------------------------------------------------------------
def _inside(F: Any, input: Any, min: Any, max: Any) -> Any:
    if min is None:
        return input <= max
    return input >= min if max is None else F.logical_and(input >= min, input <= max)


def _clamp_gradient(F: Any, g: Any, input: Any, min: Any, max: Any) -> Any:
    return F.where(_inside(F, input, min, max), g, 0)


def _clamp_gradient_of_min(F: Any, g: Any, input: Any, min: Any, max: Any) -> Any:
    return F.where(input < min if max is None else F.logical_and(min < max, input < min), g, 0)


def _clamp_gradient_of_max(F: Any, g: Any, input: Any, min: Any, max: Any) -> Any:
    return F.where(input > max if min is None else F.logical_or(input > max, max < min), g, 0)


def _clamped(input: np.ndarray, min: Any, max: Any) -> np.ndarray:
    if input.dtype.kind == "c":
        raise RuntimeError("clamp is not supported for complex types")
    if min is not None:
        input = np.maximum(input, min)
    return input if max is None else np.minimum(input, max)


def _limited(input: np.ndarray, min: Any, max: Any) -> np.ndarray:
    """Clamped between numbers, in the dtype that they give together."""
    input = with_numbers(input, min, max)
    low, high = (None if limit is None else np.asarray(limit, input.dtype) for limit in (min, max))
    return _clamped(input, low, high)


@elementwise(input=_clamp_gradient, public=False, method=False, node="ClampBackward1")
def _clamp_numbers(input, min=None, max=None):
    return _limited(input, min, max)


@elementwise(input=_clamp_gradient, min=_clamp_gradient_of_min, max=_clamp_gradient_of_max, public=False, method=False,
             node="ClampBackward0", numbers=False)
def _clamp_tensors(input, min=None, max=None):
    return _clamped(input, min, max)


@elementwise(input="where(input >= min, g, 0)", public=False, method=False, node="ClampMinBackward0")
def _clamp_min_number(input, min):
    return _limited(input, min, None)


@elementwise(input="where(input >= min, g, 0)", min="where(input < min, g, 0)", public=False, method=False,
             node="ClampMinBackward1", numbers=False)
def _clamp_min_tensor(input, min):
    return _clamped(input, min, None)


@elementwise(input="where(input <= max, g, 0)", public=False, method=False, node="ClampMaxBackward0")
def _clamp_max_number(input, max):
    return _limited(input, None, max)


@elementwise(input="where(input <= max, g, 0)", max="where(input > max, g, 0)", public=False, method=False,
             node="ClampMaxBackward1", numbers=False)
def _clamp_max_tensor(input, max):
    return _clamped(input, None, max)


def _clamp_entry(min: Any, max: Any) -> str:
    if min is None and max is None:
        raise RuntimeError("torch.clamp: At least one of 'min' or 'max' must not be None")
    if not isinstance(min, Tensor) and not isinstance(max, Tensor):
        return "_clamp_numbers"
    for limit in (min, max):
        if limit is not None and not isinstance(limit, Tensor):
            raise TypeError("clamp() received an invalid combination of arguments: min and max must both be Tensors "
                            "or both be "
                            "numbers")
    return "_clamp_tensors"


def clamp(input: Tensor, min: Any = None, max: Any = None, *, out: Any = None) -> Tensor:
    """The tensor with values below `min` and above `max` replaced by those."""
    return getattr(TENSORS, _clamp_entry(min, max))(input, min, max, out=out)


def clamp_(input: Tensor, min: Any = None, max: Any = None) -> Tensor:
    return getattr(TENSORS, _clamp_entry(min, max) + "_")(input, min, max)


for _name in ("clamp", "clip"):
    install(_name, clamp, raw=_limited)
    install(_name + "_", clamp_)


@public
@method
def clamp_min(input: Tensor, min: Any, *, out: Any = None) -> Tensor:
    return (TENSORS._clamp_min_tensor if isinstance(min, Tensor) else TENSORS._clamp_min_number)(input, min, out=out)


@public
@method
def clamp_min_(input: Tensor, min: Any) -> Tensor:
    return (TENSORS._clamp_min_tensor_ if isinstance(min, Tensor) else TENSORS._clamp_min_number_)(input, min)


@public
@method
def clamp_max(input: Tensor, max: Any, *, out: Any = None) -> Tensor:
    return (TENSORS._clamp_max_tensor if isinstance(max, Tensor) else TENSORS._clamp_max_number)(input, max, out=out)


@public
@method
def clamp_max_(input: Tensor, max: Any) -> Tensor:
    return (TENSORS._clamp_max_tensor_ if isinstance(max, Tensor) else TENSORS._clamp_max_number_)(input, max)


# -- the error and gamma functions -----------------------------------------------------------------------------------
@elementwise(input="1.1283791670955126 * exp(-(input * input)) * g", promote="float")
def erf(input):
    return widely(scipy_special("erf"), input)


@elementwise(input="-1.1283791670955126 * exp(-(input * input)) * g", promote="float")
def erfc(input):
    return widely(scipy_special("erfc"), input)


def _erfinv_gradient(F: Any, g: Any, input: Any) -> Any:
    root = F.erfinv(input)
    return 0.886226925452758 * F.exp(root * root) * g


@elementwise(input=_erfinv_gradient, promote="float")
def erfinv(input):
    return widely(scipy_special("erfinv"), input)


@elementwise(input="g * digamma(input)", promote="float")
def lgamma(input):
    return choose(input == -np.inf, -input, widely(scipy_special("gammaln"), input))


@elementwise(input="g * _polygamma(input, 1)", promote="float")
def digamma(input):
    return widely(scipy_special("digamma"), input)


@elementwise(input="g * _polygamma(input, n + 1)", promote="float", public=False, method=False,
             node="PolygammaBackward0")
def _polygamma(input, n):
    if n < 0:
        raise RuntimeError("polygamma(n, x) does not support negative n.")
    if n == 0:
        return digamma(input)
    function, factorial = scipy_special("zeta"), scipy_special("factorial")
    return widely(lambda x: (((-1) ** (n + 1) * float(factorial(n))) * function(n + 1, x)).astype(x.dtype), input)


@public
def polygamma(n: int, input: Tensor, *, out: Any = None) -> Tensor:
    """The n-th derivative of digamma."""
    return TENSORS._polygamma(input, n, out=out)


install("polygamma", lambda self, n: TENSORS._polygamma(self, n), "method")
install("polygamma_", lambda self, n: TENSORS._polygamma_(self, n), "method")


def _mvlgamma_gradient(F: Any, g: Any, input: Any, p: int) -> Any:
    total = F.digamma(input)
    for i in range(1, p):
        total = total + F.digamma(input - i / 2)
    return g * total


@elementwise(input=_mvlgamma_gradient, promote="float")
def mvlgamma(input, p):
    if p < 1:
        raise RuntimeError("p has to be greater than or equal to 1")
    total = lgamma(input) + input.dtype.type(p * (p - 1) / 4 * 1.1447298858494002)
    for i in range(1, p):
        total = total + lgamma(input - input.dtype.type(i / 2))
    return total


@elementwise(input="g * special_i1(input)", promote="float")
def i0(input):
    return widely(scipy_special("i0"), input)
