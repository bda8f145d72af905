"""Continuous distributions on raw arrays: uniform, normal, exponential, Cauchy, log-normal and gamma."""

from __future__ import annotations

import functools
import math

import numpy as np

from .elementary import libm, narrow, normal_blocks, scale_and_shift
from .generator import Generator, default_generator

Shape = int | tuple[int, ...]

# Largest finite value and PyTorch's name of each floating dtype, by NumPy name (finfo does not know bfloat16).
FLOATS = {
    "float16": (65504.0, "Half"),
    "bfloat16": (3.3895313892515355e38, "BFloat16"),
    "float32": (3.4028234663852886e38, "Float"),
    "float64": (1.7976931348623157e308, "Double"),
}
# PyTorch's names of the other dtypes, for error messages.
TYPE_NAMES = {name: entry[1] for name, entry in FLOATS.items()} | {
    "bool": "Bool",
    "uint8": "Byte",
    "int8": "Char",
    "int16": "Short",
    "int32": "Int",
    "int64": "Long",
    "uint16": "UInt16",
    "uint32": "UInt32",
    "uint64": "UInt64",
    "complex64": "ComplexFloat",
    "complex128": "ComplexDouble",
}


@functools.cache  # dtype.name is put together anew at each reading, for more than a small draw costs
def is_float(dtype: np.dtype) -> bool:
    return dtype.name in FLOATS


def sized(shape: Shape) -> tuple[tuple[int, ...], int]:
    """The shape as a tuple, and how many elements it holds."""
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    return shape, math.prod(shape)


def not_implemented(kernel: str, dtype: np.dtype) -> NotImplementedError:
    return NotImplementedError(f"\"{kernel}\" not implemented for '{TYPE_NAMES.get(dtype.name, dtype.name)}'")


def _real_parts(dtype: np.dtype) -> np.dtype:
    return np.dtype(np.float32 if dtype == np.complex64 else np.float64)


def uniform(
    generator: Generator | None, shape: Shape, dtype: np.dtype, low: float = 0.0, high: float = 1.0
) -> np.ndarray:
    """Uniform on [low, high): ``torch.rand`` and ``Tensor.uniform_``."""
    shape, count = sized(shape)
    dtype = np.dtype(dtype)
    if dtype.kind == "c":
        parts = uniform(generator, (*shape, 2), _real_parts(dtype), low, high)
        return parts.view(dtype).reshape(shape)
    generator = generator or default_generator
    if low == 0.0 and high == 1.0:  # the common case first, without the checks of bounds
        if dtype == np.float32:
            return generator.uniform32(count).reshape(shape)
        if dtype == np.float64:
            return generator.uniform64(count).reshape(shape)
    if not is_float(dtype):
        raise not_implemented("check_uniform_bounds", dtype)
    largest, name = FLOATS[dtype.name]
    for bound, label in ((low, "from"), (high, "to")):
        if not -largest <= bound <= largest:
            raise RuntimeError(f"{label} is out of bounds for {name}")
    if low > high:
        raise RuntimeError(f"uniform_ expects to return a [from, to) range, but found from={low:g} > to={high:g}")
    if high - low > largest:
        raise RuntimeError(
            f"uniform_ expects to-from <= std::numeric_limits<{name}>::max(), but found to={high:g} and "
            f"from={low:g} which result in to-from to exceed the limit"
        )
    values = generator.uniform64(count) if dtype == np.float64 else generator.uniform32(count)
    number = values.dtype.type
    values = narrow(scale_and_shift(values, number(high) - number(low), low), dtype)
    # Rounding can reach the open end of the interval; PyTorch folds that back to the closed one.
    values[values == dtype.type(number(high))] = dtype.type(number(low))
    return values.reshape(shape)


def normal(
    generator: Generator | None, shape: Shape, dtype: np.dtype, mean: float = 0.0, std: float = 1.0
) -> np.ndarray:
    """Normal with one mean and deviation: ``torch.randn`` and ``Tensor.normal_``.

    PyTorch has two ways, and so has this: below sixteen elements one pair at a time in float64 with the spare half
    kept for the next call; from sixteen on in blocks of sixteen, where an incomplete last block makes the last
    sixteen values be drawn again.
    """
    if not std >= 0.0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {std:g}")
    shape, count = sized(shape)
    dtype = np.dtype(dtype)
    if dtype.kind == "c":  # half the variance to each part
        parts = normal(generator, (*shape, 2), _real_parts(dtype), mean, std / math.sqrt(2.0))
        return parts.view(dtype).reshape(shape)
    if not is_float(dtype):
        raise not_implemented("normal_kernel_cpu", dtype)
    generator = generator or default_generator
    if count < 16:
        samples = np.array(generator.normal_samples(count), np.float64)
        return narrow(scale_and_shift(samples, std, mean), dtype).reshape(shape)
    draw = generator.uniform64 if dtype == np.float64 else generator.uniform32
    rest = count % 16
    whole = count - rest
    if not rest:
        values = normal_blocks(draw(count))
    else:
        # The wide dtypes draw for the incomplete block before they discard it, the 16-bit ones do not.
        uniforms = draw((count if dtype.itemsize >= 4 else whole) + 16)
        blocks = normal_blocks(np.concatenate((uniforms[:whole], uniforms[-16:])))
        values = np.empty(count, blocks.dtype)
        values[:whole] = blocks[:whole]
        values[-16:] = blocks[whole:]
    return narrow(scale_and_shift(values, std, mean), dtype).reshape(shape)


