"""What the linear algebra families share: checks, the error they raise, and the words their formulas are made of."""
from __future__ import annotations

from typing import Any

import numpy as np

from ..arrays import dtypes
from ..tensor import Tensor, wrap
from .matrix import scalar_name
from .table import RAW, helper, operation

PRIVATE: dict[str, Any] = {"public": False, "method": False}


class LinAlgError(RuntimeError):
    """A matrix that the operation cannot work with: a singular one, or one that is not positive-definite."""


# -- checks ----------------------------------------------------------------------------------------------------------
def check_matrix(array: np.ndarray, name: str, argument: str = "A", low: bool = False) -> None:
    if array.ndim < 2:
        raise RuntimeError(f"{name}: The input tensor {argument} must have at least 2 dimensions.")
    check_floating(array, name, low)


def check_floating(array: np.ndarray, name: str, low: bool = False) -> None:
    if dtypes.category(array.dtype) < dtypes.FLOATING:
        raise RuntimeError(f"{name}: Expected a floating point or complex tensor as input. Got "
                           f"{scalar_name(array.dtype)}")
    if not low and array.dtype.itemsize == 2:
        raise RuntimeError(f"{name}: Low precision dtypes not supported. Got {scalar_name(array.dtype)}")


def check_square(array: np.ndarray, name: str, argument: str = "A") -> None:
    check_matrix(array, name, argument)
    if array.shape[-1] != array.shape[-2]:
        raise RuntimeError(f"{name}: {argument} must be batches of square matrices, but they are {array.shape[-2]} by "
                           f"{array.shape[-1]} "
                           "matrices")


def check_same_dtype(first: np.ndarray, second: np.ndarray, name: str) -> None:
    if first.dtype != second.dtype:
        raise RuntimeError(f"{name}: Expected A and B to have the same dtype, but found A of type "
                           f"{scalar_name(first.dtype)} and B of "
                           f"type {scalar_name(second.dtype)} instead")


def check_info(info: Any, name: str, words: str) -> None:
    """Raise for the first matrix of a batch whose `info` is not 0; `words` may use the number as {info}."""
    array = info._array if isinstance(info, Tensor) else info
    if array.any():
        position = int(np.flatnonzero(array.reshape(-1))[0])
        where = f"(Batch element {position}): " if array.ndim else ""
        raise LinAlgError(f"{name}: {where}{words.format(info=int(array.reshape(-1)[position]))}")


def each(function: Any, array: np.ndarray, *more: np.ndarray) -> list[Any]:
    """The function's results for every matrix of a batch."""
    flat = [one.reshape(-1, *one.shape[-2:]) if one.size else one.reshape(int(np.prod(one.shape[:-2])), *one.shape[-2:])
            for one in (array, *more)]
    return [function(*matrices) for matrices in zip(*flat, strict=True)]


# -- words for formulas ----------------------------------------------------------------------------------------------
def is_complex(value: Any) -> bool:
    array = value._array if isinstance(value, Tensor) else value
    return array.dtype.kind == "c"


@helper
def adj(F: Any, input: Any) -> Any:
    """The conjugate transpose of the matrices of a stack."""
    turned = F.transpose(input, -2, -1)
    return F.conj(turned) if is_complex(input) else turned


def constant(F: Any, array: np.ndarray) -> Any:
    """An array for a formula: as it is on arrays, wrapped on tensors."""
    return array if F is RAW else wrap(array)


def identity(F: Any, like: Any, n: int | None = None) -> Any:
    """The n by n identity in the dtype of another value."""
    array = like._array if isinstance(like, Tensor) else like
    return constant(F, np.eye(array.shape[-1] if n is None else n, dtype=array.dtype))


@operation(input="g * 0", public=False, method=False)
def identity_like(input):
    """The identity in another's shape: constant, yet it stays in the graph as it does in PyTorch."""
    return np.broadcast_to(np.eye(*input.shape[-2:], dtype=input.dtype), input.shape).copy()


def unaffected(F: Any, value: Any) -> np.ndarray:
    """The plain array behind a value, for decisions that depend on it."""
    return value if F is RAW else value._array


def column(F: Any, input: Any) -> Any:
    """Vectors as matrices of one column."""
    return F.unsqueeze(input, -1)


def diagonal_of(F: Any, input: Any) -> Any:
    return F.diagonal(input, 0, -2, -1)
