"""torch.masked: reductions and normalisations that leave out the elements a mask is False for."""
from __future__ import annotations

from typing import Any

import numpy as np

from ..arrays import dtypes
from ..tensor import Tensor, wrap
from .linalg_products import vector_norm
from .table import TENSORS

_FLOATING_OR_COMPLEX = dtypes.FLOATING


def _category(dtype: dtypes.dtype) -> int:
    return dtypes.category(dtype.numpy)


# -- masks -----------------------------------------------------------------------------------------------------------
def _broadcast_mask(input: Tensor, mask: Any) -> Tensor:
    """The mask in the input's shape, as booleans."""
    if not isinstance(mask, Tensor):
        raise TypeError(f"mask must be a Tensor, not {type(mask).__name__}")
    if len(mask._shape) > len(input._shape):
        raise IndexError("_input_mask expected broadcastable mask (got mask dimensionality higher than of the input)")
    if mask._shape != input._shape:
        mask = TENSORS.clone(TENSORS.broadcast_to(mask, input._shape))
    return mask if mask.dtype is dtypes.bool_ else mask.to(dtypes.bool_)  # type: ignore[attr-defined]


def input_mask(input: Tensor, *args: Any, mask: Any = None, **kwargs: Any) -> Tensor:
    """The mask that a call with these arguments reads its input through."""
    if mask is None:
        raise ValueError("_input_mask requires explicit mask")
    return _broadcast_mask(input, mask)


