"""Distributions over finitely or countably many values."""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import rushlight

from ..tensor import Size, Tensor
from . import constraints
from .distribution import Distribution, broadcast_all, lazy


def _one_of(probs: Any, logits: Any) -> None:
    if (probs is None) == (logits is None):
        raise ValueError("Either `probs` or `logits` must be specified, but not both.")


def _clamped(probs: Tensor) -> Tensor:
    """Away from 0 and 1, whose logits are infinite."""
    eps = rushlight.finfo(probs.dtype).eps
    return probs.clamp(min=eps, max=1 - eps)


class Categorical(Distribution):
    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}  # type: ignore[assignment]
    has_enumerate_support = True
    _event_dims = {"probs": 1, "logits": 1}

    def __init__(self, probs: Tensor | None = None, logits: Tensor | None = None, validate_args: bool | None = None) -> None:
        _one_of(probs, logits)
        given: Any = logits if probs is None else probs
        if given.dim() < 1:
            raise ValueError(f"`{'logits' if probs is None else 'probs'}` parameter must be at least one-dimensional.")
        if probs is None:
            self.logits = given - given.logsumexp(dim=-1, keepdim=True)
        else:
            self.probs = given / given.sum(-1, keepdim=True)
        super().__init__(given.shape[:-1], validate_args=validate_args)

    @lazy
    def logits(self) -> Tensor:
        return _clamped(self.probs).log()

    @lazy
    def probs(self) -> Tensor:
        return rushlight.softmax(self.logits, -1)

    @property
    def _num_events(self) -> int:
        return self.param_shape[-1]

    @property
    def param_shape(self) -> Size:
        return self.__dict__["probs" if "probs" in self.__dict__ else "logits"].shape

    @property
    def support(self) -> constraints.Constraint:
        return constraints.integer_interval(0, self._num_events - 1)

    @property
    def mean(self) -> Tensor:
        return rushlight.full(self._batch_shape, math.nan, dtype=self.probs.dtype)

    variance = mean

    @property
    def mode(self) -> Tensor:
        return self.probs.argmax(dim=-1)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = Size((*sample_shape, *self._batch_shape))
        table = self.probs.detach().reshape(-1, self._num_events)
        return rushlight.multinomial(table, math.prod(sample_shape), True).t().reshape(shape)

    def log_prob(self, value: Tensor) -> Tensor:
        self._checked(value)
        value, logits = rushlight.broadcast_tensors(value.long().unsqueeze(-1), self.logits)
        return logits.gather(-1, value[..., :1]).squeeze(-1)

    def entropy(self) -> Tensor:
        logits = self.logits.clamp(min=rushlight.finfo(self.logits.dtype).min)  # 0 * -inf would be nan
        return -(logits * self.probs).sum(-1)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        values = rushlight.arange(self._num_events).reshape(-1, *[1] * len(self._batch_shape))
        return values.expand(-1, *self._batch_shape) if expand else values


class OneHotCategorical(Distribution):
    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}  # type: ignore[assignment]
    support = constraints.one_hot  # type: ignore[assignment]
    has_enumerate_support = True

    def __init__(self, probs: Tensor | None = None, logits: Tensor | None = None, validate_args: bool | None = None) -> None:
        self._categorical = Categorical(probs, logits, validate_args)
        super().__init__(self._categorical.batch_shape, self._categorical.param_shape[-1:], validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        new = super().expand(batch_shape, _instance)
        new._categorical = self._categorical.expand(batch_shape)
        return new

    @property
    def probs(self) -> Tensor:
        return self._categorical.probs

    @property
    def logits(self) -> Tensor:
        return self._categorical.logits

    mean = probs

    @property
    def mode(self) -> Tensor:
        return rushlight.nn.functional.one_hot(self._categorical.mode, self._event_shape[0]).to(self.probs.dtype)

    @property
    def variance(self) -> Tensor:
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        drawn = self._categorical.sample(sample_shape)
        return rushlight.nn.functional.one_hot(drawn, self._event_shape[0]).to(self.probs.dtype)

    def log_prob(self, value: Tensor) -> Tensor:
        self._checked(value)
        return self._categorical.log_prob(value.argmax(-1))

    def entropy(self) -> Tensor:
        return self._categorical.entropy()


class Bernoulli(Distribution):
    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}  # type: ignore[assignment]
    support = constraints.boolean  # type: ignore[assignment]
    has_enumerate_support = True

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        _one_of(probs, logits)
        if probs is None:
            (self.logits,) = broadcast_all(logits)
        else:
            (self.probs,) = broadcast_all(probs)
        super().__init__((self.logits if probs is None else self.probs).shape, validate_args=validate_args)

    @lazy
    def logits(self) -> Tensor:
        probs = _clamped(self.probs)
        return probs.log() - rushlight.log1p(-probs)

    @lazy
    def probs(self) -> Tensor:
        return rushlight.sigmoid(self.logits)

    @property
    def mean(self) -> Tensor:
        return self.probs

    @property
    def mode(self) -> Tensor:
        mode = (self.probs >= 0.5).to(self.probs.dtype)
        return mode.masked_fill(self.probs == 0.5, math.nan)

    @property
    def variance(self) -> Tensor:
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return rushlight.bernoulli(self.probs.detach().expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        self._checked(value)
        logits, value = broadcast_all(self.logits, value)
        return -rushlight.nn.functional.binary_cross_entropy_with_logits(logits, value, reduction="none")

    def entropy(self) -> Tensor:
        return rushlight.nn.functional.binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")

    def enumerate_support(self, expand: bool = True) -> Tensor:
        values = rushlight.arange(2, dtype=self.probs.dtype).reshape(-1, *[1] * len(self._batch_shape))
        return values.expand(-1, *self._batch_shape) if expand else values


class Poisson(Distribution):
    arg_constraints = {"rate": constraints.nonnegative}  # type: ignore[assignment]
    support = constraints.nonnegative_integer  # type: ignore[assignment]

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        (self.rate,) = broadcast_all(rate)
        super().__init__(self.rate.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.rate

    variance = mean

    @property
    def mode(self) -> Tensor:
        return self.rate.floor()

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return rushlight.poisson(self.rate.detach().expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        self._checked(value)
        rate, value = broadcast_all(self.rate, value)
        return rushlight.xlogy(value, rate) - rate - rushlight.lgamma(value + 1)
