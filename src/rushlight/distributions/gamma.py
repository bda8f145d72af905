"""Gamma and what is made of it: Dirichlet and Beta. Their samples do not carry gradients of the concentration."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import rushlight

from ..arrays import random
from ..tensor import Tensor, wrap
from . import constraints
from .distribution import Distribution, broadcast_all, not_differentiable


class Gamma(Distribution):
    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}  # type: ignore[assignment]
    support = constraints.nonnegative  # type: ignore[assignment]
    has_rsample = True

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        self.concentration, self.rate = broadcast_all(concentration, rate)
        super().__init__(self.concentration.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.concentration / self.rate

    @property
    def mode(self) -> Tensor:
        return ((self.concentration - 1) / self.rate).clamp(min=0)

    @property
    def variance(self) -> Tensor:
        return self.concentration / self.rate ** 2

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        not_differentiable("Gamma", self.concentration)
        shape = self._extended_shape(sample_shape)
        drawn = wrap(random.gamma(None, np.broadcast_to(self.concentration._array, shape))) / self.rate.expand(shape)
        drawn.detach().clamp_(min=rushlight.finfo(drawn.dtype).tiny)
        return drawn

    def log_prob(self, value: Tensor) -> Tensor:
        value = self._checked(rushlight.as_tensor(value, dtype=self.rate.dtype))
        return (rushlight.xlogy(self.concentration, self.rate) + rushlight.xlogy(self.concentration - 1, value)
                - self.rate * value - rushlight.lgamma(self.concentration))

    def entropy(self) -> Tensor:
        alpha = self.concentration
        return alpha - self.rate.log() + rushlight.lgamma(alpha) + (1.0 - alpha) * rushlight.digamma(alpha)


class Dirichlet(Distribution):
    arg_constraints = {"concentration": constraints.independent(constraints.positive, 1)}  # type: ignore[assignment]
    support = constraints.simplex  # type: ignore[assignment]
    has_rsample = True
    _event_dims = {"concentration": 1}

    def __init__(self, concentration: Tensor, validate_args: bool | None = None) -> None:
        if concentration.dim() < 1:
            raise ValueError("`concentration` parameter must be at least one-dimensional.")
        self.concentration = concentration
        super().__init__(concentration.shape[:-1], concentration.shape[-1:], validate_args)

    @property
    def mean(self) -> Tensor:
        return self.concentration / self.concentration.sum(-1, True)

    @property
    def variance(self) -> Tensor:
        total = self.concentration.sum(-1, True)
        return self.concentration * (total - self.concentration) / (total ** 2 * (total + 1))

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        not_differentiable("Dirichlet", self.concentration)
        array = self.concentration._array
        # PyTorch draws these gammas in double precision whatever the dtype.
        drawn = random.gamma(None, np.broadcast_to(array, self._extended_shape(sample_shape)).astype(np.float64))
        limits = np.finfo(array.dtype)
        return wrap(np.clip((drawn / drawn.sum(-1, keepdims=True)).astype(array.dtype), limits.tiny, 1 - limits.epsneg))

    def log_prob(self, value: Tensor) -> Tensor:
        self._checked(value)
        alpha = self.concentration
        return rushlight.xlogy(alpha - 1.0, value).sum(-1) + rushlight.lgamma(alpha.sum(-1)) - rushlight.lgamma(alpha).sum(-1)

    def entropy(self) -> Tensor:
        alpha, total = self.concentration, self.concentration.sum(-1)
        return (rushlight.lgamma(alpha).sum(-1) - rushlight.lgamma(total) - (alpha.size(-1) - total) * rushlight.digamma(total)
                - ((alpha - 1.0) * rushlight.digamma(alpha)).sum(-1))


class Beta(Distribution):
    arg_constraints = {"concentration1": constraints.positive, "concentration0": constraints.positive}  # type: ignore[assignment]
    support = constraints.unit_interval  # type: ignore[assignment]
    has_rsample = True

    def __init__(self, concentration1: Any, concentration0: Any, validate_args: bool | None = None) -> None:
        self.concentration1, self.concentration0 = broadcast_all(concentration1, concentration0)
        super().__init__(self.concentration1.shape, validate_args=validate_args)

    def _pair(self) -> Dirichlet:
        return Dirichlet(rushlight.stack((self.concentration1, self.concentration0), -1), validate_args=False)

    @property
    def mean(self) -> Tensor:
        return self.concentration1 / (self.concentration1 + self.concentration0)

    @property
    def variance(self) -> Tensor:
        total = self.concentration1 + self.concentration0
        return self.concentration1 * self.concentration0 / (total ** 2 * (total + 1))

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        not_differentiable("Beta", self.concentration1, self.concentration0)
        return self._pair().rsample(sample_shape).select(-1, 0)

    def log_prob(self, value: Tensor) -> Tensor:
        self._checked(value)
        return self._pair().log_prob(rushlight.stack((value, 1.0 - value), -1))

    def entropy(self) -> Tensor:
        return self._pair().entropy()
