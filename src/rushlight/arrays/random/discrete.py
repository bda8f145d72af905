"""Discrete distributions on raw arrays: integers, permutations, Bernoulli, dropout, geometric, multinomial, Poisson."""

from __future__ import annotations

import math

import numpy as np

from .continuous import FLOATS, Shape, exponential, is_float, not_implemented, sized
from .elementary import narrow
from .generator import LOWEST_53_BITS, Generator, default_generator

LOWEST_INT64, LARGEST_INT64 = -(1 << 63), (1 << 63) - 1
# Significant bits of each floating dtype.
DIGITS = {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53}
# From this span on one 32-bit draw would favour low values too much, and PyTorch takes a 64-bit one.
WIDE_SPAN = 1 << 28
# From here on PyTorch permutes by another algorithm.
LARGEST_PERMUTATION = 0xFFFF_FFFF // 20


def random_integers(
    generator: Generator | None, shape: Shape, dtype: np.dtype, low: int | None = None, high: int | None = None
) -> np.ndarray:
    """Integers of any dtype: ``torch.randint(low, high)`` and the three forms of ``Tensor.random_``.

    Without bounds: all non-negative values of an integer dtype, or the integers a floating dtype holds exactly. With
    ``low`` alone: from there to the largest such value. ``random_(to)`` is ``low=0, high=to``.
    """
    shape, count = sized(shape)
    dtype = np.dtype(dtype)
    generator = generator or default_generator
    if dtype.kind not in "biu" and not is_float(dtype):
        raise not_implemented("random_kernel_cpu" if low is None else "random_from_to_kernel_cpu", dtype)
    if low is None:
        if high is not None:
            raise TypeError("random_integers: high needs low as well")
        return _unbounded(generator, count, dtype).reshape(shape)
    if high is None and low == LOWEST_INT64:
        if dtype.name not in ("int64", "float64", "float32", "bfloat16"):
            raise RuntimeError("random_full_64_bits_range_kernel_cpu handles only int64, double, float and bfloat16")
        return narrow(generator.random64(count).view(np.int64), dtype).reshape(shape)
    low, last = _inclusive_bounds(low, high, dtype)
    span = last - low + 1
    draws = generator.random64(count) if span >= WIDE_SPAN else generator.random32(count).astype(np.uint64)
    draws %= np.uint64(span)
    values = draws.view(np.int64)
    values += low
    return narrow(values, dtype).reshape(shape)


def _unbounded(generator: Generator, count: int, dtype: np.dtype) -> np.ndarray:
    if dtype.kind == "u" and dtype.itemsize > 1:
        raise not_implemented("random_kernel_cpu", dtype)
    if dtype.name in DIGITS:
        span = (1 << DIGITS[dtype.name]) + 1
    else:
        span = 2 if dtype.kind == "b" else int(np.iinfo(dtype).max) + 1
    draws = generator.random64(count) if dtype.name in ("int64", "float64") else generator.random32(count)
    return narrow((draws % draws.dtype.type(span)).astype(np.int64), dtype)


def _inclusive_bounds(low: int, high: int | None, dtype: np.dtype) -> tuple[int, int]:
    """The least and greatest integer to draw, moved inwards where the dtype would round one of them outwards."""
    floating = dtype.name in DIGITS
    if high is not None and low >= high:
        raise RuntimeError(f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}")
    if floating:
        digits = DIGITS[dtype.name]
        low = _inside(low, +1, dtype)
        last = 1 << digits if high is None else _inside(high, -1, dtype) - 1
        if low > last or (high is None and low == last):
            raise RuntimeError(
                "random_ expects 'from' casted to dtype to be less than 'to' casted to dtype, "
                f"but got from={low} >= to={last + 1}"
            )
        largest: float = FLOATS[dtype.name][0]
        smallest = -largest
    else:
        if dtype.kind == "b":
            smallest, largest = 0, 1
        else:
            smallest, largest = int(np.iinfo(dtype).min), min(int(np.iinfo(dtype).max), LARGEST_INT64)
        last = int(largest) if high is None else high - 1
    for bound, label in ((low, "from"), (last, "to - 1")):
        if not smallest <= bound <= largest:
            raise RuntimeError(f"{label} is out of bounds for {dtype.name}")
        if floating and abs(bound) > 1 << digits:
            import warnings

            warnings.warn(
                f"{label} is out of bounds [-(2^{digits}), 2^{digits}]. Due to precision limitations {dtype.name} can "
                "support discrete uniform distribution only within this range.",
                stacklevel=4,
            )
    return low, last


