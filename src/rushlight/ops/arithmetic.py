"""Arithmetic: the four operations, powers, remainders, and their fused forms."""
from __future__ import annotations

from typing import Any

import numpy as np

from ..arrays import dtypes
from ..tensor import Tensor
from .table import PUBLIC, RAW, TENSORS, elementwise, helper, method, public
from .unpack import type_name


# -- shared by the elementwise families ------------------------------------------------------------------------------
def with_numbers(input: np.ndarray, *numbers: Any) -> np.ndarray:
    """The array in the dtype that it has together with Python numbers: int64 with 0.5 is the default float."""
    given = [number for number in numbers if number is not None]
    dtype = input.dtype
    if not given or dtypes.category(dtype) >= dtypes.FLOATING and not any(isinstance(number,
                                                                                     complex) for number in given):
        return input
    common = dtypes.result_type([dtype] if input.ndim else [], [] if input.ndim else [dtype], given)
    return input if common == dtype else input.astype(common)


def refuse(name: str, array: Any) -> NotImplementedError:
    """The error for a dtype that an operation is not defined on."""
    kind = type_name(dtypes.from_numpy(array.dtype).name)
    return NotImplementedError(f"\"{name}_cpu\" not implemented for '{kind}'")


def no_derivative(name: str) -> Any:
    """A gradient formula that says there is none: PyTorch too complains only when backward comes to it."""
    def formula(F: Any, g: Any) -> Any:
        raise RuntimeError(f"derivative for aten::{name} is not implemented")
    return formula


# What Python's operators take; the rest is left to the other operand.
OPERANDS = (Tensor, int, float, complex, np.generic)
NO_DERIVATIVE = "NotImplemented"  # the name of such a node


def _check_alpha(input: np.ndarray, alpha: Any) -> None:
    if isinstance(alpha, bool) and input.dtype.kind != "b":
        raise RuntimeError("Boolean alpha only supported for Boolean results.")
    if isinstance(alpha, float) and dtypes.category(input.dtype) < dtypes.FLOATING:
        raise RuntimeError("For integral input tensors, argument alpha must not be a floating point number.")
    if isinstance(alpha, complex) and input.dtype.kind != "c":
        raise RuntimeError("For non-complex input tensors, argument alpha must not be a complex number.")


# -- sums, differences, products -------------------------------------------------------------------------------------
@elementwise(input="g", other="g if alpha == 1 else g * alpha.conjugate()",
             inline="input + other if alpha == 1 else _add_kernel(input, other, alpha=alpha)")
def add(input, other, *, alpha=1):
    if alpha == 1:
        return np.add(input, other)
    _check_alpha(input, alpha)
    return np.add(input, np.multiply(other, np.asarray(alpha, other.dtype)))


def _of_a_difference(dimensioned: list, zero_dim: list, numbers: list) -> np.dtype:
    """PyTorch refuses truth values on either side, also where the other side would promote them."""
    if dtypes.bool_.numpy in dimensioned or dtypes.bool_.numpy in zero_dim or any(n.__class__ is bool for n in numbers):
        raise RuntimeError("Subtraction, the `-` operator, with a bool tensor is not supported. `~mask` turns a "
                           "mask round; (a != b) is where two differ.")
    return dtypes.result_type(dimensioned, zero_dim, numbers)


@elementwise(input="g", other="-g if alpha == 1 else g * -alpha.conjugate()", aliases="subtract",
             promote=_of_a_difference, inline="input - other if alpha == 1 else _sub_kernel(input, other, alpha=alpha)")
def sub(input, other, *, alpha=1):
    if input.dtype.kind == "b":
        raise RuntimeError("Subtraction, the `-` operator, with two bool tensors is not supported. (a != b), "
                           "or a ^ b, is where they differ.")
    if alpha == 1:
        return np.subtract(input, other)
    _check_alpha(input, alpha)
    return np.subtract(input, np.multiply(other, np.asarray(alpha, other.dtype)))


@elementwise(input="-g if alpha == 1 else g * -alpha.conjugate()", other="g", method=False, inplace=False,
             promote=_of_a_difference,
             node=lambda kept: "RsubBackward1" if "other" in kept["numbers"] else "RsubBackward0",
             numbers="other", inline="other - input if alpha == 1 else _rsub_kernel(input, other, alpha=alpha)")
