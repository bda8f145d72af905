"""Fourier transforms and short-time spectra against real torch."""

from __future__ import annotations

import numpy as np
import pytest

import rushlight
from tests.ops.comparing import check, leaf, node_name, plain, second_backward

torch = pytest.importorskip("torch", reason="these tests compare with real torch")
pytestmark = pytest.mark.filterwarnings("ignore:A window was not provided", "ignore:stft with return_complex")

GENERATOR = np.random.default_rng(5)
REAL = GENERATOR.standard_normal((3, 4, 6))
COMPLEX = GENERATOR.standard_normal((3, 4, 5)) + 1j * GENERATOR.standard_normal((3, 4, 5))
SIGNAL = GENERATOR.standard_normal((2, 40))
SPECTRA = GENERATOR.standard_normal((2, 5, 6)) + 1j * GENERATOR.standard_normal((2, 5, 6))
ONE_DIMENSION = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
SEVERAL = ("fftn", "ifftn", "rfftn", "irfftn", "hfftn", "ihfftn")
FROM_REAL_ONLY = ("rfft", "ihfft", "rfftn", "ihfftn")


SIZES = (
    (None, None, None), ((3, 7), None, "ortho"), (None, (0, 2), "forward"), ((5, -1), (2, 0), None), ((4,), (1,), None)
)  # fmt: skip


def curved(made):
    """Something curved of a transform, so that the second order is not zero."""
    return made * made.conj() * made if made.is_complex() else made**3


def transform(name: str, *given):
    return lambda m, x: curved(getattr(m.fft, name)(x, *given))


@pytest.mark.parametrize("norm", [None, "ortho", "forward", "backward"])
@pytest.mark.parametrize("name", ONE_DIMENSION)
def test_one_dimension(name: str, norm: str | None) -> None:
    for values in (REAL, COMPLEX)[: 1 if name in FROM_REAL_ONLY else 2]:
        for given in ((None, -1), (3, 1), (7, -1), (1, 0)):
            check(torch, rushlight, transform(name, *given, norm), values)


@pytest.mark.parametrize("name", SEVERAL)
def test_several_dimensions(name: str) -> None:
    for values in (REAL, COMPLEX)[: 1 if name in FROM_REAL_ONLY else 2]:
        for given in SIZES:
            check(torch, rushlight, transform(name, *given), values)


@pytest.mark.parametrize("name", ["fft2", "ifft2", "rfft2", "irfft2", "hfft2", "ihfft2"])
def test_two_dimensions(name: str) -> None:
    check(torch, rushlight, transform(name, (3, 4)), REAL)
    check(torch, rushlight, lambda m, x: getattr(m.fft, name)(x), REAL.astype(np.float32), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "fftn", "irfft"])
