"""Which values a parameter may have, and which a sample can have."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..tensor import Tensor, wrap


class Constraint:
    """A condition on tensors, of which the last `event_dim` dimensions make one value."""

    def __init__(self, text: str, condition: Callable[[np.ndarray], Any], event_dim: int = 0, is_discrete: bool = False) -> None:
        self.text, self.condition, self.event_dim, self.is_discrete = text, condition, event_dim, is_discrete

    def check(self, value: Tensor) -> Tensor:
        """For each value, whether it is allowed."""
        return wrap(np.asarray(self.condition(value._array)))

    def __repr__(self) -> str:
        return self.text


def _raw(bound: Any) -> Any:
    return getattr(bound, "_array", bound)


def greater_than(lower_bound: Any) -> Constraint:
    return Constraint(f"GreaterThan(lower_bound={lower_bound})", lambda array: array > _raw(lower_bound))


def less_than(upper_bound: Any) -> Constraint:
    return Constraint(f"LessThan(upper_bound={upper_bound})", lambda array: array < _raw(upper_bound))


def greater_than_eq(lower_bound: float) -> Constraint:
    return Constraint(f"GreaterThanEq(lower_bound={lower_bound})", lambda array: array >= lower_bound)


def interval(lower_bound: Any, upper_bound: Any) -> Constraint:
    return Constraint(f"Interval(lower_bound={lower_bound}, upper_bound={upper_bound})",
                      lambda array: (_raw(lower_bound) <= array) & (array <= _raw(upper_bound)))


def integer_interval(lower_bound: int, upper_bound: int) -> Constraint:
    return Constraint(f"IntegerInterval(lower_bound={lower_bound}, upper_bound={upper_bound})",
                      lambda array: (array % 1 == 0) & (lower_bound <= array) & (array <= upper_bound), is_discrete=True)


def independent(base: Constraint, dims: int) -> Constraint:
    """A value is a whole block of the last dimensions, allowed where all of it is."""
    return Constraint(f"IndependentConstraint({base!r}, {dims})",
                      lambda array: np.asarray(base.condition(array)).all(tuple(range(-dims, 0))), base.event_dim + dims,
                      base.is_discrete)


def _is_simplex(array: np.ndarray) -> Any:
    return (array >= 0).all(-1) & (np.abs(array.sum(-1) - 1) < 1e-6)


def _is_one_hot(array: np.ndarray) -> Any:
    return ((array == 0) | (array == 1)).all(-1) & (array.sum(-1) == 1)


def _is_lower_cholesky(array: np.ndarray) -> Any:
    return (np.tril(array) == array).all((-2, -1)) & (np.diagonal(array, axis1=-2, axis2=-1) > 0).all(-1)


def _is_positive_definite(array: np.ndarray) -> Any:
    if array.shape[-1] != array.shape[-2]:
        return np.zeros(array.shape[:-2], bool)
    symmetric = np.isclose(array, array.swapaxes(-1, -2), atol=1e-6).all((-2, -1))
    return symmetric & (np.linalg.eigvalsh(array) > 0).all(-1)


real = Constraint("Real()", lambda array: array == array)
real_vector = independent(real, 1)
positive = greater_than(0.0)
nonnegative = greater_than_eq(0.0)
unit_interval = interval(0.0, 1.0)
boolean = Constraint("Boolean()", lambda array: (array == 0) | (array == 1), is_discrete=True)
nonnegative_integer = Constraint("IntegerGreaterThan(lower_bound=0)", lambda array: (array % 1 == 0) & (array >= 0),
                                 is_discrete=True)
simplex = Constraint("Simplex()", _is_simplex, 1)
one_hot = Constraint("OneHot()", _is_one_hot, 1, True)
lower_cholesky = Constraint("LowerCholesky()", _is_lower_cholesky, 2)
positive_definite = Constraint("PositiveDefinite()", _is_positive_definite, 2)