def rsub(input, other, *, alpha=1):
    return sub(other, input, alpha=alpha)


@elementwise(input="g * conj(other)", other="g * conj(input)", aliases="multiply", inline="input * other")
def mul(input, other):
    return np.multiply(input, other)


@elementwise(input="-g", aliases="negative", inline="-input")
def neg(input):
    if input.dtype.kind == "b":
        raise RuntimeError("Negation, the `-` operator, on a bool tensor is not supported. `~mask` turns a mask "
                           "round.")
    return np.negative(input)


@public
@method
def positive(input: Tensor) -> Tensor:
    """The tensor itself, which must not be bool."""
    if input._array.dtype.kind == "b":
        raise RuntimeError("The `+` operator, on a bool tensor is not supported.")
    return input


Tensor.__pos__ = positive  # type: ignore[operator]


# -- quotients and remainders ----------------------------------------------------------------------------------------
@elementwise(input="g / conj(other)", other="-g * (conj(input) / conj(other)) / conj(other)", promote="float",
             node="DivBackward0")
def true_divide(input, other):
    return np.true_divide(input, other)


def _check_divisor(other: np.ndarray) -> None:
    if dtypes.category(other.dtype) < dtypes.FLOATING and not np.all(other):
        raise RuntimeError("ZeroDivisionError")


def _floor_quotient(input: np.ndarray, other: np.ndarray) -> np.ndarray:
    _check_divisor(other)
    if input.dtype.kind == "b":
        raise refuse("div_floor", input)
    return np.floor_divide(input, other)


def _truncated_quotient(input: np.ndarray, other: np.ndarray) -> np.ndarray:
    if dtypes.category(input.dtype) >= dtypes.FLOATING:
        return np.trunc(np.true_divide(input, other))
    _check_divisor(other)
    floor, rest = np.divmod(input, other)
    return floor + ((rest != 0) & ((input < 0) != (other < 0))).astype(floor.dtype)


def _flat_gradient(F: Any, g: Any, other: Any, rounding_mode: Any) -> Any:
    return F.zeros_of(g)


def _flat_gradient_of_other(F: Any, g: Any, input: Any, other: Any, rounding_mode: Any) -> Any:
    return F.zeros_of(g)


@elementwise(input=_flat_gradient, other=_flat_gradient_of_other, public=False, method=False, node="DivBackward2")
def _div_rounded(input, other, *, rounding_mode):
    if input.dtype.kind == "c":
        raise refuse(f"div_{rounding_mode}", input)
    return (_floor_quotient if rounding_mode == "floor" else _truncated_quotient)(input, other)


def _check_rounding(rounding_mode: Any) -> None:
    if rounding_mode not in ("floor", "trunc"):
        raise RuntimeError("div expected rounding_mode to be one of None, 'trunc', or 'floor' but found "
                           f"'{rounding_mode}'")


def div(input: Any, other: Any, *, rounding_mode: str | None = None, out: Any = None) -> Any:
    """The quotient; with rounding_mode "floor" or "trunc", rounded and in the arguments' own dtype."""
    if rounding_mode is None:
        return TENSORS.true_divide(input, other, out=out)
    _check_rounding(rounding_mode)
    return TENSORS._div_rounded(input, other, rounding_mode=rounding_mode, out=out)


def div_(input: Tensor, other: Any, *, rounding_mode: str | None = None) -> Tensor:
    if rounding_mode is None:
        return TENSORS.true_divide_(input, other)
    _check_rounding(rounding_mode)
    return TENSORS._div_rounded_(input, other, rounding_mode=rounding_mode)


def install(name: str, function: Any, places: str = "function method", raw: Any = None) -> None:
    """Publish a function that chooses between entries; `raw` is what formulas call on arrays."""
    if "function" in places:
        for place in PUBLIC:
            place[name] = function
    if "method" in places:
        setattr(Tensor, name, function)
    if raw is not None:
        setattr(RAW, name, raw)


for _alias in ("div", "divide"):
    install(_alias, div, raw=true_divide)
    install(_alias + "_", div_, "method")
Tensor.__div__, Tensor.__idiv__ = div, div_  # type: ignore[attr-defined]


