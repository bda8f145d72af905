"""Complex numbers: their parts as views, conjugates, angles, and making them from parts."""
from __future__ import annotations

from typing import Any

import numpy as np

from ..arrays import dtypes
from ..tensor import Tensor
from .arithmetic import install, refuse
from .table import RAW, TENSORS, elementwise, method, operation, public


# -- parts, as views -------------------------------------------------------------------------------------------------
@operation(input="g", view=True, public=False, method=False, node="SelectBackward0", jvp="linear", output_real=False)
def _real(input):
    return input.real


@operation(input="g * 1j", view=True, public=False, method=False, node="SelectBackward0", jvp="linear",
           output_real=False)
def _imag(input):
    return input.imag


def real(input: Tensor) -> Tensor:
    """The real part, as a view; a real tensor is its own."""
    return TENSORS._real(input) if input._array.dtype.kind == "c" else input


def imag(input: Tensor) -> Tensor:
    """The imaginary part, as a view."""
    if input._array.dtype.kind != "c":
        raise RuntimeError("imag is not implemented for tensors with non-complex dtypes.")
    return TENSORS._imag(input)


install("real", real, "function", raw=lambda array: array.real)
install("imag", imag, "function", raw=lambda array: array.imag)


def _set_real(self: Tensor, value: Any) -> None:
    _assign(real(self), value)


def _set_imag(self: Tensor, value: Any) -> None:
    _assign(imag(self), value)


def _assign(part: Tensor, value: Any) -> None:
    part.copy_(value) if isinstance(value, Tensor) else part.fill_(value)  # type: ignore[attr-defined]


Tensor.real = property(real, _set_real)  # type: ignore[attr-defined]
Tensor.imag = property(imag, _set_imag)  # type: ignore[attr-defined]


@operation(input="view_as_complex(contiguous_copy(g))", view=True, method=False, jvp="linear", output_real=False)
def view_as_real(input):
    if input.dtype.kind != "c":
        raise RuntimeError("view_as_real is only supported for complex tensors")
    return input[..., None].view(input.real.dtype)


@operation(input="view_as_real(g)", view=True, method=False, jvp="linear", output_real=False)
def view_as_complex(input):
    if dtypes.category(input.dtype) != dtypes.FLOATING or input.dtype.itemsize < 4:
        raise RuntimeError("view_as_complex is only supported for half, float and double tensors, but got a tensor of "
                           "scalar "
                           f"type: {dtypes.from_numpy(input.dtype).name}")
    if input.ndim == 0:
        raise RuntimeError("Input tensor must have one or more dimensions")
    if input.shape[-1] != 2:
        raise RuntimeError("Tensor must have a last dimension of size 2")
    if input.strides[-1] != input.itemsize:
        raise RuntimeError("Tensor must have a last dimension with stride 1")
    if any(stride % (2 * input.itemsize) for stride in input.strides[:-1]):
        raise RuntimeError("Tensor must have a stride divisible by 2 for all but last dimension")
    return input.view(np.complex64 if input.itemsize == 4 else np.complex128)[..., 0]


@operation(input="g", public=False, method=False, jvp="linear")
def contiguous_copy(input):
    return np.array(input, order="C")


# -- conjugates ------------------------------------------------------------------------------------------------------
@elementwise(input="_conj(g)", public=False, method=False, inplace=False, node="ConjBackward0")
def _conj(input):
    return np.conjugate(input)


@elementwise(input="conj(g)")
def conj_physical(input):
    return np.conjugate(input) if input.dtype.kind == "c" else input.copy()


def conj(input: Any) -> Any:
    """The conjugate; a real tensor is its own. Unlike PyTorch's it has its own memory from the start."""
    if not isinstance(input, Tensor):
        return input.conjugate()  # a number in a formula
    return TENSORS._conj(input) if input._array.dtype.kind == "c" else input


def _raw_conj(array: np.ndarray) -> np.ndarray:
    return np.conjugate(array) if array.dtype.kind == "c" else array


install("conj", conj, raw=_raw_conj)


@public
@method
def resolve_conj(input: Tensor) -> Tensor:
    """The tensor itself: conjugation is never put off here."""
    return input


@public
@method
def resolve_neg(input: Tensor) -> Tensor:
    """The tensor itself: negation is never put off here."""
    return input


@public
@method
def is_conj(input: Tensor) -> bool:
    return False


@public
@method
def is_neg(input: Tensor) -> bool:
    return False


# -- angles, making complex numbers ----------------------------------------------------------------------------------
def _angle_gradient(F: Any, g: Any, input: Any) -> Any:
    if not F.is_complex(input):
        return F.zeros_of(g)
    size = F.abs(input)
    zero = size == 0
    return F.where(zero, 0, g * (input / F.where(zero, 1, size * size)) * 1j)


@elementwise(input=_angle_gradient, promote="float", inplace=False)
def angle(input):
    if input.dtype.kind == "c":
        return np.angle(input)
    return np.where(np.isnan(input), input, np.where(input < 0, np.pi, 0)).astype(input.dtype)


def _check_parts(first: np.ndarray, second: np.ndarray) -> None:
    if dtypes.category(first.dtype) != dtypes.FLOATING or dtypes.category(second.dtype) != dtypes.FLOATING:
        raise RuntimeError("Expected both inputs to be Half, Float or Double tensors but got "
                           f"{dtypes.from_numpy(first.dtype).name} and {dtypes.from_numpy(second.dtype).name}")
    if first.dtype != second.dtype:
        raise RuntimeError(f"Expected object of scalar type {dtypes.from_numpy(first.dtype).name} but got scalar type "
                           f"{dtypes.from_numpy(second.dtype).name} for second argument")
    if first.dtype.itemsize == 2:
        raise refuse("complex", first)


def _compose(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    out = np.empty(np.broadcast_shapes(first.shape, second.shape), dtypes.from_numpy(first.dtype).to_complex().numpy)
    out.real, out.imag = first, second
    return out


def _complex_gradient(F: Any, g: Any, real: Any, imag: Any) -> Any:
    return F.real(g)


def _complex_gradient_of_imag(F: Any, g: Any, real: Any, imag: Any) -> Any:
    return F.imag(g)


@elementwise(real=_complex_gradient, imag=_complex_gradient_of_imag, promote="none", method=False, inplace=False,
             numbers=False,
             jvp=None)
def complex(real, imag):
    _check_parts(real, imag)
    return _compose(real, imag)


@elementwise(abs="real(conj(g) * sgn(result))", angle="real(conj(g) * result * 1j)", promote="none", method=False,
             inplace=False,
             numbers=False, jvp=None)
def polar(abs, angle):
    _check_parts(abs, angle)
    return _compose(abs * np.cos(angle), abs * np.sin(angle))


# For formulas; users have the package's own.
RAW.__dict__["is_complex"] = lambda array: array.dtype.kind == "c"
TENSORS.__dict__["is_complex"] = lambda tensor: tensor._array.dtype.kind == "c"