def _inside(bound: int, inwards: int, dtype: np.dtype) -> int:
    """``bound``, or the next value of the dtype inwards if its inner neighbour rounds to or past the bound."""
    neighbour = bound + inwards
    rounded = float(narrow(np.array([neighbour], np.int64), dtype)[0])
    if not math.isfinite(rounded):
        return bound  # the check of bounds that follows reports it
    overshoot = (bound - int(rounded)) * inwards
    if overshoot > 0 or (inwards < 0 and overshoot == 0):
        return int(rounded) + inwards * (1 << (abs(neighbour).bit_length() - DIGITS[dtype.name]))
    return bound


def randperm(generator: Generator | None, count: int, dtype: np.dtype) -> np.ndarray:
    """A random permutation of 0 .. count - 1: ``torch.randperm``."""
    dtype = np.dtype(dtype)
    if count < 0:
        raise RuntimeError(f"Trying to create tensor with negative dimension {count}: [{count}]")
    if dtype.kind == "b" or (dtype.kind not in "iu" and not is_float(dtype)):
        raise not_implemented("randperm", dtype)
    if dtype.name in DIGITS:
        exact = (1 << DIGITS[dtype.name]) + 1
        if count > exact:
            raise RuntimeError(f"n cannot be greater than {exact} for {FLOATS[dtype.name][1]} type on CPU.")
    elif count > np.iinfo(dtype).max:
        raise RuntimeError(f"value cannot be converted to type {dtype.name}_t without overflow")
    if count >= LARGEST_PERMUTATION:
        raise NotImplementedError(
            f"randperm: {count} elements; PyTorch's algorithm for {LARGEST_PERMUTATION} and more is not supported, "
            "permute in parts or sort random keys"
        )
    places = np.arange(count)
    if count < 2:
        return narrow(places, dtype)
    partners = (generator or default_generator).random32(count - 1).astype(np.int64)
    partners %= np.arange(count, 1, -1)
    partners += places[:-1]
    return narrow(_exchanged(places, partners), dtype)


def _exchanged(places: np.ndarray, partners: np.ndarray) -> np.ndarray:
    """The order after exchanging place 0 with partners[0], then 1 with partners[1], and so on; none looks back.

    A Python loop takes 8.8 ms for 60,000 elements and 500 ms for a million; solved at once it is 4.2 and 130 ms.
    When step i comes, a place holds its first value unless an earlier step had it as partner; then it holds what that
    step found at its own place. So each place points to the last step that wrote to it before its own turn, and its
    value is found by following the pointers to their end.
    """
    count = len(places)
    keys = np.sort(partners << 32 | places[:-1])
    partner, step = keys >> 32, keys & 0xFFFF_FFFF
    repeated = partner[1:] == partner[:-1]
    previous = np.full(count, -1)  # for each step, the step before it with the same partner
    previous[step[1:][repeated]] = step[:-1][repeated]
    source = places.copy()
    last = np.append(~repeated, True)
    source[partner[last]] = step[last]
    own = np.flatnonzero(partners == places[:-1])  # an exchange with itself writes nothing: look one step further back
    source[own] = np.where(previous[own] >= 0, previous[own], own)
    while True:
        further = source[source]
        if np.array_equal(further, source):
            break
        source = further
    order = np.append(partners, source[-1])
    written = np.flatnonzero(previous >= 0)
    order[written] = source[previous[written]]
    return order


