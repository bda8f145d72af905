"""Running sums, products and extremes, differences and integrals against real torch."""

from __future__ import annotations

import numpy as np
import pytest

import rushlight
from tests.ops.comparing import check, leaf, node_name, plain, second_backward

torch = pytest.importorskip("torch", reason="these tests compare with real torch")

GENERATOR = np.random.default_rng(8)
MATRIX = GENERATOR.standard_normal((4, 5))
CUBE = GENERATOR.standard_normal((2, 4, 3))
COMPLEX = GENERATOR.standard_normal((4, 3)) + 1j * GENERATOR.standard_normal((4, 3))
ZEROS = np.array(
    [[1.0, 2.0, 0.0, 3.0, 2.0], [0.0, 1.0, 0.0, 2.0, 0.0], [1.0, -1.0, 2.0, 3.0, 0.0], [0.0, 0.0, 0.0, 0.0, 0.0]]
)
TIED = np.array([[1.0, 1.0, 0.0], [2.0, 1.0, 0.0], [2.0, 3.0, 0.0], [1.0, 3.0, -1.0]])
WITH_NAN = np.array([1.0, np.nan, 3.0, np.nan, 2.0])

SCANS = {
    "cumsum": lambda m, x: x.cumsum(0),
    "cumsum -1": lambda m, x: m.cumsum(x, dim=-1),
    "cumsum axis": lambda m, x: m.cumsum(x, axis=1),
    "cumprod": lambda m, x: x.cumprod(0),
    "cumprod -1": lambda m, x: m.cumprod(x, -1),
    "cummax": lambda m, x: x.cummax(0),
    "cummin -1": lambda m, x: m.cummin(x, -1),
    "logcumsumexp": lambda m, x: x.logcumsumexp(0),
    "logcumsumexp -1": lambda m, x: m.logcumsumexp(x, -1),
    "diff": lambda m, x: x.diff(),
    "diff 2": lambda m, x: m.diff(x, 2, 0),
    "diff 0": lambda m, x: m.diff(x, n=0),
    "diff too often": lambda m, x: m.diff(x, n=9),
    "diff with ends": lambda m, x: m.diff(x, dim=0, prepend=x[:1] * 2, append=x[:2]),
    "gradient": lambda m, x: m.gradient(x),
    "gradient spacing": lambda m, x: m.gradient(x, spacing=0.5, dim=0),
    "gradient spacings": lambda m, x: m.gradient(x, spacing=[2.0, 0.1]),
    "gradient edges": lambda m, x: m.gradient(x, dim=1, edge_order=2),
    "gradient coordinates": lambda m, x: m.gradient(x, spacing=[m.tensor([0.0, 1.0, 3.0, 4.5], dtype=x.dtype)], dim=0),
    "gradient coordinates edges": lambda m, x: m.gradient(
        x, spacing=[m.tensor([0.0, 1.0, 3.0, 4.5], dtype=x.dtype)], dim=[0], edge_order=2
    ),
    "trapezoid": lambda m, x: m.trapezoid(x),
    "trapezoid dx": lambda m, x: m.trapz(x, dx=0.3, dim=0),
    "trapezoid x": lambda m, x: m.trapezoid(x, x * x),
    "trapezoid x of one line": lambda m, x: m.trapezoid(x, x[0] * 2, dim=1),
    "cumulative_trapezoid": lambda m, x: m.cumulative_trapezoid(x, dim=0),
    "cumulative_trapezoid x": lambda m, x: m.cumulative_trapezoid(x, x.exp()),
}


@pytest.mark.parametrize("name", SCANS)
def test_values_and_gradients(name: str) -> None:
    check(torch, rushlight, SCANS[name], MATRIX)


@pytest.mark.parametrize("name", ["cumsum", "cumprod -1", "cummax", "logcumsumexp", "diff 2"])
def test_three_dimensions(name: str) -> None:
    check(torch, rushlight, SCANS[name], CUBE)


@pytest.mark.parametrize("name", ["cumsum", "cumprod", "cumprod -1", "logcumsumexp", "diff", "trapezoid"])
def test_complex(name: str) -> None:
    check(torch, rushlight, SCANS[name], COMPLEX)


@pytest.mark.parametrize("name", ["cumprod", "cumprod -1"])
def test_products_through_zeros_have_both_orders(name: str) -> None:
    check(torch, rushlight, SCANS[name], ZEROS)
    check(torch, rushlight, lambda m, x: SCANS[name](m, x * x + x), ZEROS)