def test_integers_become_floats(name: str) -> None:
    check(torch, rushlight, lambda m, x: getattr(m.fft, name)(x), np.arange(6), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft", "fftn", "ihfftn", "fftshift"])
def test_nodes_and_freeing(name: str) -> None:
    assert node_name(getattr(rushlight.fft, name)(leaf(rushlight, REAL))) == node_name(
        getattr(torch.fft, name)(leaf(torch, REAL))
    )

    def magnitude(module, x):
        made = getattr(module.fft, name)(x)
        return made.real if made.is_complex() else made

    assert second_backward(rushlight, magnitude, REAL) == second_backward(torch, magnitude, REAL)


def test_frequencies_and_shifts() -> None:
    for n in (0, 1, 4, 5):
        for name in ("fftfreq", "rfftfreq"):
            wanted, found = (getattr(m.fft, name)(n, 0.3, dtype=m.float64) for m in (torch, rushlight))
            np.testing.assert_allclose(plain(found), plain(wanted))
            assert getattr(rushlight.fft, name)(n).dtype is rushlight.float32
    for dim in (None, 0, (1, 2), -1):
        for name in ("fftshift", "ifftshift"):
            check(torch, rushlight, transform(name, dim), COMPLEX)


def test_out() -> None:
    target = rushlight.empty(0, dtype=rushlight.complex128)
    assert rushlight.fft.fft(rushlight.tensor(REAL), out=target) is target
    np.testing.assert_allclose(plain(target), np.fft.fft(REAL))
    with pytest.raises(RuntimeError, match="fft expects a complex output tensor, but got Float"):
        rushlight.fft.fft(rushlight.tensor(REAL), out=rushlight.empty(0))


ERRORS = {
    "no points": lambda m, x: m.fft.fft(x, 0),
    "no points left": lambda m, x: m.fft.irfft(x[..., :1]),
    "no dimension": lambda m, x: m.fft.fft(x.sum()),
    "dimension out of range": lambda m, x: m.fft.fft(x, dim=5),
    "norm": lambda m, x: m.fft.fft(x, norm="unit"),
    "twice the same": lambda m, x: m.fft.fftn(x, dim=(0, 0)),
    "too many sizes": lambda m, x: m.fft.fftn(x, s=(2, 2, 2, 2)),
    "sizes and dimensions": lambda m, x: m.fft.fftn(x, s=(2, 2), dim=(0,)),
    "complex to rfft": lambda m, x: m.fft.rfft(x * 1j),
    "complex to rfftn": lambda m, x: m.fft.rfftn(x * 1j),
    "complex to ihfft2": lambda m, x: m.fft.ihfft2(x * 1j),
    "none to rfftn": lambda m, x: m.fft.rfftn(x, dim=()),
    "half": lambda m, x: m.fft.fft(x.half()),
    "integer frequencies": lambda m, x: m.fft.fftfreq(4, dtype=m.int64),
    "stft of what": lambda m, x: m.stft(x[0, 0], 4),
    "stft hop": lambda m, x: m.stft(x[0], 4, 0, return_complex=True),
    "stft three dimensions": lambda m, x: m.stft(x, 2, return_complex=True),
    "stft window": lambda m, x: m.stft(x[0], 4, window=m.ones(3), return_complex=True),
    "istft of real": lambda m, x: m.istft(x[0], 6),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name: str) -> None:
    with pytest.raises(Exception) as wanted:
        ERRORS[name](torch, torch.tensor(REAL))
    with pytest.raises(type(wanted.value)) as found:
        ERRORS[name](rushlight, rushlight.tensor(REAL))
    opening = str(wanted.value).partition("(")[0][:20]
    assert str(found.value).startswith(opening)


def hann(module, length: int):
    return module.hann_window(length, dtype=module.float64)


STFTS = {
    "plain": lambda m, x: m.stft(x, 8, return_complex=True),
    "window": lambda m, x: m.stft(x, 8, 3, window=hann(m, 8), return_complex=True),
    "short window": lambda m, x: m.stft(x, 8, 3, 5, hann(m, 5), center=False, return_complex=True),
    "aligned": lambda m, x: m.stft(x, 8, 3, 5, hann(m, 5), center=False, return_complex=True, align_to_window=True),
    "whole": lambda m, x: m.stft(x, 8, onesided=False, normalized=True, pad_mode="constant", return_complex=True),
    "complex window": lambda m, x: m.stft(x, 8, window=hann(m, 8) * (1 + 2j)),
    "real pairs": lambda m, x: x.stft(8, return_complex=False),
}


@pytest.mark.parametrize("name", STFTS)
def test_stft(name: str) -> None:
    for values in (SIGNAL, SIGNAL[0]):
        check(torch, rushlight, lambda m, x: curved(STFTS[name](m, x)), values)


ISTFTS = {
    "plain": lambda m, x: m.istft(x, 8),
    "window": lambda m, x: x.istft(8, 2, window=hann(m, 8)),
    "not centered": lambda m, x: m.istft(x, 8, 2, 6, m.ones(6, dtype=m.float64) + hann(m, 6), center=True, length=9),
    "normalized": lambda m, x: m.istft(x, 8, normalized=True, onesided=True, length=30),
    "whole": lambda m, x: m.istft(x[:, :4], 4, 1, onesided=False),
    "complex": lambda m, x: m.istft(x[:, :4], 4, 1, onesided=False, return_complex=True),
}


@pytest.mark.filterwarnings("ignore:The length of signal is shorter")
@pytest.mark.parametrize("name", ISTFTS)
def test_istft(name: str) -> None:
    check(torch, rushlight, lambda m, x: curved(ISTFTS[name](m, x)), SPECTRA)


def test_istft_undoes_stft() -> None:
    x = rushlight.tensor(SIGNAL)
    window = hann(rushlight, 8)
    spectra = rushlight.stft(x, 8, 2, window=window, return_complex=True)
    np.testing.assert_allclose(plain(rushlight.istft(spectra, 8, 2, window=window)), SIGNAL, atol=1e-12)
    with pytest.raises(RuntimeError, match="window overlap add min"):
        rushlight.istft(spectra, 8, 2, window=rushlight.zeros(8))
