"""Fourier transforms: the three between real and complex arrays, torch.fft made of them, and short-time spectra."""
from __future__ import annotations

import warnings
from math import prod
from typing import Any

import numpy as np

from ..arrays import dtypes
from ..tensor import Tensor, wrap
from ..tensor.construct import as_leaf, check_place
from .dimensions import wrap_dim, wrap_dims
from .einsum import written
from .linalg_base import PRIVATE, constant
from .matrix import scalar_name
from .table import TENSORS, method, operation, public

# PyTorch's numbers for what a transform of n points is divided by: nothing, the root of n, or n.
_AS_IS, _BY_ROOT, _BY_COUNT = 0, 1, 2
_MODES = {"forward": {None: _AS_IS, "backward": _AS_IS, "ortho": _BY_ROOT, "forward": _BY_COUNT},
          "inverse": {None: _BY_COUNT, "backward": _BY_COUNT, "ortho": _BY_ROOT, "forward": _AS_IS}}


def _scaling(normalization: int, forward: bool) -> Any:
    """NumPy's word for it: there "backward" divides the inverse transform and "forward" the other."""
    if normalization == _BY_ROOT:
        return "ortho"
    return "backward" if (normalization == _AS_IS) == forward else "forward"


# -- the transforms --------------------------------------------------------------------------------------------------
@operation(input="fft_c2c(g, dim, normalization, not forward)", jvp="linear", node="FftC2CBackward0", **PRIVATE)
def fft_c2c(input, dim, normalization, forward):
    """From complex to complex. Its gradient is the transform the other way, divided by the same number."""
    if not dim:
        return input.copy()
    transform = np.fft.fftn if forward else np.fft.ifftn
    return transform(input, axes=dim, norm=_scaling(normalization, forward))


def _r2c_gradient(F: Any, g: Any, input: Any, dim: tuple, normalization: int, onesided: bool) -> Any:
    missing = input.shape[dim[-1]] - g.shape[dim[-1]]
    if onesided and missing:  # the half that was not computed has no gradient
        g = F.constant_pad_nd(g, (0, 0) * (len(g.shape) - 1 - dim[-1]) + (0, missing), 0)
    return F.real(F.fft_c2c(g, dim, normalization, False))


# PyTorch saves the input, though only its size is needed, so that backward cannot be run twice.
@operation(input=_r2c_gradient, jvp="linear", node="FftR2CBackward0", output_real=False, **PRIVATE)
def fft_r2c(input, dim, normalization, onesided):
    """From real to complex; the result is symmetric, and `onesided` gives the half of the last dimension that says all."""
    transform = np.fft.rfftn if onesided else np.fft.fftn
    return transform(input, axes=dim, norm=_scaling(normalization, True))


def _c2r_gradient(F: Any, g: Any, dim: tuple, normalization: int) -> Any:
    made = F.fft_r2c(g, dim, normalization, True)
    # Each element that stands for itself and its mirror image counts twice.
    twice = np.ones(made.shape[dim[-1]])
    twice[1:1 + g.shape[dim[-1]] - made.shape[dim[-1]]] = 2
    twice = twice.astype(np.float32 if F.real(made).dtype.itemsize == 4 else np.float64)
    twice = twice.reshape([-1 if d == dim[-1] else 1 for d in range(len(g.shape))])
    return made * constant(F, twice)


@operation(input=_c2r_gradient, jvp="linear", node="FftC2RBackward0", **PRIVATE)
def fft_c2r(input, dim, normalization, last_dim_size):
    """From half of a symmetric complex array to a real one of that many points in the last dimension."""
    sizes = [*(input.shape[d] for d in dim[:-1]), last_dim_size]
    return np.fft.irfftn(input, sizes, dim, norm=_scaling(normalization, False))


# -- arguments -------------------------------------------------------------------------------------------------------
def _floating(name: str, input: Any, to_complex: bool = False) -> Tensor:
    """The input in a dtype that can be transformed."""
    if not isinstance(input, Tensor):
        raise TypeError(f"fft_{name}(): argument 'input' (position 1) must be Tensor, not {type(input).__name__}")
    given = input.dtype
    wanted = given if given.is_floating_point or given.is_complex else dtypes.get_default_dtype()
    if wanted.itemsize == 2:
        raise RuntimeError(f"Unsupported dtype {scalar_name(wanted.numpy)}")
    if to_complex and not wanted.is_complex:
        wanted = wanted.to_complex()
    return input if wanted is given else input.to(wanted)  # type: ignore[attr-defined]


