"""L-BFGS: a quasi-Newton method that re-evaluates the loss several times per step."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from ..graph.versions import bump
from ..tensor import wrap
from .optimizer import Optimizer


def _cubic_minimum(
    x1: float, f1: float, g1: float, x2: float, f2: float, g2: float, bounds: tuple[float, float] | None = None
) -> float:
    """Where the cubic through two points with these values and slopes is least, inside the bounds."""
    low, high = bounds if bounds is not None else (min(x1, x2), max(x1, x2))
    d1 = g1 + g2 - 3 * (f1 - f2) / (x1 - x2)
    square = d1 * d1 - g1 * g2
    if square < 0:
        return (low + high) / 2.0
    d2 = math.sqrt(square)
    if x1 <= x2:
        place = x2 - (x2 - x1) * ((g2 + d2 - d1) / (g2 - g1 + 2 * d2))
    else:
        place = x1 - (x1 - x2) * ((g1 + d2 - d1) / (g1 - g2 + 2 * d2))
    return min(max(place, low), high)


class _Point:
    """The loss and gradient at one step length."""

    __slots__ = ("gradient", "length", "loss", "slope")

    def __init__(self, length: float, loss: float, gradient: np.ndarray, direction: np.ndarray) -> None:
        self.length = length
        self.loss = loss
        self.gradient = gradient
        self.slope = float(gradient.dot(direction))


def _strong_wolfe(
    evaluate: Callable[[float], tuple[float, np.ndarray]],
    first: _Point,
    length: float,
    direction: np.ndarray,
    tolerance: float,
    decrease: float = 1e-4,
    curvature: float = 0.9,
    most: int = 25,
) -> tuple[_Point, int]:
    """Search along ``direction`` for a point that meets the strong Wolfe conditions; also counts evaluations."""

    def at(where: float) -> _Point:
        return _Point(where, *evaluate(where), direction)

    def too_high(point: _Point) -> bool:
        return point.loss > first.loss + decrease * point.length * first.slope

    largest = float(np.abs(direction).max())
    previous, point, evaluations, done = first, at(length), 1, False
    bracket: list[_Point] = []
    tries = 0
    while tries < most:
        if too_high(point) or (tries > 1 and point.loss >= previous.loss):
            bracket = [previous, point]
            break
        if abs(point.slope) <= -curvature * first.slope:
            return point, evaluations
        if point.slope >= 0:
            bracket = [previous, point]
            break
        nearest = point.length + 0.01 * (point.length - previous.length)
        length = _cubic_minimum(
            previous.length, previous.loss, previous.slope, point.length, point.loss, point.slope,
            bounds=(nearest, point.length * 10),
        )  # fmt: skip
        previous, point = point, at(length)
        evaluations += 1
        tries += 1
    if not bracket:
        bracket = [first, point]
    stuck = False
    low, high = (0, 1) if bracket[0].loss <= bracket[1].loss else (1, 0)
    while not done and tries < most:
        ends = [end.length for end in bracket]
        if abs(ends[1] - ends[0]) * largest < tolerance:
            break
        one, other = bracket
        length = _cubic_minimum(one.length, one.loss, one.slope, other.length, other.loss, other.slope)
        # Two steps in a row that land next to an end make no progress: then move a tenth inwards.
        margin = 0.1 * (max(ends) - min(ends))
        if min(max(ends) - length, length - min(ends)) < margin:
            if stuck or length >= max(ends) or length <= min(ends):
                length = max(ends) - margin if abs(length - max(ends)) < abs(length - min(ends)) else min(ends) + margin
                stuck = False
            else:
                stuck = True
        else:
            stuck = False
        point = at(length)
        evaluations += 1
        tries += 1
        if too_high(point) or point.loss >= bracket[low].loss:
            bracket[high] = point
            low, high = (0, 1) if bracket[0].loss <= bracket[1].loss else (1, 0)
        else:
            if abs(point.slope) <= -curvature * first.slope:
                done = True
            elif point.slope * (bracket[high].length - bracket[low].length) >= 0:
                bracket[high] = bracket[low]
            bracket[low] = point
    return bracket[low], evaluations


class LBFGS(Optimizer):
    """Limited-memory BFGS. ``step`` needs a closure that clears the gradients, computes the loss and returns it."""

    def __init__(
        self,
        params: Iterable[Any],
        lr: Any = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:
        if not 0.0 <= lr:
            raise ValueError(f"Invalid learning rate: {lr}")
        defaults = dict(
            lr=lr, max_iter=max_iter, max_eval=max_iter * 5 // 4 if max_eval is None else max_eval,
            tolerance_grad=tolerance_grad, tolerance_change=tolerance_change, history_size=history_size,
            line_search_fn=line_search_fn,
        )  # fmt: skip
        super().__init__(params, defaults)
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")
        self._params = self.param_groups[0]["params"]

    def _gradient(self) -> np.ndarray:
        parts = []
        for param in self._params:
            if param._array.dtype.kind == "c":
                raise NotImplementedError("LBFGS: complex parameters are not supported; split them into two real ones.")
            gradient = param._grad
            parts.append(np.zeros(param._array.size, param._array.dtype) if gradient is None
                         else gradient._array.reshape(-1))  # fmt: skip
        return np.concatenate(parts)

    def _move(self, length: float, direction: np.ndarray) -> None:
        start = 0
        for param in self._params:
            array = param._array
            array += (array.dtype.type(length) * direction[start : start + array.size]).reshape(array.shape)
            start += array.size
            bump(param)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Iterate up to ``max_iter`` times; the loss before the first is returned."""
        if closure is None:
            raise TypeError("LBFGS.step() missing 1 required positional argument: 'closure'")
        group = self.param_groups[0]
        rate, tolerance_change = float(group["lr"]), group["tolerance_change"]
        search = group["line_search_fn"]
        if search not in (None, "strong_wolfe"):
            raise RuntimeError("only 'strong_wolfe' is supported")
        state = self.state[self._params[0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)
        original_loss = self._evaluate(closure)
        loss = float(original_loss)
        evaluations = 1
        state["func_evals"] += 1
        gradient = self._gradient()
        if float(np.abs(gradient).max()) <= group["tolerance_grad"]:
            return original_loss
        direction, length = _array_of(state.get("d")), state.get("t")
        steps = [_array_of(one) for one in state.get("old_stps", [])]
        changes = [_array_of(one) for one in state.get("old_dirs", [])]
        inverses: list[float] = list(state.get("ro", []))
        scale: Any = state.get("H_diag", 1)
        previous_gradient, previous_loss = _array_of(state.get("prev_flat_grad")), state.get("prev_loss")
        iterations = 0
        while iterations < group["max_iter"]:
            iterations += 1
            state["n_iter"] += 1
            if state["n_iter"] == 1:
                direction, steps, changes, inverses, scale = -gradient, [], [], [], 1
            else:
                change = gradient - previous_gradient
                moved = direction * direction.dtype.type(length)
                product = float(change.dot(moved))
                if product > 1e-10:
                    if len(changes) == group["history_size"]:
                        for history in (steps, changes, inverses):
                            history.pop(0)  # type: ignore[attr-defined]
                    changes.append(change)
                    steps.append(moved)
                    inverses.append(1.0 / product)
                    scale = product / float(change.dot(change))
                direction = _two_loops(gradient, steps, changes, inverses, scale)
            previous_gradient, previous_loss = gradient.copy(), loss
            if state["n_iter"] == 1:
                length = min(1.0, 1.0 / float(np.abs(gradient).sum())) * rate
            else:
                length = rate
            slope = float(gradient.dot(direction))
            if slope > -tolerance_change:
                break
            used = 0
            if search == "strong_wolfe":
                point, used = self._search(closure, loss, gradient, length, direction, tolerance_change)
                loss, gradient, length = point.loss, point.gradient, point.length
                self._move(length, direction)
            else:
                self._move(length, direction)
                if iterations != group["max_iter"]:
                    loss = float(self._evaluate(closure))
                    gradient = self._gradient()
                    used = 1
            evaluations += used
            state["func_evals"] += used
            if (
                iterations == group["max_iter"]
                or evaluations >= group["max_eval"]
                or float(np.abs(gradient).max()) <= group["tolerance_grad"]
                or float(np.abs(direction * direction.dtype.type(length)).max()) <= tolerance_change
                or abs(loss - previous_loss) < tolerance_change
            ):
                break
        state["d"], state["t"], state["H_diag"], state["ro"] = wrap(direction), length, scale, inverses
        state["old_dirs"], state["old_stps"] = [wrap(one) for one in changes], [wrap(one) for one in steps]
        state["prev_flat_grad"], state["prev_loss"] = wrap(previous_gradient), previous_loss
        return original_loss

    def _search(
        self, closure: Any, loss: float, gradient: np.ndarray, length: float, direction: np.ndarray, tolerance: float
    ) -> tuple[_Point, int]:
        start = [param._array.copy() for param in self._params]

        def evaluate(where: float) -> tuple[float, np.ndarray]:
            self._move(where, direction)
            value = float(self._evaluate(closure))
            reached = self._gradient()
            for param, array in zip(self._params, start, strict=True):
                param._array[...] = array
                bump(param)
            return value, reached

        return _strong_wolfe(evaluate, _Point(0.0, loss, gradient, direction), length, direction, tolerance)


def _array_of(entry: Any) -> Any:
    """The array of a state entry that was kept as a tensor."""
    return entry if entry is None else entry._array


def _two_loops(gradient: Any, steps: Any, changes: Any, inverses: Any, scale: float) -> np.ndarray:
    """Minus the inverse Hessian's approximation times the gradient."""
    number = gradient.dtype.type
    direction = -gradient
    shares = []
    for moved, change, inverse in zip(reversed(steps), reversed(changes), reversed(inverses), strict=True):
        share = float(moved.dot(direction)) * inverse
        direction = direction - number(share) * change
        shares.append(share)
    direction = direction * number(scale)
    for moved, change, inverse, share in zip(steps, changes, inverses, reversed(shares), strict=True):
        direction = direction + number(share - float(change.dot(direction)) * inverse) * moved
    return direction