def normal_around(generator: Generator | None, mean: np.ndarray | float, std: np.ndarray | float) -> np.ndarray:
    """``torch.normal`` where mean or deviation (or both) is an array; the result has the dtype of the first array."""
    leading = mean if isinstance(mean, np.ndarray) else std
    if not isinstance(leading, np.ndarray):
        raise TypeError("normal_around: mean or std must be an array; for two numbers use normal()")
    shape = np.broadcast_shapes(np.shape(mean), np.shape(std))
    if not isinstance(std, np.ndarray):
        values = normal(generator, shape, leading.dtype, 0.0, std)
    else:
        if std.dtype.kind == "c":
            raise RuntimeError("normal expects standard deviation to be non-complex")
        if std.size and not std.min() >= 0:
            raise RuntimeError("normal expects all elements of std >= 0.0")
        values = normal(generator, shape, leading.dtype)
        values *= std
    values += np.asarray(mean, leading.dtype)
    return values


def _transformed(
    generator: Generator | None, shape: Shape, dtype: np.dtype, kernel: str
) -> tuple[tuple[int, ...], np.dtype, np.ndarray]:
    """What every distribution made from one float64 uniform per element begins with."""
    shape, count = sized(shape)
    dtype = np.dtype(dtype)
    if not is_float(dtype):
        name = TYPE_NAMES.get(dtype.name, dtype.name)
        raise RuntimeError(
            f"{kernel} distribution is a continuous probability distribution. "
            f"dtype must be a floating point but you specified {name}"
        )
    return shape, dtype, (generator or default_generator).uniform64(count)


def exponential(generator: Generator | None, shape: Shape, dtype: np.dtype, rate: float = 1.0) -> np.ndarray:
    """Exponential with the given rate (PyTorch's lambda): ``Tensor.exponential_``."""
    if not rate > 0.0:
        raise RuntimeError(f"exponential_ expects lambda > 0.0, but found lambda={rate:g}")
    shape, dtype, uniforms = _transformed(generator, shape, dtype, "Exponential")
    np.negative(uniforms, out=uniforms)
    # Narrower results do not show a difference in the last bit of a float64, so they can have the fast logarithm.
    logs = libm(math.log1p, uniforms) if dtype == np.float64 else np.log1p(uniforms)
    logs *= -1.0 / rate
    return narrow(logs, dtype).reshape(shape)


def cauchy(
    generator: Generator | None, shape: Shape, dtype: np.dtype, median: float = 0.0, sigma: float = 1.0
) -> np.ndarray:
    """Cauchy: ``Tensor.cauchy_``."""
    if not sigma > 0.0:
        raise RuntimeError(f"cauchy_ expects sigma > 0.0, but found sigma={sigma:g}")
    shape, dtype, uniforms = _transformed(generator, shape, dtype, "Cauchy")
    angles = math.pi * (uniforms - 0.5)
    slopes = libm(math.tan, angles) if dtype == np.float64 else np.tan(angles)
    return narrow(scale_and_shift(slopes, sigma, median), dtype).reshape(shape)


def log_normal(
    generator: Generator | None, shape: Shape, dtype: np.dtype, mean: float = 1.0, std: float = 2.0
) -> np.ndarray:
    """The exponential of a normal: ``Tensor.log_normal_``. It always draws pair by pair, whatever the size."""
    if not std > 0.0:
        raise RuntimeError(f"log_normal_ expects std > 0.0, but found std={std:g}")
    shape, count = sized(shape)
    dtype = np.dtype(dtype)
    if not is_float(dtype):
        raise not_implemented("log_normal_cpu", dtype)
    samples = np.array((generator or default_generator).normal_samples(count), np.float64)
    exponents = scale_and_shift(samples, std, mean)
    if dtype == np.float64 and count and exponents.max() < 709.0:  # math.exp refuses to overflow
        values = libm(math.exp, exponents)
    else:
        with np.errstate(over="ignore"):
            values = np.exp(exponents)
    return narrow(values, dtype).reshape(shape)


def gamma(generator: Generator | None, shapes: np.ndarray) -> np.ndarray:
    """Standard gamma with one shape parameter per element (Marsaglia and Tsang): ``torch._standard_gamma``."""
    dtype = shapes.dtype
    if dtype.name not in ("float32", "float64"):
        raise not_implemented("gamma_cpu", dtype)
    generator = generator or default_generator
    smallest = np.finfo(dtype).tiny
    with generator.lock:
        samples = [_gamma_sample(generator, value) for value in shapes.ravel()]
    values = np.array(samples, np.float64).astype(dtype)
    return np.maximum(values, smallest, dtype=dtype).reshape(shapes.shape)


def _gamma_sample(generator: Generator, shape: np.floating) -> float:
    number = type(shape)
    scale = 1.0
    if shape < 1:
        if shape == 0:
            return 0.0
        # Draw for one more than the shape, where acceptance is likely, and scale back.
        scale = math.pow(1.0 - generator.uniform_scalar(), float(number(1) / shape))
        shape = shape + number(1)
    # The constants are float32 in PyTorch, also for float64 shapes.
    centre = float(shape - number(np.float32(1) / np.float32(3)))
    spread = 1.0 / math.sqrt(9.0 * centre)
    squeeze = float(np.float32(0.0331))
    while True:
        sample, root = 0.0, 0.0
        while root <= 0.0:
            sample = generator.normal_samples(1)[0]
            root = 1.0 + spread * sample
        cube = root * root * root
        height = 1.0 - generator.uniform_scalar()
        square = sample * sample
        if height < 1.0 - squeeze * square * square:
            return scale * centre * cube
        if math.log(height) < 0.5 * square + centre * (1.0 - cube + math.log(cube)):
            return scale * centre * cube