def _divided_by(self: Tensor, other: Any) -> Any:
    return TENSORS.reciprocal(self) * other if isinstance(other, OPERANDS) else NotImplemented


Tensor.__rtruediv__ = Tensor.__rdiv__ = _divided_by  # type: ignore[assignment,attr-defined,method-assign,operator]


@elementwise(input=no_derivative("floor_divide"), other=no_derivative("floor_divide"), node=NO_DERIVATIVE)
def floor_divide(input, other):
    if input.dtype.kind == "c":
        raise refuse("floor_divide", input)
    return _floor_quotient(input, other)


def _tensor_or_number(name: str) -> Any:
    return lambda kept: f"{name}Backward{0 if 'other' in kept['numbers'] else 1}"


@elementwise(input="g", other="-g * div_floor(input, other)", node=_tensor_or_number("Remainder"))
def remainder(input, other):
    _check_divisor(other)
    if input.dtype.kind in "bc":
        raise refuse("remainder", input)
    return np.remainder(input, other)


@elementwise(input="g", other="-g * div_trunc(input, other)", node=_tensor_or_number("Fmod"), numbers="other")
def fmod(input, other):
    _check_divisor(other)
    if input.dtype.kind in "bc":
        raise refuse("fmod", input)
    return np.fmod(input, other)


@helper
def div_floor(F, input, other):
    return F._div_rounded(input, other, rounding_mode="floor")


@helper
def div_trunc(F, input, other):
    return F._div_rounded(input, other, rounding_mode="trunc")


def _floor_divided_by(self: Tensor, other: Any) -> Any:
    return TENSORS.floor_divide(other, self) if isinstance(other, OPERANDS) else NotImplemented


def _remainder_of(self: Tensor, other: Any) -> Any:
    return TENSORS.remainder(other, self) if isinstance(other, OPERANDS) else NotImplemented


Tensor.__rfloordiv__ = _floor_divided_by  # type: ignore[attr-defined]
Tensor.__rmod__ = _remainder_of  # type: ignore[attr-defined]


@elementwise(input="-g * conj(result) * conj(result)", promote="float")
def reciprocal(input):
    return np.true_divide(1, input, dtype=input.dtype)


# -- powers ----------------------------------------------------------------------------------------------------------
def _power(base: np.ndarray, exponent: Any) -> np.ndarray:
    """A power in the arrays' own dtype, with integers to negative powers as PyTorch has them: rounded toward zero."""
    if dtypes.category(base.dtype) >= dtypes.FLOATING:
        return base ** exponent
    if base.dtype.kind == "b":
        return base | ~np.asarray(exponent)
    negative = exponent < 0
    if not np.any(negative):
        return np.power(base, exponent)
    size = np.power(base, np.where(negative, -exponent, exponent))
    return np.where(negative & (np.abs(base) != 1), 0, size).astype(base.dtype)


def _power_gradient(F: Any, g: Any, input: Any, exponent: Any) -> Any:
    if exponent == 0:
        return F.zeros_of(g)
    if exponent == 2:
        return g * (F.conj(input) * 2)
    return g * F.conj(exponent * F._pow_number(input, exponent - 1))


@elementwise(input=_power_gradient, public=False, method=False, node="PowBackward0")
def _pow_number(input, exponent):
    input = with_numbers(input, exponent)
    if dtypes.category(input.dtype) < dtypes.FLOATING:
        if exponent < 0:
            raise RuntimeError("Integers to negative integer powers are not allowed.")
        return _power(input, np.asarray(exponent, input.dtype))
    if exponent == 3:
        return input * input * input
    # NumPy takes bfloat16 with a Python number for float32.
    return input ** (exponent if input.dtype.kind != "V" else np.asarray(exponent, input.dtype))


def _power_gradient_of_base(F: Any, g: Any, input: Any, exponent: Any, result: Any) -> Any:
    # PyTorch saves the result here too, so that overwriting it is an error.
    slope = exponent * F._pow_tensors(input, exponent - 1)
    return F.where(exponent == 0, 0, g * F.conj(slope))


