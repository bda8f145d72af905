"""Random tensors, drawn from the same streams as PyTorch's CPU generator."""
from __future__ import annotations

from typing import Any

import numpy as np

from ..arrays import dtypes, random
from ..arrays.random import Generator, default_generator
from ..tensor import Tensor, wrap
from ..tensor.construct import check_place
from .creation import _dtype, _finish, one_size, sizes
from .inplace import call_inplace
from .table import TABLE, TENSORS, method, operation, public


@public
def manual_seed(seed: int) -> Generator:
    return default_generator.manual_seed(int(seed))


@public
def seed() -> int:
    return default_generator.seed()


@public
def initial_seed() -> int:
    return default_generator.initial_seed()


@public
def get_rng_state() -> Tensor:
    return wrap(default_generator.get_state_array())


@public
def set_rng_state(new_state: Tensor) -> None:
    default_generator.set_state_array(new_state._array)


def _drawn(name: str, shape: tuple, wanted: np.dtype, draw: Any, generator: Any, out: Tensor | None,
           requires_grad: bool) -> Tensor:
    return _finish(name, draw(generator, shape, wanted), out, requires_grad)


def _get_state(self: Generator) -> Tensor:
    """The generator's state as a tensor of bytes, as PyTorch has it."""
    return wrap(self.get_state_array())


def _set_state(self: Generator, new_state: Tensor) -> None:
    self.set_state_array(new_state._array)


# The generator itself belongs to the room of arrays, which knows no tensors.
Generator.get_state, Generator.set_state = _get_state, _set_state  # type: ignore[attr-defined]


def _sized(name: str, draw: Any) -> None:
    """Define rand or randn, and its *_like form."""

    def factory(*size: Any, generator: Any = None, out: Tensor | None = None, dtype: Any = None, layout: Any = None,
                device: Any = None, requires_grad: bool = False, pin_memory: bool = False, names: Any = None,
                **named: Any) -> Tensor:
        if "size" in named:
            size = (named.pop("size"),)
        if named:
            raise TypeError(f"{name}() got an unexpected keyword argument '{next(iter(named))}'")
        check_place(device, pin_memory, layout)
        return _drawn(name, sizes(size), _dtype(dtype, out), draw, generator, out, requires_grad)

    def like(input: Tensor, *, generator: Any = None, dtype: Any = None, layout: Any = None, device: Any = None,
             requires_grad: bool = False, memory_format: Any = None, pin_memory: bool = False) -> Tensor:
        check_place(device, pin_memory, layout)
        wanted = input._array.dtype if dtype is None else dtypes.to_numpy(dtype)
        return _drawn(f"{name}_like", input._shape, wanted, draw, generator, None, requires_grad)

    for function, public_name in ((factory, name), (like, f"{name}_like")):
        function.__name__ = function.__qualname__ = public_name
        public(function)


_sized("rand", random.uniform)
_sized("randn", random.normal)


@public
def randint(low: int, high: Any = None, size: Any = None, *, generator: Any = None, out: Tensor | None = None,
            dtype: Any = None, layout: Any = None, device: Any = None, requires_grad: bool = False,
            pin_memory: bool = False) -> Tensor:
    check_place(device, pin_memory, layout)
    if size is None:
        low, high, size = 0, low, high
    if high is None:
        low, high = 0, low
    shape = one_size("randint", 2 if low == 0 else 3, size)
    wanted = np.dtype(np.int64) if dtype is None and out is None else _dtype(dtype, out)
    if low >= high:
        raise RuntimeError(f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}")
    return _finish("randint", random.random_integers(generator, shape, wanted, low, high), out, requires_grad)


@public
def randint_like(input: Tensor, low: int, high: Any = None, *, dtype: Any = None, layout: Any = None,
                 device: Any = None, requires_grad: bool = False, memory_format: Any = None) -> Tensor:
    if high is None:
        low, high = 0, low
    return randint(low, high, input._shape, dtype=dtype or input.dtype, device=device, layout=layout,
                   requires_grad=requires_grad)


@public
def randperm(n: int, *, generator: Any = None, out: Tensor | None = None, dtype: Any = None, layout: Any = None,
             device: Any = None, requires_grad: bool = False, pin_memory: bool = False) -> Tensor:
    check_place(device, pin_memory, layout)
    if n < 0:
        raise RuntimeError(f"n must be non-negative, got {n}")
    wanted = np.dtype(np.int64) if dtype is None and out is None else _dtype(dtype, out)
    return _finish("randperm", random.randperm(generator, n, wanted), out, requires_grad)


