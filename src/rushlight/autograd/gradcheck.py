"""gradcheck and gradgradcheck: gradients against finite differences.

Complex numbers count as pairs of reals here, for inputs and outputs alike, so that one matrix of real derivatives says
everything about a function, analytic or not.
"""
from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from itertools import product
from types import ModuleType
from typing import Any

import numpy as np

from ..arrays.dtypes import FLOATING, category
from ..engine.call import grad
from ..ops.table import TENSORS
from ..tensor import Tensor, wrap
from .grad_mode import no_grad


class GradcheckError(RuntimeError):
    """gradcheck found a gradient that is wrong."""


def _tensors(given: Any) -> tuple:
    if isinstance(given, Tensor):
        return (given,)
    return tuple(given)


def _differentiable(outputs: Any) -> list[Tensor]:
    return [one for one in _tensors(outputs) if isinstance(one, Tensor) and one.requires_grad]


def _parts(array: np.ndarray) -> np.ndarray:
    """An array as a flat vector of reals, in double precision."""
    if array.dtype.kind == "c":
        return np.ascontiguousarray(array, np.complex128).reshape(-1).view(np.float64)
    return array.astype(np.float64).reshape(-1)


def _steps(tensor: Tensor) -> list[tuple[tuple, complex]]:
    """Each element's place, with the direction of each of its real parts, in the order of `_parts`."""
    directions: tuple = (1.0, 1j) if tensor._array.dtype.kind == "c" else (1.0,)
    return list(product(np.ndindex(tensor._shape), directions))


def _numerical(function: Callable, inputs: tuple, wanted: list[Tensor], outputs_chosen: Callable,
               eps: float) -> list[list]:
    """Derivatives by central differences: input -> output -> matrix (the input's real parts by the output's)."""
    found = []
    for tensor in wanted:
        rows = []
        array = tensor._array
        for place, direction in _steps(tensor):
            original = array[place]
            try:
                array[place] = original + eps * direction
                above = [_parts(one._array).copy() for one in outputs_chosen(function(*inputs))]
                array[place] = original - eps * direction
                below = [_parts(one._array).copy() for one in outputs_chosen(function(*inputs))]
            finally:
                array[place] = original
            rows.append([(a - b) / (2 * eps) for a, b in zip(above, below, strict=True)])
        count = len(rows[0]) if rows else 0
        found.append([np.stack([row[k] for row in rows]) for k in range(count)])
    return found


def _backward_rows(output: Tensor, wanted: list[Tensor]) -> list[np.ndarray]:
    """The same by backward, for one output: a matrix for each input."""
    columns: list[list] = [[] for _ in wanted]
    for place, direction in _steps(output):
        vector = np.zeros_like(output._array)
        vector[place] = direction
        found = grad(output, wanted, wrap(vector), retain_graph=True, allow_unused=True)
        for column, one, tensor in zip(columns, found, wanted, strict=True):
            if one is not None and one._shape != tensor._shape:
                raise GradcheckError("Analytical gradient has incorrect size")
            column.append(_parts(np.zeros_like(tensor._array) if one is None else one._array))
    return [np.stack(column, 1) if column else np.zeros((0, 0)) for column in columns]


def _forward_columns(function: Callable, inputs: tuple, wanted: list[Tensor], outputs_chosen: Callable) -> list[list]:
    """The same by forward mode: input -> output -> matrix."""
    from . import forward_ad
    found = []
    for tensor in wanted:
        rows = []
        for place, direction in _steps(tensor):
            vector = np.zeros_like(tensor._array)
            vector[place] = direction
            with forward_ad.dual_level():
                duals = [forward_ad.make_dual(one.detach(), wrap(vector)) if one is tensor else one for one in inputs]
                unpacked = [forward_ad.unpack_dual(one) for one in outputs_chosen(function(*duals))]
            rows.append([_parts(np.zeros_like(primal._array) if tangent is None else tangent._array)
                         for primal, tangent in unpacked])
        count = len(rows[0]) if rows else 0
        found.append([np.stack([row[k] for row in rows]) for k in range(count)])
    return found


def _compare(numerical: np.ndarray, analytical: np.ndarray, output: int, input_: int, atol: float, rtol: float,
             kind: str = "Jacobian mismatch") -> None:
    if analytical.shape != numerical.shape or not np.allclose(analytical, numerical, rtol, atol, equal_nan=True):
        raise GradcheckError(f"{kind} for output {output} with respect to input {input_},\nnumerical:{numerical}\n"
                             f"analytical:{analytical}\n(complex numbers are shown as pairs of reals)")


