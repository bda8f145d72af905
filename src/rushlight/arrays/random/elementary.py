"""Arithmetic the distributions share: fused multiply-add, C library functions, and float32 log, sine and cosine.

PyTorch's CPU kernels are built for processors with a fused multiply-add, which rounds ``a * b + c`` once. NumPy has no
such operation, so it is made here from float64: for float32 operands the product is exact there and the sum carries 29
spare bits, so the one rounding that follows gives the fused result but for about one case in 10**8.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

# Lanes worked on at a time in the float32 routines: enough to hide call overhead, few enough to stay in the cache.
CHUNK = 16384


def narrow(values: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Cast as C++ does: 16-bit floats are reached by way of float32, with its own rounding."""
    if dtype.itemsize == 2 and dtype.kind not in "iu" and values.dtype != np.float32:
        values = values.astype(np.float32)
    return values.astype(dtype, copy=False)


def libm(function: Callable[[float], float], values: np.ndarray) -> np.ndarray:
    """``function`` from the math module on every element: the C library's own last bit, at some 50 ns an element."""
    return np.fromiter(map(function, values.ravel().tolist()), np.float64, values.size).reshape(values.shape)


def scale_and_shift(values: np.ndarray, scale: float, shift: float) -> np.ndarray:
    """``values * scale + shift`` in the dtype of ``values`` (float32 or float64) with a single rounding."""
    number = values.dtype.type
    scale, shift = number(scale), number(shift)
    if shift == 0 or scale == 1:  # one of the two steps is exact, so plain arithmetic rounds once
        return values * scale + shift
    if values.dtype == np.float32:
        wide = values.astype(np.float64)
        wide *= float(scale)
        wide += float(shift)
        return wide.astype(np.float32)
    return _fused_float64(values, scale, shift)


def _fused_float64(a: np.ndarray, b: float, c: float) -> np.ndarray:
    """Boldo and Melquiond's fused multiply-add from exact products and sums, the last step rounded to odd."""
    with np.errstate(all="ignore"):
        product = a * b
        a_high, a_low = _split(a)
        b_high, b_low = _split(np.array(b))
        product_error = ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low
        low_sum, low_error = _two_sum(product_error, c)
        high_sum, high_error = _two_sum(product, low_sum)
        tail, lost = _two_sum(low_error, high_error)
        # Round the tail to odd: where digits were lost and its last bit is even, step towards what was lost.
        inexact_even = (lost != 0) & (tail.view(np.int64) & 1 == 0)
        tail = np.where(inexact_even, np.nextafter(tail, np.where(lost > 0, np.inf, -np.inf)), tail)
        fused = high_sum + tail
        # The splitting overflows near the largest float64; there plain arithmetic is the answer.
        return np.where(np.isfinite(fused), fused, product + c)