@pytest.mark.parametrize("name", ["cummax", "cummin -1"])
def test_ties(name: str) -> None:
    check(torch, rushlight, SCANS[name], TIED)


@pytest.mark.parametrize("expression", [lambda m, x: x.cummax(0), lambda m, x: x.cummin(0), lambda m, x: x.cumsum(0)])
def test_nan(expression: object) -> None:
    check(torch, rushlight, expression, WITH_NAN, second=False)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "expression",
    [lambda m, x: x.cumsum(0), lambda m, x: x.cumprod(-1), lambda m, x: x.cummax(0), lambda m, x: x.logcumsumexp(0)],
)
def test_scalar(expression: object) -> None:
    check(torch, rushlight, expression, np.array(1.5))  # type: ignore[arg-type]


def test_integers_and_booleans_widen() -> None:
    for values in (np.array([1, 2, 3], np.int32), np.array([True, False, True])):
        for expression in (
            lambda m, x: x.cumsum(0),
            lambda m, x: x.cumprod(0),
            lambda m, x: m.diff(x),
            lambda m, x: x.cumsum(0, dtype=m.float32),
        ):
            got, wanted = expression(rushlight, rushlight.tensor(values)), expression(torch, torch.tensor(values))
            assert plain(got).dtype == plain(wanted).dtype
            np.testing.assert_array_equal(plain(got), plain(wanted))


def test_far_apart_exponents_do_not_overflow() -> None:
    values = np.array([-800.0, 700.0, 0.0, 710.0, -900.0])
    check(torch, rushlight, lambda m, x: x.logcumsumexp(0), values, second=False)


def test_second_order_of_logcumsumexp_where_no_gradient_arrives() -> None:
    """The gradient is linear in what arrives, also around zero: its slope there is the Jacobian."""
    values = GENERATOR.standard_normal(5)
    x = leaf(rushlight, values)
    arriving = rushlight.zeros(5, dtype=x.dtype, requires_grad=True)
    (g,) = rushlight.autograd.grad(x.logcumsumexp(0), x, arriving, create_graph=True)
    (found,) = rushlight.autograd.grad(g, arriving, rushlight.ones(5, dtype=x.dtype))
    step = 1e-6
    running = [np.log(np.cumsum(np.exp(values + sign * step))) for sign in (1, -1)]
    np.testing.assert_allclose(plain(found), (running[0] - running[1]) / (2 * step), 1e-6)


def test_float32_running_sum_is_as_exact_as_torch() -> None:
    values = np.random.default_rng(2).random(200_000, np.float32)
    exact = np.cumsum(values.astype(np.float64))
    assert np.abs(plain(rushlight.tensor(values).cumsum(0)) / exact - 1).max() < 2e-7


def test_in_place() -> None:
    for module in (torch, rushlight):
        x = leaf(module, MATRIX)
        y = x * 1
        assert y.cumsum_(0) is y
        y.sum().backward()
        np.testing.assert_allclose(plain(x.grad), np.repeat([[4.0], [3.0], [2.0], [1.0]], 5, 1))


@pytest.mark.parametrize("name", ["cumsum", "cumprod", "cummax", "logcumsumexp", "diff"])
def test_what_backward_frees(name: str) -> None:
    assert second_backward(rushlight, SCANS[name], MATRIX) == second_backward(torch, SCANS[name], MATRIX)


@pytest.mark.parametrize("name", ["cumsum", "cumprod", "logcumsumexp"])
def test_node_names(name: str) -> None:
    names = [node_name(SCANS[name](module, leaf(module, MATRIX))) for module in (torch, rushlight)]
    assert names[0] == names[1]


@pytest.mark.parametrize(
    "expression",
    [
        lambda m: m.cumsum(m.ones(2)),
        lambda m: m.ones(2).cumsum(1),
        lambda m: m.tensor(1.0).diff(),
        lambda m: m.ones(3).diff(-1),
        lambda m: m.gradient(m.ones(3), edge_order=3),
        lambda m: m.gradient(m.ones(1)),
        lambda m: m.trapezoid(m.tensor([True, False])),
        lambda m: m.trapezoid(m.ones(3), m.ones(2)),
        lambda m: m.ones(2, dtype=m.complex64).cummax(0),
        lambda m: m.tensor([1, 2]).logcumsumexp(0),
    ],
)
def test_errors(expression: object, same_error: object) -> None:
    same_error(expression, 3)  # type: ignore[operator]