def _check_inputs(inputs: tuple) -> list[Tensor]:
    wanted = []
    for i, one in enumerate(inputs):
        if isinstance(one, Tensor) and one.requires_grad:
            if one._array.dtype not in (np.dtype(np.float64), np.dtype(np.complex128)):
                warnings.warn(f"Input #{i} requires gradient and is not a double precision floating point or complex. "
                              "Its finite differences are too coarse to compare with: pass x.double().",
                              stacklevel=3)
            if any(stride == 0 and size > 1 for stride, size in zip(one._array.strides, one._shape, strict=True)):
                raise RuntimeError(f"The {i}th input has a dimension with stride 0. Its elements cannot be "
                                   "moved one at a time, as finite differences need: pass x.contiguous().")
            if not one.is_leaf:
                one.retain_grad()
            wanted.append(one)
    if not wanted:
        raise ValueError("gradcheck expects at least one input tensor to require gradient, but none of the them have "
                         "requires_grad=True.")
    return wanted


def gradcheck(func: Callable, inputs: Any, *, eps: float = 1e-6, atol: float = 1e-5, rtol: float = 1e-3,
              raise_exception: bool = True, nondet_tol: float = 0.0, check_undefined_grad: bool = True,
              check_grad_dtypes: bool = False, check_batched_grad: bool = False,
              check_batched_forward_grad: bool = False, check_forward_ad: bool = False,
              check_backward_ad: bool = True, fast_mode: bool = False, masked: bool | None = None) -> bool:
    """Whether the gradients that `func` has agree with finite differences. Fast mode checks the whole Jacobian too."""
    if not (check_forward_ad or check_backward_ad):
        raise AssertionError("Expected at least one of check_forward_ad or check_backward_ad to be True")
    if check_batched_grad and not check_backward_ad:
        raise AssertionError("Setting check_batched_grad=True requires check_backward_ad to be True")
    given = _tensors(inputs)
    try:
        wanted = _check_inputs(given)
        _check(func, given, wanted, eps, atol, rtol, nondet_tol, check_undefined_grad, check_grad_dtypes,
               check_batched_grad, check_forward_ad, check_backward_ad)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def _check(func: Callable, inputs: tuple, wanted: list[Tensor], eps: float, atol: float, rtol: float, nondet_tol: float,
           check_undefined_grad: bool, check_grad_dtypes: bool, check_batched_grad: bool, check_forward_ad: bool,
           check_backward_ad: bool) -> None:
    every = _tensors(func(*inputs))
    outputs = _differentiable(every)
    if not outputs:
        def floating(made: Any) -> list:
            return [one for one in _tensors(made) if isinstance(one, Tensor) and category(one._array.dtype) >= FLOATING]
        for matrices in _numerical(func, inputs, wanted, floating, eps):
            if any(np.abs(matrix).max(initial=0) > atol for matrix in matrices):
                raise GradcheckError("Numerical gradient for function expected to be zero")
        return
    kept = [i for i, one in enumerate(every) if isinstance(one, Tensor) and one.requires_grad]

    def chosen(made: Any) -> list:
        return [_tensors(made)[i] for i in kept]

    numerical = _numerical(func, inputs, wanted, chosen, eps)
    if check_forward_ad:
        for i, matrices in enumerate(_forward_columns(func, inputs, wanted, chosen)):
            for k, matrix in enumerate(matrices):
                _compare(numerical[i][k], matrix, k, i, atol, rtol, "Jacobian computed with forward mode mismatch")
    if not check_backward_ad:
        return
    for k, output in enumerate(outputs):
        first = _backward_rows(output, wanted)
        for i, matrix in enumerate(first):
            _compare(numerical[i][k], matrix, k, i, atol, rtol)
        for again, before in zip(_backward_rows(output, wanted), first, strict=True):
            if np.abs(again - before).max(initial=0) > nondet_tol:
                raise GradcheckError("Backward is not reentrant, i.e., running backward with same input and "
                                     "grad_output multiple times gives different values: they differ by more than "
                                     f"nondet_tol, {nondet_tol}.")
        if check_batched_grad:
            _check_batched(output, wanted)
    _check_zero(outputs, wanted, check_grad_dtypes)
    if check_undefined_grad and len(outputs) > 1:
        for left_out in range(len(outputs)):
            rest = outputs[:left_out] + outputs[left_out + 1:]
            grad(rest, wanted, [wrap(np.ones_like(one._array)) for one in rest], retain_graph=True, allow_unused=True)