@public
def normal(mean: Any, std: Any = 1.0, size: Any = None, *, generator: Any = None, out: Tensor | None = None,
           dtype: Any = None, layout: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    check_place(device, False, layout)
    if size is not None:
        made = random.normal(generator, sizes((size,)), _dtype(dtype, out), mean, std)
        return _finish("normal", made, out, requires_grad)
    if not isinstance(mean, Tensor) and not isinstance(std, Tensor):
        raise TypeError("normal(): give a size, or a tensor for mean or std")
    raw = [one._array if isinstance(one, Tensor) else one for one in (mean, std)]
    try:
        np.broadcast_shapes(np.shape(raw[0]), np.shape(raw[1]))
    except ValueError:
        raise RuntimeError(f"The size of tensor a {list(np.shape(raw[0]))} must match the size of tensor b "
                           f"{list(np.shape(raw[1]))}: normal() draws a number for each pair of mean and std") from None
    made = random.normal_around(generator, *raw)
    if out is None and any(isinstance(one, Tensor) and one._node is not None for one in (mean, std)):
        both = [one if isinstance(one, Tensor) else wrap(np.asarray(one, made.dtype)) for one in (mean, std)]
        return TENSORS.drawn_around(*both, made)
    return _finish("normal", made, out, requires_grad)


@public
@method
def bernoulli(input: Tensor, p: Any = None, *, generator: Any = None, out: Tensor | None = None) -> Tensor:
    """Ones with the probabilities that `input` holds (or with probability p), zeros otherwise."""
    made = random.bernoulli(generator, input._shape, input._array.dtype, input._array if p is None else _plain(p))
    # PyTorch gives it a history, through which the gradient is zero.
    if out is None and input._node is not None:
        return TENSORS.drawn(input, made)
    return _finish("bernoulli", made, out, False)


@public
@method
def multinomial(input: Tensor, num_samples: int, replacement: bool = False, *, generator: Any = None,
                out: Tensor | None = None) -> Tensor:
    return _finish("multinomial", random.multinomial(generator, input._array, num_samples, replacement), out, False)


@public
def poisson(input: Tensor, generator: Any = None) -> Tensor:
    return wrap(random.poisson(generator, input._array))


def _plain(value: Any) -> Any:
    return value._array if isinstance(value, Tensor) else value


# Tensor.uniform_() and its relatives write new values; the gradient of what they replace is zero.
@operation(input="g * 0", inplace=True, public=False, method=False, node="FillBackward0")
def drawn(input, values):
    return values


@operation(mean="g * 0", std="g * 0", public=False, method=False, node="NormalBackward0")
def drawn_around(mean, std, values):
    return values


def _writer(name: str, draw: Any) -> None:
    def write(self: Tensor, *args: Any, generator: Any = None, **kwargs: Any) -> Tensor:
        values = draw(generator, self._shape, self._array.dtype, *[_plain(a) for a in args],
                      **{_KEYWORDS.get(k, k): _plain(v) for k, v in kwargs.items()})
        return call_inplace(TABLE["drawn"], (self, values))

    write.__name__ = write.__qualname__ = name
    method(write)


_KEYWORDS = {"from": "low", "to": "high"}


def _uniform(generator: Any, shape: tuple, dtype: np.dtype, low: float = 0.0, high: float = 1.0) -> np.ndarray:
    return random.uniform(generator, shape, dtype, low, high)


def _integers(generator: Any, shape: tuple, dtype: np.dtype, low: Any = None, high: Any = None) -> np.ndarray:
    if low is not None and high is None:
        low, high = 0, low
    return random.random_integers(generator, shape, dtype, low, high)


def _bernoulli(generator: Any, shape: tuple, dtype: np.dtype, p: Any = 0.5) -> np.ndarray:
    return random.bernoulli(generator, shape, dtype, p)


for _name, _draw in (("uniform_", _uniform), ("normal_", random.normal), ("random_", _integers),
                     ("bernoulli_", _bernoulli), ("exponential_", random.exponential), ("geometric_", random.geometric),
                     ("cauchy_", random.cauchy),
                     ("log_normal_", random.log_normal)):
    _writer(_name, _draw)