def _real(name: str, input: Tensor, words: str = "real") -> Tensor:
    if isinstance(input, Tensor) and input.dtype.is_complex:
        raise RuntimeError(f"{name} expects a {words} input tensor, but got {scalar_name(input._array.dtype)}")
    return _floating(name, input)


def _mode(norm: Any, forward: bool) -> int:
    try:
        return _MODES["forward" if forward else "inverse"][norm]
    except (KeyError, TypeError):
        raise RuntimeError(f'Invalid normalization mode: "{norm}"') from None


def _check_count(count: int) -> None:
    if count < 1:
        raise RuntimeError(f"Invalid number of data points ({count}) specified")


def _fitted(input: Tensor, dims: tuple, sizes: list) -> Tensor:
    """The input cut or padded with zeros at the end of these dimensions."""
    for dim, size in zip(dims, sizes, strict=True):
        _check_count(size)
        length = input._shape[dim]
        if size < length:
            input = TENSORS.slice(input, dim, 0, size)
        elif size > length:
            input = TENSORS.constant_pad_nd(input, (0, 0) * (input.ndim - 1 - dim) + (0, size - length), 0)
    return input


def _one(input: Tensor, dim: int) -> int:
    if not input._shape:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    return wrap_dim(dim, input.ndim)


def _several(input: Tensor, s: Any, dim: Any) -> tuple[tuple, list]:
    """The dimensions to transform and the number of points in each."""
    s = (s,) if isinstance(s, int) else s
    if dim is not None:
        dim = (dim,) if isinstance(dim, int) else dim
        dims = tuple(_one(input, d) for d in dim)
        if len(set(dims)) != len(dims):
            raise RuntimeError("FFT dims must be unique")
        if s is not None and len(s) != len(dims):
            raise RuntimeError("When given, dim and shape arguments must have the same length")
    else:
        count = input.ndim if s is None else len(s)
        if count > input.ndim:
            raise RuntimeError(f"Got shape with {count} values but input tensor only has {input.ndim} dimensions.")
        dims = tuple(range(input.ndim - count, input.ndim))
    lengths = [input._shape[d] for d in dims]
    return dims, lengths if s is None else [n if given == -1 else given
                                            for given, n in zip(s, lengths, strict=True)]


def _finish(name: str, result: Tensor, out: Tensor | None) -> Tensor:
    if isinstance(out, Tensor) and out.dtype.is_complex != result.dtype.is_complex:
        raise RuntimeError(f"{name} expects a {'complex' if result.dtype.is_complex else 'floating point'} output tensor, "
                           f"but got {scalar_name(out._array.dtype)}")
    return written(result, out, f"fft_{name}")


# -- one dimension ---------------------------------------------------------------------------------------------------
def _complex_1d(name: str, input: Tensor, n: int | None, dim: int, norm: Any, out: Any, forward: bool) -> Tensor:
    input = _floating(name, input)
    dims, mode = (_one(input, dim),), _mode(norm, forward)
    input = _fitted(input, dims, [input._shape[dims[0]] if n is None else n])
    if input.dtype.is_complex:
        result = TENSORS.fft_c2c(input, dims, mode, forward)
    else:
        result = TENSORS.fft_r2c(input, dims, mode, False)
        if not forward:
            result = TENSORS.conj(result)
    return _finish(name, result, out)


def _to_half_1d(name: str, input: Tensor, n: int | None, dim: int, norm: Any, out: Any, forward: bool) -> Tensor:
    input = _real(name, input)
    dims, mode = (_one(input, dim),), _mode(norm, forward)
    input = _fitted(input, dims, [input._shape[dims[0]] if n is None else n])
    result = TENSORS.fft_r2c(input, dims, mode, True)
    return _finish(name, result if forward else TENSORS.conj(result), out)