def bernoulli(
    generator: Generator | None, shape: Shape, dtype: np.dtype, probability: float | np.ndarray
) -> np.ndarray:
    """Zeros and ones: ``Tensor.bernoulli_`` with a number or an array of probabilities, and ``torch.bernoulli``."""
    shape, count = sized(shape)
    dtype = np.dtype(dtype)
    generator = generator or default_generator
    if not isinstance(probability, np.ndarray):
        if not 0 <= probability <= 1:
            raise RuntimeError(f"bernoulli_ expects p to be in [0, 1], but got p={probability:g}")
        bits = generator.random64(count)
        bits &= LOWEST_53_BITS
        # Comparing the 53 bits with the scaled probability is the float64 comparison without the conversion.
        hits = bits < math.ceil(math.ldexp(probability, 53))
    else:
        if not is_float(probability.dtype):
            raise not_implemented("bernoulli_tensor_cpu_p_", probability.dtype)
        if count and not (probability.min() >= 0 and probability.max() <= 1):
            raise RuntimeError("Expected p_in >= 0 && p_in <= 1 to be true, but got false.")
        if probability.dtype == np.float64:
            hits = generator.uniform64(count).reshape(shape) < probability
        else:
            hits = generator.uniform32(count).reshape(shape) < probability.astype(np.float32, copy=False)
        if hits.shape != shape:
            raise RuntimeError(f"bernoulli_: probabilities of shape {probability.shape} do not fit into {shape}")
    return hits.astype(dtype).reshape(shape)


def dropout_noise(generator: Generator | None, shape: Shape, dtype: np.dtype, p: float) -> np.ndarray:
    """What dropout multiplies its input by: 1/(1 - p) where an element is kept, else 0; nothing is drawn at 0 or 1."""
    if not 0.0 <= p <= 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    shape, _ = sized(shape)
    dtype = np.dtype(dtype)
    if p in (0.0, 1.0):
        return np.full(shape, 1 - int(p), dtype)
    noise = bernoulli(generator, shape, dtype, 1.0 - p)
    wide = np.float64 if dtype == np.float64 else np.float32
    noise *= narrow(np.array(wide(1) / wide(1.0 - p)), dtype)
    return noise


def geometric(generator: Generator | None, shape: Shape, dtype: np.dtype, p: float) -> np.ndarray:
    """The number of trials up to the first success: ``Tensor.geometric_``."""
    if not 0 < p < 1:
        raise RuntimeError(f"geometric_ expects p to be in (0, 1), but got p={p:g}")
    shape, count = sized(shape)
    dtype = np.dtype(dtype)
    if dtype.kind not in "iu" and not is_float(dtype):
        raise not_implemented("geometric_cpu", dtype)
    uniforms = (generator or default_generator).uniform64(count)
    with np.errstate(divide="ignore"):
        trials = np.ceil(np.log(uniforms) / math.log1p(-p))
    return narrow(trials, dtype).reshape(shape)


def multinomial(
    generator: Generator | None, weights: np.ndarray, num_samples: int, replacement: bool = False
) -> np.ndarray:
    """Indices drawn by weight from each row: ``torch.multinomial``.

    Without replacement, and for a single sample, each weight is divided by an exponential and the largest quotients
    win; otherwise the cumulative weights are searched. Among equal quotients (16-bit weights, or more samples than
    positive weights) the order is by index, which need not be PyTorch's.
    """
    if not 0 < weights.ndim <= 2:
        raise RuntimeError("prob_dist must be 1 or 2 dim")
    if not is_float(weights.dtype):
        raise RuntimeError(f"multinomial only supports floating-point dtypes for input, got: {weights.dtype.name}")
    if num_samples <= 0:
        raise RuntimeError("cannot sample n_sample <= 0 samples")
    categories = weights.shape[-1]
    if not replacement and num_samples > categories:
        raise RuntimeError("cannot sample n_sample > prob_dist.size(-1) samples without replacement")
    if categories > 1 << 24:
        raise RuntimeError("number of categories cannot exceed 2^24")
    result_shape = (*weights.shape[:-1], num_samples)
    if 0 in result_shape:
        return np.empty(result_shape, np.int64)
    if replacement and num_samples > 1:
        return _multinomial_by_search(generator, weights, num_samples).reshape(result_shape)
    if not (weights.max() < np.inf and weights.min() >= 0):
        raise RuntimeError("probability tensor contains either `inf`, `nan` or element < 0")
    if (weights.sum(axis=-1) == 0).any():
        raise RuntimeError("invalid multinomial distribution (sum of probabilities <= 0)")
    quotients = weights / exponential(generator, weights.shape, weights.dtype)
    if num_samples == 1:
        return quotients.argmax(axis=-1, keepdims=True)
    return np.argsort(-quotients, axis=-1, kind="stable")[..., :num_samples]