def _power_gradient_of_exponent(F: Any, g: Any, input: Any, exponent: Any, result: Any) -> Any:
    flat = F.real(exponent) >= 0
    if F.is_complex(exponent):
        flat = F.logical_and(flat, F.imag(exponent) == 0)
    return g * F.where(F.logical_and(input == 0, flat), 0, F.conj(result * F.log(input)))


@elementwise(input=_power_gradient_of_base, exponent=_power_gradient_of_exponent, public=False, method=False,
             node="PowBackward1",
             numbers=False)
def _pow_tensors(input, exponent):
    if input.dtype.kind == "b":
        raise refuse("pow", input)
    return _power(input, exponent)


def _power_gradient_of_number(F: Any, g: Any, self: Any, exponent: Any, result: Any) -> Any:
    if self == 0:
        return F.where(F.real(exponent) >= 0, 0, g * (result * float("-inf")))
    import cmath
    logarithm = cmath.log(self)
    if logarithm.imag == 0:
        return g * F.conj(result * logarithm.real)
    return g * F.conj(result * (logarithm if F.is_complex(result) else float("nan")))


@elementwise(exponent=_power_gradient_of_number, public=False, method=False, inplace=False, node="PowBackward2")
def _pow_of_number(exponent, self):
    exponent = with_numbers(exponent, self)
    if exponent.dtype.kind == "b":
        raise refuse("pow", exponent)
    return _power(np.asarray(self, exponent.dtype), exponent)


def pow(input: Any, exponent: Any, *, out: Any = None) -> Any:
    """input ** exponent, for two tensors, or a tensor and a number in either place."""
    if not isinstance(exponent, Tensor):
        return TENSORS._pow_number(input, _plain(exponent), out=out)
    if isinstance(input, Tensor):
        return TENSORS._pow_tensors(input, exponent, out=out)
    return TENSORS._pow_of_number(exponent, _plain(input), out=out)


def pow_(input: Tensor, exponent: Any) -> Tensor:
    if isinstance(exponent, Tensor):
        return TENSORS._pow_tensors_(input, exponent)
    return TENSORS._pow_number_(input, _plain(exponent))


def _plain(number: Any) -> Any:
    """A Python number; NumPy's own would not give way to an array's dtype."""
    if isinstance(number, np.generic):
        return number.item()
    if not isinstance(number, (int, float, complex)):
        raise TypeError(f"pow(): argument 'exponent' must be Tensor or Number, not {type(number).__name__}")
    return number


def _power_operator(self: Tensor, exponent: Any) -> Any:
    kind = exponent.__class__
    if kind is int or kind is float:
        return TENSORS._pow_number(self, exponent)
    return pow(self, exponent) if isinstance(exponent, OPERANDS) else NotImplemented


def _power_of(self: Tensor, other: Any) -> Any:
    return pow(other, self) if isinstance(other, OPERANDS) else NotImplemented


install("pow", pow, raw=_power)
install("pow_", pow_, "method")
Tensor.__pow__ = _power_operator  # type: ignore[assignment,attr-defined,method-assign,operator]
Tensor.__ipow__ = pow_  # type: ignore[attr-defined]
Tensor.__rpow__ = _power_of  # type: ignore[assignment,attr-defined,method-assign,operator]


@public
@method
def square(input: Tensor, *, out: Any = None) -> Tensor:
    """input ** 2."""
    return TENSORS._pow_number(input, 2, out=out)


def square_(input: Tensor) -> Tensor:
    return TENSORS._pow_number_(input, 2)


install("square_", square_)


def _in_double(value: Any, complex_wanted: bool) -> Any:
    if isinstance(value, Tensor):
        return TENSORS.cast(value, np.dtype(np.complex128 if complex_wanted else np.float64))
    return complex(value) if complex_wanted else float(value)


def _is_complex(value: Any) -> bool:
    return value._array.dtype.kind == "c" if isinstance(value, Tensor) else isinstance(value, complex)


@public
@method
def float_power(input: Any, exponent: Any, *, out: Any = None) -> Tensor:
    """A power computed in double precision."""
    wide = _is_complex(input) or _is_complex(exponent)
    return pow(_in_double(input, wide), _in_double(exponent, wide), out=out)


