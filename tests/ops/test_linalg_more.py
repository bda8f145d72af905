"""LDL factorisations and factorisations of low rank, against real torch."""

from __future__ import annotations

import numpy as np
import pytest

import rushlight
from tests.ops.comparing import check, plain

torch = pytest.importorskip("torch", reason="these tests compare with real torch")

GENERATOR = np.random.default_rng(6)
SQUARE = GENERATOR.standard_normal((2, 4, 4))
SYMMETRIC = SQUARE + SQUARE.swapaxes(-1, -2)
HERMITIAN = SYMMETRIC + 1j * (SQUARE - SQUARE.swapaxes(-1, -2))
RIGHT = GENERATOR.standard_normal((2, 4, 3))
LOW_RANK = GENERATOR.standard_normal((7, 3)) @ GENERATOR.standard_normal((3, 5))


@pytest.mark.parametrize(
    ("matrix", "hermitian"), [(SYMMETRIC, False), (SYMMETRIC, True), (HERMITIAN, True), (HERMITIAN + 0.5j, False)]
)
def test_ldl(matrix: np.ndarray, hermitian: bool) -> None:
    for dtype in (matrix.dtype, np.complex64 if matrix.dtype.kind == "c" else np.float32):
        results = []
        for m in (torch, rushlight):
            given = m.tensor(matrix.astype(dtype))
            factors, pivots, info = m.linalg.ldl_factor_ex(given, hermitian=hermitian)
            solved = m.linalg.ldl_solve(factors, pivots, m.tensor(RIGHT.astype(dtype)), hermitian=hermitian)
            results.append([plain(t) for t in (factors, pivots, info, solved, *m.linalg.ldl_factor(given))])
        for wanted, found in zip(*results, strict=True):
            assert found.dtype == wanted.dtype
            np.testing.assert_allclose(found, wanted, atol=1e-9 if dtype == matrix.dtype else 1e-3)


def test_ldl_solve_broadcasts_and_has_no_derivative() -> None:
    factors, pivots = rushlight.linalg.ldl_factor(rushlight.tensor(SYMMETRIC[0]))
    solved = rushlight.linalg.ldl_solve(factors, pivots, rushlight.tensor(RIGHT))
    np.testing.assert_allclose(SYMMETRIC[0] @ plain(solved), RIGHT)
    with pytest.raises(RuntimeError, match="derivative for aten::linalg_ldl_factor_ex is not implemented"):
        rushlight.linalg.ldl_factor(rushlight.tensor(SYMMETRIC, requires_grad=True))[0].sum().backward()


@pytest.mark.parametrize(
    "call",
    [
        lambda m, a, f, p: m.linalg.ldl_factor(a[0, :2]),
        lambda m, a, f, p: m.linalg.ldl_factor(a[0, 0]),
        lambda m, a, f, p: m.linalg.ldl_factor(m.zeros(2, 2)),
        lambda m, a, f, p: m.linalg.ldl_solve(f, p[:, :2], a),
        lambda m, a, f, p: m.linalg.ldl_solve(f, p.double(), a),
        lambda m, a, f, p: m.linalg.ldl_solve(f, p, a.float()),
        lambda m, a, f, p: m.linalg.ldl_solve(f, p, a[:, :2]),
    ],
)
def test_ldl_errors(call) -> None:
    for m in (torch, rushlight):
        given = m.tensor(SYMMETRIC)
        with pytest.raises(RuntimeError):
            call(m, given, *m.linalg.ldl_factor(given))


def approximation(name: str, **options):
    """What the factors stand for: they themselves are known up to a sign."""

    def call(m, x):
        m.manual_seed(3)
        u, s, v = getattr(m, name)(x, **options)
        return (u * s) @ v.mT, s

    return call


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("name", ["svd_lowrank", "pca_lowrank"])
def test_low_rank(name: str, turned: bool) -> None:
    values = LOW_RANK.T if turned else LOW_RANK
    for options in ({"q": 2}, {"q": 2, "niter": 0}, {"q": 3, "niter": 1}):
        check(torch, rushlight, approximation(name, **options), values, second=False, rtol=1e-5, atol=1e-7)
    made = approximation(name, q=3)(rushlight, rushlight.tensor(values))[0]
    centered = values - values.mean(0) if name == "pca_lowrank" else values
    np.testing.assert_allclose(plain(made), centered, atol=1e-10)


def test_low_rank_of_a_difference() -> None:
    mean = LOW_RANK.mean(0, keepdims=True)
    check(torch, rushlight, lambda m, x: approximation("svd_lowrank", q=2, M=m.tensor(mean))(m, x), LOW_RANK,
          second=False, rtol=1e-5, atol=1e-7)  # fmt: skip
    with pytest.raises(ValueError, match="must be non-negative integer and not greater than"):
        rushlight.pca_lowrank(rushlight.tensor(LOW_RANK), q=9)