def _multinomial_by_search(generator: Generator | None, weights: np.ndarray, num_samples: int) -> np.ndarray:
    wide = np.float64 if weights.dtype == np.float64 else np.float32
    rows: np.ndarray = weights.reshape(-1, weights.shape[-1]).astype(wide, copy=False)
    if not (rows >= 0).all():
        raise RuntimeError("invalid multinomial distribution (encountering probability entry < 0)")
    if not np.isfinite(rows).all():
        raise RuntimeError("invalid multinomial distribution (encountering probability entry = infinity or NaN)")
    cumulative: np.ndarray = np.cumsum(rows, axis=-1, dtype=wide)
    totals = cumulative[:, -1:].copy()
    if not (totals > 0).all():
        raise RuntimeError("invalid multinomial distribution (sum of probabilities <= 0)")
    cumulative /= totals
    cumulative[:, -1] = 1
    uniforms = (generator or default_generator).uniform64(len(rows) * num_samples).reshape(len(rows), num_samples)
    steps = cumulative.astype(np.float64, copy=False)
    return np.stack([np.searchsorted(row, wanted) for row, wanted in zip(steps, uniforms, strict=True)])


def poisson(generator: Generator | None, rates: np.ndarray) -> np.ndarray:
    """Poisson counts with one rate per element, in the dtype of the rates: ``torch.poisson``."""
    if not is_float(rates.dtype):
        raise not_implemented("poisson_cpu", rates.dtype)
    if rates.size and not rates.min() >= 0:
        raise RuntimeError("invalid Poisson rate, expected rate to be non-negative")
    generator = generator or default_generator
    with generator.lock:
        counts = [_poisson_sample(generator, rate) for rate in rates.astype(np.float64).ravel().tolist()]
    return narrow(np.array(counts, np.int64), rates.dtype).reshape(rates.shape)


def _poisson_sample(generator: Generator, rate: float) -> int:
    draw = generator.uniform_scalar
    if rate == 0:
        return 0
    if rate < 10:  # multiply uniforms until the product falls below exp(-rate)
        limit = math.exp(-rate)
        count, product = 0, draw()
        while product > limit:
            count += 1
            product *= draw()
        return count
    # Hoermann's transformed rejection (1993).
    log_rate = math.log(rate)
    b = 0.931 + 2.53 * math.sqrt(rate)
    a = -0.059 + 0.02483 * b
    inverse_alpha = 1.1239 + 1.1328 / (b - 3.4)
    sure_height = 0.9277 - 3.6224 / (b - 2)
    while True:
        offset = draw() - 0.5
        height = draw()
        margin = 0.5 - abs(offset)
        count = math.floor((2 * a / margin + b) * offset + rate + 0.43) if margin else -1
        if margin >= 0.07 and height <= sure_height:
            return count
        if count < 0 or (margin < 0.013 and height > margin):
            continue
        acceptance = math.log(height) + math.log(inverse_alpha) - math.log(a / (margin * margin) + b)
        if acceptance <= -rate + count * log_rate - math.lgamma(count + 1.0):
            return count
