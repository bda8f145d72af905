"""The step of optimizers whose update treats every element alike: on raw arrays, in cache-sized blocks, bundled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..arrays.quiet import SILENT, hush, unhush
from ..graph.versions import bump
from ..tensor import Tensor, wrap
from .optimizer import Optimizer

# Elements per block: value, gradient, state and scratch of one block stay in the second-level cache, so an update of
# a dozen passes reads main memory once.
BLOCK = 32768
# Parameters up to this size share one run of the update: below it a ufunc call costs more than its arithmetic.
SMALL = 4096
_ONE = np.array(1.0, np.float32)


class Constants:
    """The numbers of one step as 0-d arrays: a ufunc takes those in 0.24 us and a Python float in 0.57 us."""

    __slots__ = ("values", "vector", "views")

    def __init__(self, count: int, dtype: np.dtype) -> None:
        self.vector = np.empty(count, dtype)
        self.views = tuple(self.vector[place : place + 1].reshape(()) for place in range(count))
        self.values: tuple[float, ...] | None = None

    def set(self, values: tuple[float, ...]) -> tuple[Any, ...]:
        if values != self.values:
            self.vector[:] = values
            self.values = values
        return self.views


class _Bundle:
    """Small parameters of a group whose update runs once over flat arrays; their state tensors are views of those."""

    def __init__(
        self, params: list[Any], places: list[int], states: list[dict[str, Any]], names: tuple[str, ...]
    ) -> None:
        dtype = params[0]._array.dtype
        total = sum(param._array.size for param in params)
        self.value = np.empty(total, dtype)
        self.grad = np.empty(total, dtype)
        self.states = [np.empty(total, dtype) for _ in names]
        self.steps = np.empty(len(params), np.float32)
        self.ids = {id(param) for param in params}
        self.counts_steps = "step" in states[0]
        self.first_state = states[0]
        # Per parameter: itself, its place in the group, its array, its state, what of that is held here, where its
        # value and gradient go.
        self.members: list[tuple[Any, ...]] = []
        start = 0
        for number, (param, place, state) in enumerate(zip(params, places, states, strict=True)):
            shape, stop = param._shape, start + param._array.size
            held = [_move(state, name, flat[start:stop].reshape(shape)) for name, flat in zip(names, self.states)]
            if self.counts_steps:
                held.append(_move(state, "step", self.steps[number : number + 1].reshape(())))
            value, grad = self.value[start:stop].reshape(shape), self.grad[start:stop].reshape(shape)
            self.members.append((param, place, param._array, state, held, value, grad))
            start = stop

    def gather(self, state: Any, params: list[Any]) -> bool:
        """Copy values and gradients in; False if a member has no gradient or is not what it was.

        Programs do edit parameter lists and optimizer state, so every entry that the bundle holds is looked at.
        """
        for param, place, array, own, held, value, grad in self.members:
            gradient = param._grad
            if (
                gradient is None
                or param._array is not array
                or place >= len(params)
                or params[place] is not param
                or state.get(param) is not own
            ):
                return False
            for name, tensor, kept in held:
                if own.get(name) is not tensor or tensor._array is not kept:
                    return False
            value[...] = array
            grad[...] = gradient._array
        return True

    def scatter(self) -> None:
        for param, _, array, _, _, value, _ in self.members:
            array[...] = value
            bump(param)


def _move(state: dict[str, Any], name: str, place: np.ndarray) -> tuple[str, Tensor, np.ndarray]:
    """Put a state entry's numbers into ``place`` and let the entry be a tensor over it."""
    place[...] = state[name]._array
    tensor = state[name] = wrap(place)
    return name, tensor, place


def _overlap(arrays: list[np.ndarray]) -> bool:
    """Whether any two arrays share memory; then their updates must run one after the other."""
    bounds = sorted(np.lib.array_utils.byte_bounds(array) for array in arrays)
    return any(left[1] > right[0] for left, right in zip(bounds, bounds[1:], strict=False))