def _from_half_1d(name: str, input: Tensor, n: int | None, dim: int, norm: Any, out: Any, forward: bool) -> Tensor:
    input = _floating(name, input, to_complex=True)
    dims, mode = (_one(input, dim),), _mode(norm, forward)
    count = 2 * (input._shape[dims[0]] - 1) if n is None else n
    _check_count(count)
    input = _fitted(input, dims, [count // 2 + 1])
    return _finish(name, TENSORS.fft_c2r(TENSORS.conj(input) if forward else input, dims, mode, count), out)


def fft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None, *, out: Any = None) -> Tensor:
    """The discrete Fourier transform along one dimension."""
    return _complex_1d("fft", input, n, dim, norm, out, True)


def ifft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None, *, out: Any = None) -> Tensor:
    """The inverse of fft."""
    return _complex_1d("ifft", input, n, dim, norm, out, False)


def rfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None, *, out: Any = None) -> Tensor:
    """fft of a real signal: the half of it that says all."""
    return _to_half_1d("rfft", input, n, dim, norm, out, True)


def irfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None, *, out: Any = None) -> Tensor:
    """The inverse of rfft."""
    return _from_half_1d("irfft", input, n, dim, norm, out, False)


def hfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None, *, out: Any = None) -> Tensor:
    """fft of a signal with Hermitian symmetry, given by its first half; the result is real."""
    return _from_half_1d("hfft", input, n, dim, norm, out, True)


def ihfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None, *, out: Any = None) -> Tensor:
    """The inverse of hfft."""
    return _to_half_1d("ihfft", input, n, dim, norm, out, False)


# -- several dimensions ----------------------------------------------------------------------------------------------
def _complex_nd(name: str, input: Tensor, s: Any, dim: Any, norm: Any, out: Any, forward: bool) -> Tensor:
    input = _floating(name, input, to_complex=True)
    dims, sizes = _several(input, s, dim)
    mode = _mode(norm, forward)
    return _finish(name, TENSORS.fft_c2c(_fitted(input, dims, sizes), dims, mode, forward), out)


def fftn(input: Tensor, s: Any = None, dim: Any = None, norm: str | None = None, *, out: Any = None) -> Tensor:
    """The discrete Fourier transform along several dimensions: by default all."""
    return _complex_nd("fftn", input, s, dim, norm, out, True)


def ifftn(input: Tensor, s: Any = None, dim: Any = None, norm: str | None = None, *, out: Any = None) -> Tensor:
    """The inverse of fftn."""
    return _complex_nd("ifftn", input, s, dim, norm, out, False)


def _check_some(name: str, dims: tuple) -> None:
    if not dims:
        raise RuntimeError(f"{name} must transform at least one axis")


def rfftn(input: Tensor, s: Any = None, dim: Any = None, norm: str | None = None, *, out: Any = None) -> Tensor:
    """fftn of a real signal: half of its last dimension says all."""
    input = _real("rfftn", input, "real-valued")
    dims, sizes = _several(input, s, dim)
    _check_some("rfftn", dims)
    return _finish("rfftn", TENSORS.fft_r2c(_fitted(input, dims, sizes), dims, _mode(norm, True), True), out)


def ihfftn(input: Tensor, s: Any = None, dim: Any = None, norm: str | None = None, *, out: Any = None) -> Tensor:
    """The inverse of hfftn."""
    if isinstance(input, Tensor) and input.dtype.is_complex:
        raise RuntimeError(f"Only supports floating-point dtypes, but found: {scalar_name(input._array.dtype)}")
    input = _floating("ihfftn", input)
    dims, sizes = _several(input, s, dim)
    _check_some("ihfftn", dims)
    mode = _mode(norm, False)
    half = TENSORS.conj(TENSORS.fft_r2c(_fitted(input, dims, sizes), dims[-1:], mode, True))
    return _finish("ihfftn", TENSORS.fft_c2c(half, dims[:-1], mode, False) if dims[1:] else half, out)


