"""torch.masked against real torch."""

from __future__ import annotations

import numpy as np
import pytest

import rushlight
from tests.ops.comparing import check, plain

torch = pytest.importorskip("torch", reason="these tests compare with real torch")

GENERATOR = np.random.default_rng(3)
VALUES = GENERATOR.standard_normal((3, 4, 5))
COMPLEX = VALUES + 1j * GENERATOR.standard_normal((3, 4, 5))
MASK = GENERATOR.random((3, 4, 5)) < 0.6
MASK[..., 0] = MASK[0] = MASK[:, 0] = True  # something is left in every row
ROW = np.array([True, False, True, True, False])

REDUCTIONS = ("sum", "prod", "amax", "amin", "mean", "var", "std", "logsumexp", "norm")
ALONG_ONE = ("cumsum", "cumprod", "softmax", "log_softmax", "softmin", "median", "argmax", "argmin", "normalize")


def masked(name: str, mask: np.ndarray | None, *given, **options):
    """The function under a mask; what is infinite by design is left out, lest it spoil a weighted sum."""

    def call(module, x):
        made = getattr(module.masked, name)(x, *given, mask=None if mask is None else module.tensor(mask), **options)
        return made.masked_fill(made.isinf(), 0.0) if made.is_floating_point() else made

    return call


@pytest.mark.parametrize("mask", [None, MASK, ROW], ids=["none", "full", "row"])
@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions(name: str, mask: np.ndarray | None) -> None:
    for options in ({}, {"dim": 1}, {"dim": (0, -1), "keepdim": True}):
        check(torch, rushlight, masked(name, mask, **options), VALUES)


@pytest.mark.parametrize("mask", [None, MASK, ROW], ids=["none", "full", "row"])
@pytest.mark.parametrize("name", ALONG_ONE)
def test_along_one_dimension(name: str, mask: np.ndarray | None) -> None:
    for dim in (0, -1):
        check(torch, rushlight, masked(name, mask, *((2.0,) if name == "normalize" else ()), dim=dim), VALUES)


@pytest.mark.parametrize("name", ["sum", "prod", "mean", "var", "std", "norm", "cumsum"])
def test_complex(name: str) -> None:
    check(torch, rushlight, masked(name, MASK, dim=1), COMPLEX)


@pytest.mark.parametrize("name", ["sum", "prod", "amax", "amin", "argmax", "var", "std", "cumsum", "median"])
@pytest.mark.parametrize("dtype", ["int32", "uint8", "int64"])
def test_integers(name: str, dtype: str) -> None:
    values = GENERATOR.integers(0, 5, (4, 5)).astype(dtype)
    wanted, found = (plain(getattr(m.masked, name)(m.tensor(values), dim=1, mask=m.tensor(ROW))) for m in (torch, rushlight))
    assert found.dtype == wanted.dtype
    np.testing.assert_allclose(found, wanted, rtol=1e-6)


@pytest.mark.parametrize("ord", [0, 1, 2.5, np.inf, -np.inf])
def test_norms(ord: float) -> None:
    check(torch, rushlight, masked("norm", MASK, ord, 1), VALUES)


@pytest.mark.parametrize("options", [{"unbiased": False}, {"correction": 2}, {"correction": 0.5}])
def test_corrections(options: dict) -> None:
    check(torch, rushlight, masked("var", MASK, 1, **options), VALUES)


def test_logaddexp() -> None:
    check(torch, rushlight, lambda m, x, y: m.masked.logaddexp(x, y, input_mask=m.tensor(MASK)), VALUES, VALUES[::-1] * 2)


def test_nothing_left() -> None:
    nothing = np.zeros(5, bool)
    for name in ("sum", "prod", "amax", "amin", "mean", "var", "softmax", "median", "logsumexp"):
        wanted, found = (
            plain(getattr(m.masked, name)(m.tensor(VALUES), 2, mask=m.tensor(nothing))) for m in (torch, rushlight)
        )
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize(
    "call",
    [
        lambda m: m.masked.mean(m.tensor([1, 2])),
        lambda m: m.masked.sum(m.ones(2), 5),
        lambda m: m.masked.sum(m.ones(2, 2), (0, 0)),
        lambda m: m.masked.sum(m.ones(2), mask=m.ones(2, 2)),
        lambda m: m.masked.median(m.tensor([1, 2]), mask=m.tensor([False, False])),
        lambda m: m.masked.var(m.ones(2), unbiased=True, correction=1),
    ],
)
def test_errors(call) -> None:
    with pytest.raises(Exception) as wanted:
        call(torch)
    with pytest.raises(type(wanted.value)) as found:
        call(rushlight)
    assert str(found.value).startswith(str(wanted.value)[:12])


def test_masked_tensors_are_refused_with_a_way_out() -> None:
    with pytest.raises(NotImplementedError, match="mask="):
        rushlight.masked.masked_tensor  # noqa: B018
