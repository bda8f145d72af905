"""What only torch.special has: Bessel functions, polynomials, normal integrals. Loaded on first use."""
from __future__ import annotations

from typing import Any

import numpy as np

from .arithmetic import refuse
from .binary import which_number
from .pointwise import scipy_special, widely
from .table import TENSORS, elementwise, helper

_PRIVATE: Any = {"public": False, "method": False, "inplace": False, "promote": "float"}


def _node(name: str) -> str:
    """PyTorch capitalises a letter that follows a digit."""
    words = "".join(part.capitalize() for part in f"special_{name}".split("_"))
    return "".join(c.upper() if i and words[i - 1].isdigit() else c for i, c in enumerate(words)) + "Backward0"


def _from_scipy(name: str, formula: Any = None, function: Any = None) -> None:
    """An entry whose kernel is SciPy's function of one argument. Without a formula it has no gradient."""
    def kernel(input):
        if input.dtype.kind == "c":
            raise refuse(name, input)
        return widely(scipy_special(function or name), input)

    gradient: dict[str, Any] = {"tensors": "input"} if formula is None else {"input": formula, "node": _node(name)}
    elementwise(name=f"special_{name}", **_PRIVATE, **gradient)(kernel)


@helper
def i1e_slope(F, input, result):
    """At 0 the formula would divide by 0; the slope there is a half."""
    tiny = F.abs(input) <= 2.220446049250313e-16
    safe = F.where(tiny, 2.220446049250313e-16, input)
    return F.where(tiny, 0.5, F.special_i0e(safe) - result * (F.sgn(safe) + 1 / safe))


@helper
def i1_slope(F, input, result):
    tiny = F.abs(input) <= 2.220446049250313e-16
    safe = F.where(tiny, 2.220446049250313e-16, input)
    return F.where(tiny, 0.5, F.i0(safe) - result / safe)


def _log_ndtr_gradient(F: Any, g: Any, input: Any, result: Any) -> Any:
    return g * (0.7978845608028654 / F.special_erfcx(input * -0.7071067811865476))


_from_scipy("erfcx", "(2 * input * result - 1.1283791670955126) * g")
_from_scipy("i0e", "g * (special_i1e(input) - sgn(input) * result)")
_from_scipy("i1", "g * i1_slope(input, result)")
_from_scipy("i1e", "g * i1e_slope(input, result)")
_from_scipy("log_ndtr", _log_ndtr_gradient)
_from_scipy("ndtri", "g * 2.5066282746310002 * exp(result * result / 2)")
_from_scipy("ndtr", "g * 0.3989422804014327 * exp(input * input * -0.5)")
for _name, _function in (("bessel_j0", "j0"), ("bessel_j1", "j1"), ("bessel_y0", "y0"), ("bessel_y1", "y1"),
                         ("modified_bessel_i0", "i0"), ("modified_bessel_i1", "i1"), ("modified_bessel_k0", "k0"),
                         ("modified_bessel_k1", "k1"), ("scaled_modified_bessel_k0", "k0e"),
                         ("scaled_modified_bessel_k1", "k1e")):
    _from_scipy(_name, function=_function)


def _entr_gradient(F: Any, g: Any, input: Any) -> Any:
    outside = F.where(input == 0, float("inf"), float("nan"))
    return g * F.where(input > 0, -F.log(input) - 1, outside)


@elementwise(input=_entr_gradient, **_PRIVATE)
def special_entr(input):
    return widely(scipy_special("entr"), input)


@elementwise(tensors="input", **_PRIVATE)
def special_airy_ai(input):
    return widely(lambda x: scipy_special("airy")(x)[0], input)


@elementwise(tensors="input", **_PRIVATE)
def special_spherical_bessel_j0(input):
    return widely(lambda x: scipy_special("spherical_jn")(0, x).astype(x.dtype), input)


def _polynomial(name: str, function: str) -> None:
    """An orthogonal polynomial of integer degree, by its recurrence in SciPy; of negative degree it is 0."""
    def kernel(input, n):
        degree = n.astype(np.int64)
        return np.where(degree < 0, 0, scipy_special(function)(degree, input)).astype(input.dtype)

    elementwise(name=f"special_{name}", tensors="input n", **_PRIVATE)(kernel)


