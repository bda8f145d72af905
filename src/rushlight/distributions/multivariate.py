"""Distributions of vectors: the normal one, and any batch of others taken as one event."""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import rushlight

from ..tensor import Size, Tensor
from . import constraints
from .distribution import Distribution, lazy, standard_normal


class MultivariateNormal(Distribution):
    arg_constraints = {  # type: ignore[assignment]
        "loc": constraints.real_vector, "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite, "scale_tril": constraints.lower_cholesky,
    }
    support = constraints.real_vector  # type: ignore[assignment]
    has_rsample = True
    _event_dims = {"loc": 1, "covariance_matrix": 2, "precision_matrix": 2, "scale_tril": 2}

    def __init__(self, loc: Tensor, covariance_matrix: Tensor | None = None, precision_matrix: Tensor | None = None,
                 scale_tril: Tensor | None = None, validate_args: bool | None = None) -> None:
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        given = {name: value for name, value in (("scale_tril", scale_tril), ("covariance_matrix", covariance_matrix),
                                                 ("precision_matrix", precision_matrix)) if value is not None}
        if len(given) != 1:
            raise ValueError("Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified.")
        (name, matrix), = given.items()
        if matrix.dim() < 2:
            raise ValueError(f"{name}{' matrix' if name == 'scale_tril' else ''} must be at least two-dimensional, with optional "
                             "leading batch dimensions")
        batch = rushlight.broadcast_shapes(matrix.shape[:-2], loc.shape[:-1])
        self.__dict__[name] = matrix.expand((*batch, *matrix.shape[-2:]))
        self.loc = loc.expand((*batch, loc.shape[-1]))
        super().__init__(batch, loc.shape[-1:], validate_args)
        # The triangular factor as it was given, not repeated for the batch: everything is computed from it.
        self._factor = (matrix if name == "scale_tril" else rushlight.linalg.cholesky(matrix) if name == "covariance_matrix"
                        else _factor_of_inverse(matrix))

    def _for_batch(self, matrix: Tensor) -> Tensor:
        return matrix.expand((*self._batch_shape, *matrix.shape[-2:]))

    @lazy
    def scale_tril(self) -> Tensor:
        return self._for_batch(self._factor)

    @lazy
    def covariance_matrix(self) -> Tensor:
        return self._for_batch(self._factor @ self._factor.mT)

    @lazy
    def precision_matrix(self) -> Tensor:
        inverse = rushlight.linalg.inv(self._factor)
        return self._for_batch(inverse.mT @ inverse)

    @property
    def mean(self) -> Tensor:
        return self.loc

    mode = mean

    @property
    def variance(self) -> Tensor:
        return (self._factor ** 2).sum(-1).expand((*self._batch_shape, *self._event_shape))

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        drawn = standard_normal(self._extended_shape(sample_shape), self.loc)
        return self.loc + (self._factor @ drawn.unsqueeze(-1)).squeeze(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        self._checked(value)
        away = rushlight.linalg.solve_triangular(self._factor, (value - self.loc).unsqueeze(-1), upper=False).squeeze(-1)
        return -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + (away ** 2).sum(-1)) - self._half_log_det()

    def _half_log_det(self) -> Tensor:
        return self._factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)

    def entropy(self) -> Tensor:
        entropy = 0.5 * self._event_shape[0] * (1.0 + math.log(2 * math.pi)) + self._half_log_det()
        return entropy.expand(self._batch_shape)


def _factor_of_inverse(matrix: Tensor) -> Tensor:
    """The lower triangular L with L L^T the inverse of `matrix`, without inverting it: the factor of the reversed matrix,
    reversed and transposed, is the inverse of L."""
    inverse = rushlight.linalg.cholesky(matrix.flip((-2, -1))).flip((-2, -1)).mT
    return rushlight.linalg.solve_triangular(inverse, rushlight.eye(matrix.shape[-1], dtype=matrix.dtype), upper=False)


class Independent(Distribution):
    """The last dimensions of another distribution's batch, taken as one event: their log_prob is summed."""

    arg_constraints = {}  # type: ignore[assignment]

    def __init__(self, base_distribution: Any, reinterpreted_batch_ndims: int, validate_args: bool | None = None) -> None:
        batch = base_distribution.batch_shape
        if reinterpreted_batch_ndims > len(batch):
            raise ValueError("Expected reinterpreted_batch_ndims <= len(base_distribution.batch_shape), actual "
                             f"{reinterpreted_batch_ndims} vs {len(batch)}")
        kept = len(batch) - reinterpreted_batch_ndims
        self.base_dist = base_distribution
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims
        super().__init__(batch[:kept], (*batch[kept:], *base_distribution.event_shape), validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        new = super().expand(batch_shape, _instance)
        new.base_dist = self.base_dist.expand(Size((*batch_shape, *self._event_shape[:self.reinterpreted_batch_ndims])))
        return new

    @property
    def has_rsample(self) -> bool:  # type: ignore[override]
        return self.base_dist.has_rsample

    @property
    def has_enumerate_support(self) -> bool:  # type: ignore[override]
        return self.base_dist.has_enumerate_support and not self.reinterpreted_batch_ndims

    @property
    def support(self) -> constraints.Constraint:
        base = self.base_dist.support
        return constraints.independent(base, self.reinterpreted_batch_ndims) if self.reinterpreted_batch_ndims else base

    @property
    def mean(self) -> Tensor:
        return self.base_dist.mean

    @property
    def mode(self) -> Tensor:
        return self.base_dist.mode

    @property
    def variance(self) -> Tensor:
        return self.base_dist.variance

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self.base_dist.sample(sample_shape)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self.base_dist.rsample(sample_shape)

    def log_prob(self, value: Tensor) -> Tensor:
        return self._summed(self.base_dist.log_prob(value))

    def entropy(self) -> Tensor:
        return self._summed(self.base_dist.entropy())

    def _summed(self, values: Tensor) -> Tensor:
        count = self.reinterpreted_batch_ndims
        return values.sum(tuple(range(-count, 0))) if count else values

    def enumerate_support(self, expand: bool = True) -> Tensor:
        if self.reinterpreted_batch_ndims:
            raise NotImplementedError("Enumeration over cartesian product is not implemented")
        return self.base_dist.enumerate_support(expand)

    def __repr__(self) -> str:
        return f"Independent({self.base_dist}, {self.reinterpreted_batch_ndims})"
