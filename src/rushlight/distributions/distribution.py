"""What all distributions have: shapes, checks of parameters and samples, expansion."""
from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import rushlight

from ..arrays import dtypes
from ..tensor import Size, Tensor
from ..tensor.construct import tensor
from .constraints import Constraint


class Distribution:
    """Samples have the shape sample_shape + batch_shape + event_shape; log_prob gives one number per event.

    A subclass names its parameters in `arg_constraints` and sets them before it calls `__init__` here. A parameter whose
    values are not single numbers is in `_event_dims`, with the number of dimensions one value takes.
    """

    has_rsample = False
    has_enumerate_support = False
    _validate_args = __debug__
    _event_dims: dict[str, int] = {}

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Whether parameters and samples are checked where validate_args is not given."""
        if value not in (True, False):
            raise ValueError("set_default_validate_args: True or False")
        Distribution._validate_args = value

    def __init__(self, batch_shape: Sequence[int] = (), event_shape: Sequence[int] = (),
                 validate_args: bool | None = None) -> None:
        self._batch_shape = Size(batch_shape)
        self._event_shape = Size(event_shape)
        if validate_args is not None:
            self._validate_args = validate_args
        if not self._validate_args:
            return
        try:
            constraints = self.arg_constraints
        except NotImplementedError:
            warnings.warn(f"{type(self)} does not define `arg_constraints`, so its parameters are not checked. Set "
                          "`arg_constraints = {}`, or pass `validate_args=False`.", stacklevel=2)
            return
        for name, constraint in constraints.items():
            value = self.__dict__.get(name)  # what is derived from the others when asked for need not be checked
            if value is not None and not constraint.check(value).all():
                raise ValueError(f"Expected parameter {name} ({type(value).__name__} of shape {tuple(value.shape)}) of "
                                 f"distribution {self!r} to satisfy the constraint {constraint!r}, but found invalid values:\n"
                                 f"{value}")

    @property
    def arg_constraints(self) -> dict[str, Constraint]:
        raise NotImplementedError

    @property
    def support(self) -> Constraint:
        raise NotImplementedError

    @property
    def batch_shape(self) -> Size:
        return self._batch_shape

    @property
    def event_shape(self) -> Size:
        return self._event_shape

    @property
    def mean(self) -> Tensor:
        raise NotImplementedError

    @property
    def mode(self) -> Tensor:
        raise NotImplementedError(f"{type(self)} does not implement mode")

    @property
    def variance(self) -> Tensor:
        raise NotImplementedError

    @property
    def stddev(self) -> Tensor:
        return self.variance.sqrt()

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with rushlight.no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """A sample through which gradients reach the parameters."""
        raise NotImplementedError

    def log_prob(self, value: Tensor) -> Tensor:
        raise NotImplementedError

    def cdf(self, value: Tensor) -> Tensor:
        raise NotImplementedError

    def icdf(self, value: Tensor) -> Tensor:
        raise NotImplementedError

    def enumerate_support(self, expand: bool = True) -> Tensor:
        raise NotImplementedError

    def entropy(self) -> Tensor:
        raise NotImplementedError

    def perplexity(self) -> Tensor:
        return self.entropy().exp()

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        """The same distribution with its parameters expanded to a larger batch."""
        new = object.__new__(type(self)) if _instance is None else _instance
        new.__dict__.update(self.__dict__)
        new._batch_shape = Size(batch_shape)
        for name in self.arg_constraints:
            if name in self.__dict__:
                value = self.__dict__[name]
                taken = self._event_dims.get(name, 0)
                new.__dict__[name] = value.expand((*batch_shape, *value.shape[value.ndim - taken:]))
        return new

    def _extended_shape(self, sample_shape: Sequence[int] = ()) -> Size:
        return Size((*sample_shape, *self._batch_shape, *self._event_shape))

    def _validate_sample(self, value: Any) -> None:
        """Raise unless log_prob and the like can take this value."""
        if not isinstance(value, Tensor):
            raise ValueError("The value argument to log_prob must be a Tensor")
        shape, events = value.shape, len(self._event_shape)
        if shape[len(shape) - events:] != self._event_shape:
            raise ValueError(f"The right-most size of value must match event_shape: {shape} vs {self._event_shape}.")
        expected = (*self._batch_shape, *self._event_shape)
        if any(have != want and 1 not in (have, want) for have, want in zip(reversed(shape), reversed(expected))):
            raise ValueError(f"Value is not broadcastable with batch_shape+event_shape: {shape} vs {Size(expected)}.")
        try:
            support = self.support
        except NotImplementedError:
            return  # a subclass that does not say
        if not support.check(value).all():
            raise ValueError(f"Expected value argument ({type(value).__name__} of shape {tuple(shape)}) to be within the support "
                             f"({support!r}) of the distribution {self!r}, but found invalid values:\n{value}")

    def _checked(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        return value

    def __repr__(self) -> str:
        given = {name: self.__dict__[name] for name in self.arg_constraints if name in self.__dict__}
        return f"{type(self).__name__}({', '.join(f'{n}: {v if v.numel() == 1 else v.size()}' for n, v in given.items())})"


class lazy:
    """A parameter that is worked out from another one when first asked for."""

    def __init__(self, function: Callable[[Any], Tensor]) -> None:
        self.function = function

    def __get__(self, instance: Any, owner: Any) -> Any:
        if instance is None:
            return self
        with rushlight.enable_grad():  # it is kept, so a first look under no_grad must not cut it off
            value = self.function(instance)
        instance.__dict__[self.function.__name__] = value
        return value


def broadcast_all(*values: Any) -> list[Tensor]:
    """Numbers and tensors as tensors of one shape; numbers take the dtype of the tensors, or the default one."""
    known = [value for value in values if isinstance(value, Tensor)]
    for value in values:
        if not isinstance(value, (Tensor, int, float)):
            raise ValueError(f"Input arguments must all be instances of Number, torch.Tensor or objects implementing "
                             f"__torch_function__, not {type(value).__name__}.")
    dtype = known[0].dtype if known else dtypes.get_default_dtype()
    made = [value if isinstance(value, Tensor) else tensor(value, dtype=dtype) for value in values]
    return list(rushlight.broadcast_tensors(*made))


def standard_normal(shape: Sequence[int], like: Tensor) -> Tensor:
    return rushlight.randn(tuple(shape), dtype=like.dtype)


def not_differentiable(name: str, *parameters: Tensor) -> None:
    """Refuse to draw where a gradient would be lost without a word."""
    if rushlight.is_grad_enabled() and any(one.requires_grad for one in parameters):
        raise NotImplementedError(f"{name}.rsample: the gradient of a sample with respect to the concentration is not supported. "
                                  "Use sample(), and log_prob for a score-function gradient.")


__all__ = ["Distribution", "broadcast_all", "lazy", "not_differentiable", "standard_normal"]