@method
def float_power_(input: Tensor, exponent: Any) -> Tensor:
    wanted = np.dtype(np.complex128 if _is_complex(input) or _is_complex(exponent) else np.float64)
    if input._array.dtype != wanted:
        raise RuntimeError(f"the base given to float_power_ has dtype {type_name(input.dtype.name)} but the "
                           f"operation's result "
                           f"requires dtype {type_name(dtypes.from_numpy(wanted).name)}")
    return pow_(input, _in_double(exponent, wanted.kind == "c"))


# -- fused forms -----------------------------------------------------------------------------------------------------
@elementwise(input="g", tensor1="g * (conj(tensor2) * value.conjugate())",
             tensor2="g * (conj(tensor1) * value.conjugate())",
             numbers=False)
def addcmul(input, tensor1, tensor2, *, value=1):
    product = np.multiply(tensor1, tensor2)
    return np.add(input, product if value == 1 else np.multiply(product, _fitting("addcmul", value, product)))


@elementwise(input="g", tensor1="g * (value.conjugate() / conj(tensor2))", numbers=False,
             tensor2="-g * (value.conjugate() * conj(tensor1)) / (conj(tensor2) * conj(tensor2))")
def addcdiv(input, tensor1, tensor2, *, value=1):
    if dtypes.category(input.dtype) < dtypes.FLOATING:
        raise RuntimeError("Integer division with addcdiv is no longer supported, and in a future release addcdiv "
                           "will perform a "
                           "true division of tensor1 and tensor2. Use (input + value * torch.trunc(tensor1 / "
                           "tensor2)) or "
                           "convert to a floating dtype first.")
    return np.add(input, np.multiply(_fitting("addcdiv", value, tensor1), tensor1) / tensor2)


def _fitting(name: str, value: Any, array: np.ndarray) -> Any:
    """A number argument in the arrays' dtype, if it fits there."""
    if isinstance(value, (float, complex)) and dtypes.category(array.dtype) < (
            dtypes.COMPLEX if isinstance(value, complex) else dtypes.FLOATING):
        raise RuntimeError(f"{name}: value cannot be converted to type {dtypes.from_numpy(array.dtype).name} without "
                           f"overflow")
    return np.asarray(value, array.dtype)


@elementwise(input="g * (1 - weight.conjugate())", end="g * weight.conjugate()", public=False, method=False,
             node="LerpBackward0", numbers=False)
def _lerp_number(input, end, weight):
    return _interpolate(input, end, weight)


@elementwise(input="g * (1 - conj(weight))", end="g * conj(weight)", weight="g * conj(end - input)", public=False,
             method=False,
             node="LerpBackward1", numbers=False)
def _lerp_tensor(input, end, weight):
    return _interpolate(input, end, weight)


def _interpolate(input: np.ndarray, end: np.ndarray, weight: Any) -> np.ndarray:
    """From `input` to `end`, reckoned from the nearer of the two, so that weight 1 gives `end` exactly."""
    if dtypes.category(input.dtype) < dtypes.FLOATING:
        raise refuse("lerp_kernel", input)
    gap = end - input
    return np.where(np.abs(weight) < 0.5, input + weight * gap, end - gap * (1 - weight))


_C_NAMES = {"float32": "float", "float64": "double"}  # what this message calls them


def _check_lerp(input: Any, end: Any, weight: Any) -> None:
    for name, other in (("end", end), ("weight", weight)):
        if isinstance(other, Tensor) and other._array.dtype != input._array.dtype:
            given, wanted = (_C_NAMES.get(one.dtype.name, one.dtype.name) for one in (other, input))
            raise RuntimeError(f"expected dtype {wanted} for `{name}` but got dtype {given}")


@public
@method
def lerp(input: Tensor, end: Tensor, weight: Any, *, out: Any = None) -> Tensor:
    """The point between `input` and `end` that lies `weight` of the way."""
    _check_lerp(input, end, weight)
    return (TENSORS._lerp_tensor if isinstance(weight, Tensor) else TENSORS._lerp_number)(input, end, weight, out=out)


@method
def lerp_(input: Tensor, end: Tensor, weight: Any) -> Tensor:
    _check_lerp(input, end, weight)
    return (TENSORS._lerp_tensor_ if isinstance(weight, Tensor) else TENSORS._lerp_number_)(input, end, weight)