def _split(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    scaled = a * 134217729.0  # 2**27 + 1
    high = scaled - (scaled - a)
    return high, a - high


def _two_sum(a: np.ndarray, b: np.ndarray | float) -> tuple[np.ndarray, np.ndarray]:
    total = a + b
    from_b = total - a
    return total, (a - (total - from_b)) + (b - from_b)


def normal_blocks(uniforms: np.ndarray) -> np.ndarray:
    """Box-Muller over rows of sixteen uniforms: eight heights and eight turns become eight cosines and eight sines."""
    shaped = uniforms.reshape(-1, 2, 8)
    result = np.empty_like(shaped)
    if uniforms.dtype == np.float64:
        radius = np.sqrt(-2.0 * libm(math.log, 1.0 - shaped[:, 0]))
        angle = (2.0 * math.pi) * shaped[:, 1]
        np.multiply(radius, np.cos(angle), out=result[:, 0])
        np.multiply(radius, np.sin(angle), out=result[:, 1])
        return result.reshape(-1)
    rows = CHUNK // 8
    for start in range(0, len(shaped), rows):
        part = shaped[start : start + rows]
        height = np.float32(1) - part[:, 0]
        radius = np.sqrt(np.float32(-2) * _log_float32(height))
        sine, cosine = _sincos_float32(np.float32(2.0 * math.pi) * part[:, 1])
        np.multiply(radius, cosine, out=result[start : start + rows, 0])
        np.multiply(radius, sine, out=result[start : start + rows, 1])
    return result.reshape(-1)


# The float32 coefficients of the Cephes library, which PyTorch's vector kernel evaluates.
LOG_TERMS = tuple(
    float(np.float32(term))
    for term in (
        7.0376836292e-2,
        -1.1514610310e-1,
        1.1676998740e-1,
        -1.2420140846e-1,
        1.4249322787e-1,
        -1.6668057665e-1,
        2.0000714765e-1,
        -2.4999993993e-1,
        3.3333331174e-1,
    )
)
ROOT_HALF_BITS = 0x3F3504F3  # sqrt(1/2) as float32
LOG_2_HIGH, LOG_2_LOW = 0.693359375, float(np.float32(-2.12194440e-4))
SINE_TERMS = tuple(float(np.float32(term)) for term in (-1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1))
COSINE_TERMS = tuple(
    float(np.float32(term)) for term in (2.443315711809948e-5, -1.388731625493765e-3, 4.166664568298827e-2)
)
# Pi/4 in three parts, so that subtracting a multiple of it loses nothing.
QUARTER_PI_PARTS = tuple(
    float(np.float32(part)) for part in (-0.78515625, -2.4187564849853515625e-4, -3.77489497744594108e-8)
)


def _fused_float32(a: np.ndarray | float, b: np.ndarray | float, c: np.ndarray | float) -> np.ndarray:
    """``a * b + c`` of float32 values held as float64, rounded once to float32 and held as float64 again."""
    total: np.ndarray = np.multiply(a, b)
    total += c
    return _rounded(total)


def _rounded(values: np.ndarray) -> np.ndarray:
    return values.astype(np.float32).astype(np.float64)


def _polynomial(terms: Sequence[float], x: np.ndarray) -> np.ndarray:
    """Horner's rule with fused steps, leading term first."""
    value = _fused_float32(terms[0], x, terms[1])
    for term in terms[2:]:
        value = _fused_float32(value, x, term)
    return value


def _log_float32(values: np.ndarray) -> np.ndarray:
    """Natural logarithm of positive float32 values."""
    bits = values.view(np.int32)
    exponent = (bits - ROOT_HALF_BITS) >> 23
    mantissa = (bits - (exponent << 23)).view(np.float32)
    power = exponent.astype(np.float64)
    x = mantissa.astype(np.float64)
    x -= 1.0  # exact in float32 too: the mantissa is between sqrt(1/2) and sqrt(2)
    square = _rounded(x * x)
    y = _rounded(_polynomial(LOG_TERMS, x) * x)
    y = _fused_float32(y, square, _rounded(power * LOG_2_LOW))
    y = _fused_float32(square, -0.5, y)
    return _fused_float32(power, LOG_2_HIGH, _rounded(x + y)).astype(np.float32)


def _sincos_float32(angles: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Sine and cosine of non-negative float32 angles up to a few turns."""
    octant = (angles * np.float32(4.0 / math.pi)).astype(np.int32)
    octant += 1
    octant &= ~1
    steps = octant.astype(np.float64)
    x = angles.astype(np.float64)
    for part in QUARTER_PI_PARTS:
        x = _fused_float32(steps, part, x)
    square = _rounded(x * x)
    cosine = _rounded(_polynomial(COSINE_TERMS, square) * square)
    cosine = _rounded(_fused_float32(cosine, square, square * -0.5) + 1.0)
    sine = _rounded(_polynomial(SINE_TERMS, square) * square)
    sine = _fused_float32(sine, x, x)
    swapped = (octant & 2) != 0
    sine, cosine = sine.astype(np.float32), cosine.astype(np.float32)
    sine, cosine = np.where(swapped, cosine, sine), np.where(swapped, sine, cosine)
    # Bit 2 of the octant, moved up to the sign bit, says where each curve is below the axis.
    sine.view(np.int32)[...] ^= (octant & 4) << 29
    cosine.view(np.int32)[...] ^= ((octant + 2) & 4) << 29
    return sine, cosine