for _name, _function in (("chebyshev_polynomial_t", "eval_chebyt"), ("chebyshev_polynomial_u", "eval_chebyu"),
                         ("hermite_polynomial_h", "eval_hermite"), ("hermite_polynomial_he", "eval_hermitenorm"),
                         ("laguerre_polynomial_l", "eval_laguerre"), ("legendre_polynomial_p", "eval_legendre"),
                         ("shifted_chebyshev_polynomial_t", "eval_sh_chebyt"),
                         ("shifted_chebyshev_polynomial_u", "eval_sh_chebyu")):
    _polynomial(_name, _function)


def _half_angle(name: str, shifted: bool, sine: bool) -> None:
    """Chebyshev polynomials of the third and fourth kind (V and W), as sums of the second kind: U(n) -+ U(n - 1)."""
    def kernel(input, n):
        x = 2 * input - 1 if shifted else input
        degree = n.astype(np.int64)
        second = scipy_special("eval_chebyu")
        lower = np.where(degree < 1, 0, second(np.maximum(degree - 1, 0), x))
        value = second(np.maximum(degree, 0), x) + (lower if sine else -lower)
        return np.where(degree < 0, 0, value).astype(input.dtype)

    elementwise(name=f"special_{name}", tensors="input n", **_PRIVATE)(kernel)


for _shifted in (False, True):
    _half_angle(("shifted_" if _shifted else "") + "chebyshev_polynomial_v", _shifted, sine=False)
    _half_angle(("shifted_" if _shifted else "") + "chebyshev_polynomial_w", _shifted, sine=True)


@elementwise(input="where((input == 0) & (other <= -1), 0, special_xlog1py(g, other))",
             other="g * input / (other + 1)",
             node=which_number("SpecialXlog1Py"), **_PRIVATE)
def special_xlog1py(input, other):
    return np.where(np.isnan(other), other, np.where(input == 0, np.zeros_like(input), input * np.log1p(other)))


def _zeta(order: np.ndarray, shift: np.ndarray) -> np.ndarray:
    # In a gradient formula the order may come as the integers that were saved.
    return scipy_special("zeta")(order, shift).astype(np.result_type(order, shift, np.float32))


def _no_slope_in_order(F: Any, g: Any, input: Any) -> Any:
    raise RuntimeError("the derivative for 'self: zeta' is not implemented")


@elementwise(input=_no_slope_in_order, other="g * -input * special_zeta(input + 1, other)",
             node="SpecialZetaBackward0", **_PRIVATE)
def special_zeta(input, other):
    return widely(_zeta, input, other)


# -- the incomplete gamma functions, which torch has at the top too --------------------------------------------------
def _no_slope_in_shape(name: str) -> Any:
    def formula(F: Any, g: Any, input: Any, other: Any) -> Any:
        raise RuntimeError(f"the derivative for '{name}: input' is not implemented.")
    return formula


@elementwise(input=_no_slope_in_shape("igamma"), other="g * exp((input - 1) * log(other) - other - lgamma(input))",
             promote="float",
             numbers=False)
def igamma(input, other):
    return widely(scipy_special("gammainc"), input, other)


@elementwise(input=_no_slope_in_shape("igammac"), other="-g * exp((input - 1) * log(other) - other - lgamma(input))",
             promote="float",
             numbers=False)
def igammac(input, other):
    return widely(scipy_special("gammaincc"), input, other)


# Names under which torch.special has operations that live elsewhere.
ALIASES = {
    "expit": "sigmoid", "gammaln": "lgamma", "psi": "digamma", "gammainc": "igamma", "gammaincc": "igammac",
    "multigammaln": "mvlgamma", **{name: name for name in (
        "digamma", "erf", "erfc", "erfinv", "exp2", "expm1", "i0", "log1p", "log_softmax", "logit", "logsumexp",
        "polygamma",
        "round", "sinc", "softmax", "xlogy")}}


def special_function(name: str) -> Any:
    """The operation behind a name of torch.special, or None."""
    return TENSORS.__dict__.get(ALIASES.get(name, f"special_{name}"))