def _check_zero(outputs: list[Tensor], wanted: list[Tensor], check_dtypes: bool) -> None:
    """A gradient of zero must give zero, and every gradient must look like its input."""
    zeros = [wrap(np.zeros_like(one._array)) for one in outputs]
    found = grad(outputs, wanted, zeros, retain_graph=True, allow_unused=True)
    for one, tensor in zip(found, wanted, strict=True):
        if one is None:
            continue
        if one._array.any():
            raise GradcheckError("backward not multiplied by grad_output")
        if check_dtypes and one.dtype != tensor.dtype:
            raise GradcheckError("grad is incorrect type")
        if one._shape != tensor._shape:
            raise GradcheckError("grad is incorrect size")


def _check_batched(output: Tensor, wanted: list[Tensor]) -> None:
    """Two gradients at once must give what they give one by one."""
    generator = np.random.default_rng(0)
    rows = [generator.standard_normal(output._shape).astype(output._array.dtype) for _ in range(2)]
    together = grad(output, wanted, wrap(np.stack(rows)), retain_graph=True, allow_unused=True, is_grads_batched=True)
    single = [grad(output, wanted, wrap(np.asarray(row)), retain_graph=True, allow_unused=True) for row in rows]
    for i, one in enumerate(together):
        if one is not None and not np.allclose(one._array, np.stack([row[i]._array for row in single])):
            raise GradcheckError("gradcheck or gradgradcheck failed while testing batched gradient computation.")


def gradgradcheck(func: Callable, inputs: Any, grad_outputs: Any = None, *, eps: float = 1e-6, atol: float = 1e-5,
                  rtol: float = 1e-3, gen_non_contig_grad_outputs: bool = False, raise_exception: bool = True,
                  nondet_tol: float = 0.0, check_undefined_grad: bool = True, check_grad_dtypes: bool = False,
                  check_batched_grad: bool = False, check_fwd_over_rev: bool = False, check_rev_over_rev: bool = True,
                  fast_mode: bool = False, masked: bool = False) -> bool:
    """Whether the second derivatives that `func` has agree with finite differences of the first."""
    if not (check_fwd_over_rev or check_rev_over_rev):
        raise AssertionError("Expected at least one of check_fwd_over_rev or check_rev_over_rev to be True")
    given = _tensors(inputs)
    if grad_outputs is None:
        outputs = _differentiable(func(*given))
        generator = np.random.default_rng(0)
        vectors: tuple = tuple(_random_like(one, generator, gen_non_contig_grad_outputs) for one in outputs)
    else:
        vectors = _tensors(grad_outputs)
    count = len(vectors)

    def first_derivative(*args: Any) -> tuple:
        own, weights = args[:-count], args[-count:]
        own = tuple(one.requires_grad_() if isinstance(original, Tensor) and original.requires_grad and one.is_leaf
                    else one for one, original in zip(own, given, strict=True))
        targets = [one for one in own if isinstance(one, Tensor) and one.requires_grad]
        found = grad(_differentiable(func(*own)), targets, weights, create_graph=True, allow_unused=True)
        return tuple(one for one in found if one is not None)

    return gradcheck(first_derivative, given + vectors, eps=eps, atol=atol, rtol=rtol, raise_exception=raise_exception,
                     nondet_tol=nondet_tol, check_undefined_grad=check_undefined_grad,
                     check_grad_dtypes=check_grad_dtypes, check_batched_grad=check_batched_grad,
                     check_forward_ad=check_fwd_over_rev, check_backward_ad=check_rev_over_rev)


def _random_like(tensor: Tensor, generator: Any, non_contiguous: bool) -> Tensor:
    values = generator.standard_normal(tensor._shape)
    if tensor._array.dtype.kind == "c":
        values = values + 1j * generator.standard_normal(tensor._shape)
    values = np.asarray(values, tensor._array.dtype)
    if non_contiguous and values.ndim:
        values = np.stack([values, values], -1)[..., 0]
    with no_grad():
        return (wrap(values) if non_contiguous else TENSORS.clone(wrap(values))).requires_grad_()


class _CallableModule(ModuleType):
    """`autograd.gradcheck` is this module or the function in it, by what was imported first: calling works for both."""

    def __call__(self, *args: Any, **kwargs: Any) -> bool:
        return gradcheck(*args, **kwargs)


sys.modules[__name__].__class__ = _CallableModule

__all__ = ["GradcheckError", "gradcheck", "gradgradcheck"]