def output_mask(operation: Any, input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """Which elements of a result are made of at least one that the mask lets through."""
    chosen = input_mask(input, **kwargs)
    if operation in (softmax, log_softmax, softmin, normalize, cumsum, cumprod):
        return chosen
    given = args[1:] if operation is norm else args  # before the dimensions norm has its order
    dims = _dims(given[0] if given else kwargs.get("dim"), input.ndim)
    return TENSORS.any(chosen, dims, bool(kwargs.get("keepdim"))) if dims else chosen


def _where(input: Tensor, mask: Any, neutral: Any) -> Tensor:
    """The input with the neutral element of a reduction where the mask is False."""
    if mask is None:
        return input
    fill = wrap(np.asarray(neutral, input._array.dtype))
    return TENSORS.where(_broadcast_mask(input, mask), input, fill)


def _extreme(name: str, input: Tensor, largest: bool) -> Any:
    """The largest or smallest number of the input's dtype."""
    kind = _category(input.dtype)
    if kind == dtypes.FLOATING:
        return np.inf if largest else -np.inf
    if kind == dtypes.INTEGER:
        limits = dtypes.iinfo(input.dtype)
        return limits.max if largest else limits.min
    raise NotImplementedError(f"identity of {name} on {input.dtype} input")


def _filled(name: str, input: Tensor, mask: Any, largest: bool) -> Tensor:
    return input if mask is None else _where(input, mask, _extreme(name, input, largest))


def _dims(dim: Any, ndim: int) -> tuple[int, ...]:
    """The dimensions meant, in order: all for None and for an empty tuple."""
    if dim is None or (not isinstance(dim, int) and not tuple(dim)):
        return tuple(range(ndim))
    found: list[int] = []
    span = max(ndim, 1)
    for one in (dim,) if isinstance(dim, int) else dim:
        if one in found:
            raise RuntimeError(f"dim={one} appears multiple times in the list of dims")
        if not -span <= one < span:
            raise IndexError(f"Dimension out of range (expected to be in range of [{-span}, {span - 1}], but got {one})")
        found.append(one % span)
    return tuple(sorted(found))


def _accumulated(input: Tensor, dtype: Any) -> Any:
    """The dtype of a sum: small integers add up in int64."""
    if dtype is not None:
        return dtype
    return dtypes.int64 if _category(input.dtype) < _FLOATING_OR_COMPLEX else input.dtype


# -- sums and products -----------------------------------------------------------------------------------------------
def sum(input: Tensor, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Any = None) -> Tensor:
    """The sum of what the mask lets through."""
    return TENSORS.sum(_where(input, mask, 0), _dims(dim, input.ndim), bool(keepdim), dtype=_accumulated(input, dtype))


def prod(input: Tensor, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Any = None) -> Tensor:
    """The product of what the mask lets through."""
    made = _where(input, mask, 1).to(_accumulated(input, dtype))  # type: ignore[attr-defined]
    for one in reversed(_dims(dim, input.ndim)):
        made = TENSORS.prod(made, one, bool(keepdim))
    return made


def cumsum(input: Tensor, dim: int, *, dtype: Any = None, mask: Any = None) -> Tensor:
    """The running sum of what the mask lets through."""
    return TENSORS.cumsum(_where(input, mask, 0), _dims(dim, input.ndim)[0], dtype=dtype or input.dtype)


def cumprod(input: Tensor, dim: int, *, dtype: Any = None, mask: Any = None) -> Tensor:
    """The running product of what the mask lets through."""
    return TENSORS.cumprod(_where(input, mask, 1), _dims(dim, input.ndim)[0], dtype=dtype or input.dtype)


# -- extremes --------------------------------------------------------------------------------------------------------
def amax(input: Tensor, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Any = None) -> Tensor:
    """The largest of what the mask lets through."""
    filled = _filled("amax", input, mask, False)
    return TENSORS.amax(filled, _dims(dim, input.ndim), bool(keepdim)).to(dtype or input.dtype)


def amin(input: Tensor, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Any = None) -> Tensor:
    """The smallest of what the mask lets through."""
    filled = _filled("amin", input, mask, True)
    return TENSORS.amin(filled, _dims(dim, input.ndim), bool(keepdim)).to(dtype or input.dtype)


def argmax(input: Tensor, dim: int | None = None, *, keepdim: bool = False, dtype: Any = None,
           mask: Any = None) -> Tensor:
    """Where the largest of what the mask lets through is."""
    filled = _filled("argmax", input, mask, False)
    return TENSORS.argmax(filled, dim, bool(keepdim)).to(dtype or input.dtype)


def argmin(input: Tensor, dim: int | None = None, *, keepdim: bool = False, dtype: Any = None,
           mask: Any = None) -> Tensor:
    """Where the smallest of what the mask lets through is."""
    filled = _filled("argmin", input, mask, True)
    return TENSORS.argmin(filled, dim, bool(keepdim)).to(dtype or input.dtype)


# -- means and spreads -----------------------------------------------------------------------------------------------
def _count(input: Tensor, dim: Any, keepdim: bool, mask: Tensor | None) -> Tensor:
    """How many elements each sum has."""
    counted = wrap(np.ones(input._shape, bool)) if mask is None else mask
    return TENSORS.sum(counted, _dims(dim, input.ndim), keepdim)


def mean(input: Tensor, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Any = None) -> Tensor:
    """The mean of what the mask lets through; nan of nothing."""
    wanted = dtype or input.dtype
    if _category(wanted) < _FLOATING_OR_COMPLEX:
        raise ValueError(f"mean(): Could not infer output dtype. {'Optional' if dtype else 'Input'} dtype must be either "
                         f"a floating point or complex dtype. Got: {wanted}")
    chosen = None if mask is None else _broadcast_mask(input, mask)
    total = sum(input, dim, keepdim=keepdim, dtype=wanted, mask=chosen)
    return total / _count(input, dim, bool(keepdim), chosen)


def median(input: Tensor, dim: int = -1, *, keepdim: bool = False, dtype: Any = None, mask: Any = None) -> Tensor:
    """The median of what the mask lets through; nan of nothing."""
    axis = _dims(dim, input.ndim)[0]
    if _category(input.dtype) == dtypes.FLOATING:
        return TENSORS.nanmedian(_where(input, mask, np.nan), axis, keepdim)[0]
    floating = input.to(dtypes.float32)  # type: ignore[attr-defined]
    made = TENSORS.nanmedian(_where(floating, mask, np.nan), axis, keepdim)[0]
    if np.isnan(made._array).any():
        raise ValueError("masked median expects no fully masked out rows if dtype is not floating point")
    return made.to(dtype or input.dtype)


def _variance(input: Tensor, dim: Any, unbiased: bool | None, correction: Any, keepdim: bool, dtype: Any,
              mask: Any) -> Tensor:
    if unbiased is not None and correction is not None:
        raise AssertionError("Only one of unbiased and correction may be given")
    less = float(correction) if correction is not None else 0.0 if unbiased is False else 1.0
    wanted = dtype or (input.dtype if _category(input.dtype) >= _FLOATING_OR_COMPLEX else dtypes.float32)
    work = wanted if _category(wanted) >= _FLOATING_OR_COMPLEX else dtypes.float32
    chosen = None if mask is None else _broadcast_mask(input, mask)
    count = _count(input, dim, True, chosen)
    apart = input - sum(input, dim, keepdim=True, dtype=wanted, mask=chosen) / count
    total = sum(apart * TENSORS.conj(apart), dim, keepdim=keepdim, dtype=work, mask=chosen)
    if not keepdim:
        count = TENSORS.reshape(count, total._shape)
    if less != 0:
        count = TENSORS.clamp(count.to(work.to_real()) - less, 0)  # type: ignore[attr-defined]
    return (total / count).to(wanted)


def var(input: Tensor, dim: Any = None, unbiased: bool | None = None, *, correction: Any = None, keepdim: bool = False,
        dtype: Any = None, mask: Any = None) -> Tensor:
    """The variance of what the mask lets through; nan of nothing."""
    return _variance(input, dim, unbiased, correction, bool(keepdim), dtype, mask)


def std(input: Tensor, dim: Any = None, unbiased: bool | None = None, *, correction: Any = None, keepdim: bool = False,
        dtype: Any = None, mask: Any = None) -> Tensor:
    """The standard deviation of what the mask lets through; nan of nothing."""
    return TENSORS.sqrt(_variance(input, dim, unbiased, correction, bool(keepdim), dtype, mask))


# -- logarithms of sums, norms ---------------------------------------------------------------------------------------
def _log_zero(name: str, input: Tensor) -> Any:
    return -np.inf if _category(input.dtype) == dtypes.COMPLEX else _extreme(name, input, False)


def logsumexp(input: Tensor, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Any = None) -> Tensor:
    """The logarithm of the sum of the exponentials of what the mask lets through."""
    filled = input if mask is None else _where(input, mask, _log_zero("logsumexp", input))
    return TENSORS.logsumexp(filled, _dims(dim, input.ndim), keepdim).to(dtype or input.dtype)


def logaddexp(input: Tensor, other: Tensor, *, dtype: Any = None, input_mask: Any = None,
              other_mask: Any = None) -> Tensor:
    """log(exp(input) + exp(other)), of which either may be masked."""
    first, second = _filled("logaddexp", input, input_mask, False), _filled("logaddexp", other, other_mask, False)
    return TENSORS.logaddexp(first, second).to(dtype or input.dtype)


def norm(input: Tensor, ord: Any = 2.0, dim: Any = None, *, keepdim: bool = False, dtype: Any = None,
         mask: Any = None) -> Tensor:
    """The vector norm of what the mask lets through."""
    neutral = 0.0
    if mask is not None and ord == -np.inf:
        if _category(input.dtype) != dtypes.FLOATING:
            raise AssertionError(f"input must be floating point, got {input.dtype}")
        neutral = np.inf
    return vector_norm(_where(input, mask, neutral), ord, _dims(dim, input.ndim), bool(keepdim),
                       dtype=dtype or input.dtype)


# -- normalisations --------------------------------------------------------------------------------------------------
def softmax(input: Tensor, dim: int, *, dtype: Any = None, mask: Any = None) -> Tensor:
    """softmax of what the mask lets through; the rest becomes 0."""
    filled = _filled("amax", input, mask, False)
    return TENSORS.softmax(filled, _dims(dim, input.ndim)[0], dtype or input.dtype)


def log_softmax(input: Tensor, dim: int, *, dtype: Any = None, mask: Any = None) -> Tensor:
    """The logarithm of softmax; what the mask leaves out becomes -inf."""
    filled = _filled("amax", input, mask, False)
    return TENSORS.log_softmax(filled, _dims(dim, input.ndim)[0], dtype or input.dtype)


def softmin(input: Tensor, dim: int, *, dtype: Any = None, mask: Any = None) -> Tensor:
    """softmax of the negated input."""
    filled = _filled("amin", input, mask, True)
    return TENSORS.softmax(-filled, _dims(dim, input.ndim)[0], dtype or input.dtype)


def normalize(input: Tensor, ord: float, dim: int, *, eps: float = 1e-12, dtype: Any = None, mask: Any = None) -> Tensor:
    """The input divided by its norm along a dimension, or by eps where that is larger."""
    size = norm(input, ord, dim, keepdim=True, dtype=dtype, mask=mask)
    return _where(input, mask, 0) / TENSORS.maximum(size, wrap(np.asarray(eps, size._array.dtype)))