def _real(array: np.ndarray) -> np.ndarray:
    """A complex array as its real and imaginary parts, which optimizers treat as separate numbers."""
    if array.dtype.kind != "c":
        return array
    if not array.flags.c_contiguous:
        raise NotImplementedError("optim: a complex parameter must be contiguous; make it so before wrapping it")
    return array.reshape(-1).view(array.real.dtype)


class ElementwiseOptimizer(Optimizer):
    """An optimizer given by what it keeps per element and one update over arrays.

    A subclass names its state arrays, makes them, works out the step's numbers and writes the update once; where
    the numbers lie (one parameter, a block of it, or many small ones side by side) is decided here.
    """

    def _state_names(self, group: dict[str, Any]) -> tuple[str, ...]:
        """The state entries with one number per element, in the order the update takes them."""
        raise NotImplementedError

    def _new_state(self, group: dict[str, Any], param: Tensor) -> dict[str, Any]:
        """The state of a parameter before its first step."""
        raise NotImplementedError

    def _numbers(self, group: dict[str, Any], step: float, state: dict[str, Any]) -> tuple[float, ...]:
        """The scalars of the update at this step."""
        raise NotImplementedError

    def _update(self, group: dict[str, Any], numbers: Any, value: Any, grad: Any, states: Any, scratch: Any) -> None:
        """Update ``value`` and ``states`` in place; ``scratch`` is two arrays of their shape."""
        raise NotImplementedError

    # Whether parameters at the same step always share their numbers, so that they may be bundled.
    _bundles_allowed = True

    def _cache(self, name: str) -> dict[Any, Any]:
        """A table of this optimizer that is rebuilt at will (never saved or copied)."""
        table = self.__dict__.get(name)
        if table is None:
            table = self.__dict__[name] = {}
        return table

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.__dict__.pop("_bundles", None)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update all parameters that have a gradient. ``closure`` recomputes the loss, which is returned."""
        loss = self._evaluate(closure)
        warned = hush(SILENT)  # torch overflows quietly, and so must a step
        try:
            for number, group in enumerate(self.param_groups):
                self._step_group(number, group)
        finally:
            unhush(warned)
        return loss

    def _step_group(self, number: int, group: dict[str, Any]) -> None:
        bundles = self._cache("_bundles")
        bundle = bundles.get(number)
        if bundle is None and number not in bundles:
            bundle = self._make_bundle(group)
            if bundle is not None or any(param._grad is not None for param in group["params"]):
                bundles[number] = bundle
        done: set[int] = set()
        if bundle is not None:
            if bundle.gather(self.state, group["params"]) and self._step_bundle(group, bundle):
                done = bundle.ids
                if len(done) == len(group["params"]):
                    return
            else:
                self._drop_bundle(number)
        for param in group["params"]:
            if param._grad is not None and id(param) not in done:
                self._step_one(group, param)

    def _drop_bundle(self, number: int) -> None:
        """Give a bundle up; a group whose members keep changing is not bundled again."""
        drops = self._cache("_bundle_drops")
        drops[number] = drops.get(number, 0) + 1
        if drops[number] < 8:
            del self._cache("_bundles")[number]
        else:
            self._cache("_bundles")[number] = None

    def _ensure_state(self, group: dict[str, Any], param: Tensor, names: tuple[str, ...]) -> dict[str, Any]:
        """The parameter's state, with whatever is missing made new."""
        state = self.state[param]
        if not state or any(state.get(name) is None for name in names):
            for name, value in self._new_state(group, param).items():
                if state.get(name) is None:
                    state[name] = value
        return state

    def _constants(self, group: dict[str, Any], step: float, state: dict[str, Any], dtype: np.dtype) -> Any:
        values = self._numbers(group, step, state)
        # Two-byte floats cannot hold an eps of 1e-8: their arithmetic runs in float32 and is rounded at the end.
        precision = dtype if dtype.itemsize > 2 else np.dtype(np.float32)
        table = self._cache("_constants_by_kind")
        constants = table.get((len(values), precision))
        if constants is None:
            constants = table[len(values), precision] = Constants(len(values), precision)
        return constants.set(values)

    def _step_one(self, group: dict[str, Any], param: Tensor) -> None:
        names = self._state_names(group)
        state = self._ensure_state(group, param, names) if names else {}
        step = 0.0
        counter = state.get("step")
        if counter is not None:
            np.add(counter._array, _ONE, counter._array)
            step = counter._array.item()
        gradient = param._grad
        assert gradient is not None
        value, grad = _real(param._array), _real(gradient._array)
        states = [_real(state[name]._array) for name in names]
        self._run(group, self._constants(group, step, state, value.dtype), value, grad, states)
        bump(param)

    def _run(self, group: dict[str, Any], numbers: Any, value: Any, grad: Any, states: list[Any]) -> None:
        """Call the update, block by block where the arrays are long."""
        size = value.size
        if size <= BLOCK:
            self._update(group, numbers, value, grad, states, self._scratch(value))
            return
        arrays = [value, grad, *states]
        if not all(array.flags.c_contiguous for array in (value, *states)):
            self._update(group, numbers, value, grad, states, (np.empty_like(value), np.empty_like(value)))
            return
        flat = [array.reshape(-1) for array in arrays]
        for start in range(0, size, BLOCK):
            block = [array[start : start + BLOCK] for array in flat]
            self._update(group, numbers, block[0], block[1], block[2:], self._scratch(block[0]))

    def _scratch(self, array: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        key = (array.shape, array.dtype)
        table = self._cache("_scratch_by_shape")
        scratch = table.get(key)
        if scratch is None:
            scratch = table[key] = (np.empty(array.shape, array.dtype), np.empty(array.shape, array.dtype))
        return scratch

    # ------------------------------------------------------------------------------------------------ bundles
    def _make_bundle(self, group: dict[str, Any]) -> _Bundle | None:
        """A bundle of the group's small parameters that stand at the same step, or None where it would not pay."""
        if not self._bundles_allowed:
            return None
        small = [
            (place, param)
            for place, param in enumerate(group["params"])
            if param._grad is not None
            and param._array.size <= SMALL
            and param._array.dtype.kind == "f"
            and param._array.dtype.itemsize >= 4
        ]
        if small:
            dtype = small[0][1]._array.dtype
            small = [(place, param) for place, param in small if param._array.dtype == dtype]
        if len(small) < 2 or _overlap([param._array for _, param in small]):
            return None
        names = self._state_names(group)
        for param in group["params"]:  # all, so that the state lists parameters in their order
            if param._grad is not None:
                self._ensure_state(group, param, names)
        states = [self.state[param] for _, param in small]
        wanted = {*names, *(["step"] if "step" in states[0] else [])}
        for (_, param), state in zip(small, states, strict=True):
            if not all(isinstance(state.get(name), Tensor) for name in wanted):
                return None
            if any(state[name]._array.dtype != param._array.dtype for name in names):
                return None
        if "step" in states[0] and len({state["step"]._array.item() for state in states}) > 1:
            return None
        return _Bundle([param for _, param in small], [place for place, _ in small], states, names)

    def _step_bundle(self, group: dict[str, Any], bundle: _Bundle) -> bool:
        """Run the update over the bundle; False (and nothing done) if its members no longer stand at the same step."""
        step = 0.0
        if bundle.counts_steps:
            steps = bundle.steps.tolist()
            step = steps[0] + 1
            if steps.count(steps[0]) != len(steps):
                return False
            bundle.steps += _ONE
        numbers = self._constants(group, step, bundle.first_state, bundle.value.dtype)
        self._run(group, numbers, bundle.value, bundle.grad, bundle.states)
        bundle.scatter()
        return True