def _half_of(name: str, input: Tensor, s: Any, dim: Any) -> tuple[Tensor, tuple, int]:
    """The part of the input that a transform to real numbers reads, and how many of them it gives in the last dimension."""
    input = _floating(name, input, to_complex=True)
    dims, sizes = _several(input, s, dim)
    _check_some(name, dims)
    told = s is not None and (s if isinstance(s, int) else s[-1]) != -1
    count = sizes[-1] if told else 2 * (sizes[-1] - 1)
    _check_count(count)
    return _fitted(input, dims, [*sizes[:-1], count // 2 + 1]), dims, count


def irfftn(input: Tensor, s: Any = None, dim: Any = None, norm: str | None = None, *, out: Any = None) -> Tensor:
    """The inverse of rfftn."""
    half, dims, count = _half_of("irfftn", input, s, dim)
    return _finish("irfftn", TENSORS.fft_c2r(half, dims, _mode(norm, False), count), out)


def hfftn(input: Tensor, s: Any = None, dim: Any = None, norm: str | None = None, *, out: Any = None) -> Tensor:
    """fftn of a signal with Hermitian symmetry, given by half of its last dimension; the result is real."""
    half, dims, count = _half_of("hfftn", input, s, dim)
    mode = _mode(norm, True)
    if dims[1:]:
        half = TENSORS.fft_c2c(half, dims[:-1], mode, True)
    return _finish("hfftn", TENSORS.fft_c2r(TENSORS.conj(half), dims[-1:], mode, count), out)


def fft2(input: Tensor, s: Any = None, dim: Any = (-2, -1), norm: str | None = None, *, out: Any = None) -> Tensor:
    """fftn of two dimensions: by default the last."""
    return fftn(input, s, dim, norm, out=out)


def ifft2(input: Tensor, s: Any = None, dim: Any = (-2, -1), norm: str | None = None, *, out: Any = None) -> Tensor:
    """The inverse of fft2."""
    return ifftn(input, s, dim, norm, out=out)


def rfft2(input: Tensor, s: Any = None, dim: Any = (-2, -1), norm: str | None = None, *, out: Any = None) -> Tensor:
    """rfftn of two dimensions: by default the last."""
    return rfftn(input, s, dim, norm, out=out)


def irfft2(input: Tensor, s: Any = None, dim: Any = (-2, -1), norm: str | None = None, *, out: Any = None) -> Tensor:
    """The inverse of rfft2."""
    return irfftn(input, s, dim, norm, out=out)


def hfft2(input: Tensor, s: Any = None, dim: Any = (-2, -1), norm: str | None = None, *, out: Any = None) -> Tensor:
    """hfftn of two dimensions: by default the last."""
    return hfftn(input, s, dim, norm, out=out)


def ihfft2(input: Tensor, s: Any = None, dim: Any = (-2, -1), norm: str | None = None, *, out: Any = None) -> Tensor:
    """The inverse of hfft2."""
    return ihfftn(input, s, dim, norm, out=out)


# -- frequencies -----------------------------------------------------------------------------------------------------
def _frequencies(name: str, positions: np.ndarray, n: int, d: float, out: Any, dtype: Any, layout: Any, device: Any,
                 requires_grad: bool, pin_memory: bool) -> Tensor:
    check_place(device, pin_memory, layout)
    wanted = dtypes.default_numpy() if dtype is None else dtypes.to_numpy(dtype)
    if dtypes.category(wanted) < dtypes.FLOATING:
        raise RuntimeError(f"{name} requires a floating point or complex dtype")
    if dtypes.category(wanted) == dtypes.COMPLEX:
        raise NotImplementedError(f"\"{name}\" not implemented for '{scalar_name(wanted)}'")
    with np.errstate(all="ignore"):  # no points, or no time between them
        made = wrap(positions.astype(wanted) * np.asarray(1.0 / np.float64(n * d)).astype(wanted))
    return written(made, out, f"fft_{name}") if out is not None else as_leaf(made, requires_grad)


def fftfreq(n: int, d: float = 1.0, *, out: Any = None, dtype: Any = None, layout: Any = None, device: Any = None,
            requires_grad: bool = False, pin_memory: bool = False) -> Tensor:
    """The frequencies that the n elements of an fft stand for, where d is the time between samples."""
    positions = np.arange(n)
    positions[(n + 1) // 2:] -= n
    return _frequencies("fftfreq", positions, n, d, out, dtype, layout, device, requires_grad, pin_memory)


def rfftfreq(n: int, d: float = 1.0, *, out: Any = None, dtype: Any = None, layout: Any = None, device: Any = None,
             requires_grad: bool = False, pin_memory: bool = False) -> Tensor:
    """The frequencies that the elements of an rfft of n points stand for."""
    return _frequencies("rfftfreq", np.arange(n // 2 + 1), n, d, out, dtype, layout, device, requires_grad, pin_memory)


def _rolled(input: Tensor, dim: Any, forward: bool) -> Tensor:
    if dim is None:
        dims = tuple(range(input.ndim))
    else:
        dims = wrap_dims((dim,) if isinstance(dim, int) else dim, input.ndim)
    sizes = [input._shape[d] for d in dims]
    return TENSORS.roll(input, [n // 2 if forward else (n + 1) // 2 for n in sizes], list(dims))


def fftshift(input: Tensor, dim: Any = None) -> Tensor:
    """Put frequency zero, which comes first, into the middle."""
    return _rolled(input, dim, True)


def ifftshift(input: Tensor, dim: Any = None) -> Tensor:
    """The inverse of fftshift."""
    return _rolled(input, dim, False)


# -- short-time spectra ----------------------------------------------------------------------------------------------
def _padded_window(window: Tensor | None, win_length: int, n_fft: int, dtype: np.dtype) -> Tensor:
    """The window, or one of ones, with zeros on both sides up to the length of a frame."""
    if window is None:
        window = wrap(np.ones(win_length, dtype))
    left = (n_fft - win_length) // 2
    return window if win_length == n_fft else TENSORS.constant_pad_nd(window, (left, n_fft - win_length - left), 0)


def _is_complex(tensor: Tensor | None) -> bool:
    return tensor is not None and tensor.dtype.is_complex


@public
@method
def stft(input: Tensor, n_fft: int, hop_length: int | None = None, win_length: int | None = None,
         window: Tensor | None = None, center: bool = True, pad_mode: str = "reflect", normalized: bool = False,
         onesided: bool | None = None, return_complex: bool | None = None,
         align_to_window: bool | None = None) -> Tensor:
    """The spectra of overlapping frames of a signal, each multiplied by a window."""
    if center and align_to_window is not None:
        raise RuntimeError("stft align_to_window should only be set when center = false")
    shape = tuple(input._shape)
    hop = n_fft // 4 if hop_length is None else hop_length
    width = n_fft if win_length is None else win_length
    if window is None:
        warnings.warn("A window was not provided. A rectangular window will be applied, which is known to cause "
                      "spectral leakage.", stacklevel=2)

    def require(truth: bool, words: str) -> None:
        if not truth:
            raise RuntimeError(f"stft({input.type()}{list(shape)}, n_fft={n_fft}, hop_length={hop}, "  # type: ignore[attr-defined]
                               f"win_length={width}) : expected {words}")

    if return_complex is None:
        if not (_is_complex(input) or _is_complex(window)):
            raise RuntimeError("stft requires the return_complex parameter be given for real inputs: pass "
                               "return_complex=True.")
        return_complex = True
    elif not return_complex:
        warnings.warn("stft with return_complex=False is deprecated: take torch.view_as_real of the complex result.",
                      stacklevel=2)
    require(input.dtype.is_floating_point or input.dtype.is_complex, "a tensor of floating point or complex values")
    require(len(shape) in (1, 2), "a 1D or 2D tensor")
    signal = TENSORS.reshape(input, (1, *shape)) if len(shape) == 1 else input
    if center:
        signal = TENSORS.pad(TENSORS.unsqueeze(signal, 0), (n_fft // 2, n_fft // 2), pad_mode)
        signal = TENSORS.squeeze(signal, 0)
    length = signal._shape[1]
    require(0 < n_fft <= length, f"0 < n_fft < {length}, but got n_fft={n_fft}")
    require(hop > 0, f"hop_length > 0, but got hop_length={hop}")
    require(0 < width <= n_fft, f"0 < win_length <= n_fft, but got win_length={width}")
    require(window is None or tuple(window._shape) == (width,),
            f"a 1D window tensor of size equal to win_length={width}, but got window with size "
            f"{None if window is None else list(window._shape)}")
    complex_frames = _is_complex(input) or _is_complex(window)
    onesided = not complex_frames if onesided is None else onesided
    if onesided and complex_frames:
        raise RuntimeError("Cannot have onesided output if window or input is complex")
    if align_to_window:
        left = (n_fft - width) // 2
        signal = TENSORS.constant_pad_nd(signal, (left, n_fft - width - left), 0)
    frames = TENSORS.unfold(signal, 1, n_fft, hop)
    if window is not None or width < n_fft:
        frames = frames * _padded_window(window, width, n_fft, input._array.dtype)
    mode = _BY_ROOT if normalized else _AS_IS
    if complex_frames:
        spectra = TENSORS.fft_c2c(frames, (2,), mode, True)
    else:
        spectra = TENSORS.fft_r2c(frames, (2,), mode, onesided)
    spectra = TENSORS.transpose(spectra, 1, 2)
    if len(shape) == 1:
        spectra = TENSORS.squeeze(spectra, 0)
    return spectra if return_complex else TENSORS.view_as_real(spectra)


@public
@method
def istft(input: Tensor, n_fft: int, hop_length: int | None = None, win_length: int | None = None,
          window: Tensor | None = None, center: bool = True, normalized: bool = False, onesided: bool | None = None,
          length: int | None = None, return_complex: bool = False) -> Tensor:
    """The signal whose short-time spectra are nearest to those given: the inverse of stft."""
    shape = tuple(input._shape)
    hop = n_fft // 4 if hop_length is None else hop_length
    width = n_fft if win_length is None else win_length
    if window is None:
        warnings.warn("A window was not provided. A rectangular window will be applied. Please provide the same window "
                      "used by stft to make the inversion lossless.", stacklevel=2)

    def require(truth: bool, words: str) -> None:
        if not truth:
            raise RuntimeError(f"istft({input.type()}{list(shape)}, n_fft={n_fft}, hop_length={hop}, "  # type: ignore[attr-defined]
                               f"win_length={width}) {words}")

    if not _is_complex(input):
        raise RuntimeError("istft requires a complex-valued input tensor matching the output from stft with "
                           "return_complex=True.")
    require(prod(shape) > 0, ": input tensor cannot be empty.")
    require(len(shape) in (2, 3), f": expected a tensor with 2 or 3 dimensions, but got {len(shape)}")
    onesided = (shape[-2] != n_fft) if onesided is None else onesided
    bins = n_fft // 2 + 1 if onesided else n_fft
    require(shape[-2] == bins, ": expected the frequency dimension (3rd to the last) of the input tensor to match "
            f"{'n_fft / 2 + 1 when onesided=True' if onesided else 'n_fft when onesided=False'}, but got {shape[-2]}")
    require(0 < hop <= width, ": expected 0 < hop_length <= win_length")
    require(0 < width <= n_fft, ": expected 0 < win_length <= n_fft")
    require(window is None or tuple(window._shape) == (width,),
            ": Invalid window shape. window has to be 1D and length of `win_length`")
    if _is_complex(window) and not return_complex:
        raise RuntimeError("Complex windows are incompatible with return_complex=False")
    if return_complex and onesided:
        raise RuntimeError("Cannot have onesided output if window or input is complex")
    spectra = TENSORS.transpose(TENSORS.unsqueeze(input, 0) if len(shape) == 2 else input, 1, 2)
    mode = _BY_ROOT if normalized else _BY_COUNT
    if return_complex:
        frames = TENSORS.fft_c2c(spectra, (2,), mode, False)
    else:  # of a spectrum given whole, too, the first half is read
        half = spectra if onesided else TENSORS.slice(spectra, 2, 0, n_fft // 2 + 1)
        frames = TENSORS.fft_c2r(half, (2,), mode, n_fft)
    window = _padded_window(window, width, n_fft, input.dtype.to_real().numpy)
    made, weight = _overlapped(frames, window, n_fft, hop)
    total = made._shape[1]
    start = n_fft // 2 if center else 0
    end = total - start if length is None else start + length
    made, weight = (TENSORS.slice(one, 1, start, min(end, total)) for one in (made, weight))
    require(bool((np.abs(weight._array) > 1e-11).all()), "window overlap add min: 1: somewhere all windows are zero")
    made = made / weight
    if end > total:
        warnings.warn("The length of signal is shorter than the length parameter. Zeros fill it up: are center "
                      "and hop_length those of the stft?", stacklevel=2)
        made = TENSORS.constant_pad_nd(made, (0, end - total), 0)
    return TENSORS.squeeze(made, 0) if len(shape) == 2 else made


def _overlapped(frames: Tensor, window: Tensor, n_fft: int, hop: int) -> tuple[Tensor, Tensor]:
    """The frames under their window added up where they overlap, and the squares of the windows likewise."""
    batch, count = frames._shape[:2]
    total = n_fft + hop * (count - 1)
    made = TENSORS.unfold_backward(frames * window, (batch, total), 1, n_fft, hop)
    squares = TENSORS.expand(TENSORS.reshape(window * window, (1, 1, n_fft)), (1, count, n_fft))
    return made, TENSORS.unfold_backward(squares, (1, total), 1, n_fft, hop)
