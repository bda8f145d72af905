"""Reductions and statistics against real torch: values, gradients of both orders, nodes, what is freed, errors."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import rushlight
from tests.ops.comparing import check, leaf, node_name, outputs_of, plain, second_backward

torch = pytest.importorskip("torch", reason="these tests compare with real torch")

GENERATOR = np.random.default_rng(5)
MATRIX = GENERATOR.standard_normal((3, 4))
CUBE = GENERATOR.standard_normal((2, 3, 4))
TIED = np.array([[2.0, 1.0, 2.0, 0.0], [2.0, 2.0, 2.0, -1.0], [0.0, 0.0, 1.0, 1.0]])
WITH_NAN = np.where(np.arange(12).reshape(3, 4) % 5 == 2, np.nan, MATRIX)
ONE_ZERO = np.array([[1.0, 0.0, 3.0], [2.0, 4.0, 0.5]])
TWO_ZEROS = np.array([[1.0, 0.0, 3.0, 0.0], [2.0, 4.0, 0.5, 1.0]])
COMPLEX = GENERATOR.standard_normal((3, 4)) + 1j * GENERATOR.standard_normal((3, 4))
INTEGERS = np.array([[3, 0, -2], [5, 5, 1]])
INF = float("inf")

SMOOTH = {
    "sum": lambda m, x: x.sum(),
    "sum(0)": lambda m, x: x.sum(0),
    "sum keepdim": lambda m, x: m.sum(x, -1, True),
    "sum of two": lambda m, x: x.sum((0, -1)),
    "sum of none": lambda m, x: x.sum(()),
    "sum list": lambda m, x: x.sum([1], keepdim=True),
    "sum axis": lambda m, x: x.sum(axis=1, keepdims=True),
    "sum dim=None": lambda m, x: x.sum(dim=None, keepdim=True),
    "sum dtype": lambda m, x: x.sum(dtype=m.float32),
    "mean": lambda m, x: x.mean(),
    "mean(1)": lambda m, x: x.mean(1),
    "mean -2": lambda m, x: x.mean(-2, keepdim=True),
    "mean of two": lambda m, x: m.mean(x, (0, 1)),
    "prod": lambda m, x: x.prod(),
    "prod(0)": lambda m, x: x.prod(0),
    "prod keepdim": lambda m, x: x.prod(-1, keepdim=True),
    "nansum": lambda m, x: x.nansum(1),
    "nanmean": lambda m, x: x.nanmean(0),
    "var": lambda m, x: x.var(),
    "var biased": lambda m, x: x.var(False),
    "var(0, unbiased)": lambda m, x: x.var(0, False, True),
    "var correction": lambda m, x: x.var(1, correction=2, keepdim=True),
    "std": lambda m, x: m.std(x),
    "std(0)": lambda m, x: x.std(0),
    "std_mean": lambda m, x: m.std_mean(x, 1),
    "var_mean": lambda m, x: m.var_mean(x, dim=(0, 1), correction=0),
    "var_mean, only the mean": lambda m, x: m.var_mean(x, 1)[1],
    "amax": lambda m, x: x.amax(),
    "amax(0)": lambda m, x: x.amax(0),
    "amin of two": lambda m, x: x.amin((0, 1), keepdim=True),
    "aminmax": lambda m, x: m.aminmax(x),
    "aminmax(0)": lambda m, x: m.aminmax(x, dim=0, keepdim=True),
    "max": lambda m, x: x.max(),
    "min": lambda m, x: m.min(x),
    "max(1)": lambda m, x: m.max(x, 1),
    "max keepdim": lambda m, x: x.max(dim=0, keepdim=True),
    "min axis": lambda m, x: x.min(axis=-1),
    "max of two tensors": lambda m, x: m.max(x, x * 0.5),
    "min of two tensors": lambda m, x: x.min(other=-x),
    "median": lambda m, x: x.median(),
    "median(0)": lambda m, x: x.median(0, keepdim=True),
    "nanmedian(1)": lambda m, x: m.nanmedian(x, 1),
    "kthvalue": lambda m, x: x.kthvalue(2, 0),
    "quantile": lambda m, x: x.quantile(0.3),
    "quantile(1)": lambda m, x: x.quantile(0.4, dim=1, keepdim=True),
    "quantiles": lambda m, x: x.quantile(m.tensor([0.1, 0.5, 0.9], dtype=x.dtype), dim=0),
    "quantile lower": lambda m, x: x.quantile(0.4, 1, interpolation="lower"),
    "quantile higher": lambda m, x: x.quantile(0.4, 1, interpolation="higher"),
    "quantile nearest": lambda m, x: x.quantile(0.4, 1, interpolation="nearest"),
    "quantile midpoint": lambda m, x: x.quantile(0.4, 1, interpolation="midpoint"),
    "nanquantile": lambda m, x: m.nanquantile(x, 0.6, dim=0),
    "logsumexp": lambda m, x: x.logsumexp(1),
    "logsumexp of two": lambda m, x: m.logsumexp(x, (0, 1), keepdim=True),
    "norm": lambda m, x: x.norm(),
    "norm 1": lambda m, x: x.norm(1, 0),
    "norm 1.5": lambda m, x: m.norm(x, 1.5, -1),
    "norm 3": lambda m, x: x.norm(3, (0, 1), keepdim=True),
    "norm 0.5": lambda m, x: x.norm(0.5),
    "norm inf": lambda m, x: x.norm(INF, 1),
    "norm -inf": lambda m, x: x.norm(-INF),
    "norm fro": lambda m, x: x.norm("fro", dim=(0, 1)),
    "dist": lambda m, x: m.dist(x, x * x),
    "dist 3, broadcast": lambda m, x: m.dist(x, x[:1] * 2, 3),
    "renorm": lambda m, x: m.renorm(x, 2, 0, 1.0),
    "renorm 1": lambda m, x: x.renorm(1, 1, 0.5),
    "cov": lambda m, x: m.cov(x),
    "cov weights": lambda m, x: m.cov(
        x, correction=0, fweights=m.tensor([1, 2, 1, 3]), aweights=m.tensor([0.5, 1.0, 2.0, 0.1], dtype=x.dtype)
    ),
    "corrcoef": lambda m, x: m.corrcoef(x),
}
PLAIN = {
    "argmax": lambda m, x: x.argmax(),
    "argmax(1)": lambda m, x: m.argmax(x, 1, True),
    "argmin(0)": lambda m, x: x.argmin(0),
    "all": lambda m, x: x.all(),
    "all(0)": lambda m, x: m.all(x, 0),
    "any": lambda m, x: x.any((0, 1), keepdim=True),
    "any of none": lambda m, x: x.any(dim=()),
    "count_nonzero": lambda m, x: x.count_nonzero(),
    "nonzero(1)": lambda m, x: m.count_nonzero(x, 1),
    "mode": lambda m, x: x.mode(),
    "mode(0)": lambda m, x: m.mode(x, 0, True),
    "sum": lambda m, x: x.sum(),
    "prod": lambda m, x: x.prod(1),
    "max": lambda m, x: x.max(0),
    "median": lambda m, x: x.median(),
    "amin": lambda m, x: x.amin(1),
}


@pytest.mark.parametrize("name", SMOOTH)
def test_values_and_gradients(name: str) -> None:
    loose = {"rtol": 1e-5, "atol": 1e-5} if name == "sum dtype" else {}
    check(torch, rushlight, SMOOTH[name], MATRIX, **loose)


@pytest.mark.parametrize(
    "name", ["sum(0)", "mean -2", "var correction", "std(0)", "amax(0)", "max keepdim", "norm 3", "prod(0)"]
)
def test_three_dimensions(name: str) -> None:
    check(torch, rushlight, SMOOTH[name], CUBE)


@pytest.mark.parametrize(
    "name", ["sum(0)", "mean", "prod", "var", "std(0)", "norm", "norm 3", "norm 1.5", "logsumexp", "cov"]
)
def test_complex(name: str) -> None:
    check(torch, rushlight, SMOOTH[name], COMPLEX)


@pytest.mark.parametrize("name", PLAIN)
@pytest.mark.parametrize("array", [INTEGERS, TIED, INTEGERS.astype(np.uint8)], ids=["integers", "floats", "bytes"])
def test_without_gradient(name: str, array: np.ndarray) -> None:
    for module_input in (array,):
        expected = outputs_of(PLAIN[name](torch, torch.tensor(module_input)))
        found = outputs_of(PLAIN[name](rushlight, rushlight.tensor(module_input)))
        for got, wanted in zip(found, expected, strict=True):
            assert plain(got).dtype == plain(wanted).dtype
            np.testing.assert_array_equal(plain(got), plain(wanted))


@pytest.mark.parametrize(
    "name",
    [
        "amax",
        "amax(0)",
        "amin of two",
        "aminmax",
        "max",
        "min",
        "max(1)",
        "median",
        "norm inf",
        "norm 1",
        "max of two tensors",
        "mode",
    ],
)
def test_ties_share_or_choose_as_in_torch(name: str) -> None:
    check(torch, rushlight, {**SMOOTH, **PLAIN}[name], TIED)


@pytest.mark.parametrize(
    "name", ["nansum", "nanmean", "nanmedian(1)", "nanquantile", "max", "median", "quantile(1)", "max(1)", "amax(0)"]
)
def test_nan(name: str) -> None:
    check(torch, rushlight, SMOOTH[name], WITH_NAN, second=False)


@pytest.mark.parametrize("name", ["prod", "prod(0)", "prod keepdim"])
def test_product_with_one_zero(name: str) -> None:
    check(torch, rushlight, SMOOTH[name], ONE_ZERO)


def test_product_with_two_zeros_has_its_true_second_derivative() -> None:
    check(torch, rushlight, lambda m, x: x.prod(1), TWO_ZEROS)
    x = leaf(rushlight, TWO_ZEROS[0])
    (g,) = rushlight.autograd.grad(x.prod(), x, create_graph=True)
    np.testing.assert_array_equal(plain(g), 0)
    (second,) = rushlight.autograd.grad(g[1], x)  # of x0*x2*x3 by x3 at (1, 0, 3, 0)
    np.testing.assert_array_equal(plain(second), [0, 0, 0, 3])


@pytest.mark.parametrize("order", [0.5, 1, 1.5, 2, 3, INF, -INF, 0])
def test_norm_at_zero(order: float) -> None:
    check(torch, rushlight, lambda m, x: m.norm(x, order), np.zeros(3), second=False)


@pytest.mark.filterwarnings("ignore:.*degrees of freedom.*")
@pytest.mark.parametrize(
    "expression",
    [
        lambda m, x: x.std(),
        lambda m, x: x.var(),
        lambda m, x: x.var(0),
        lambda m, x: x.std(0),
        lambda m, x: x.var(correction=3),
    ],
)
def test_spread_of_too_few(expression: object) -> None:
    check(torch, rushlight, expression, np.array([1.5]), second=False)  # type: ignore[arg-type]


def test_constant_has_deviation_zero_and_gradient_zero() -> None:
    check(torch, rushlight, lambda m, x: x.std(1), np.ones((2, 3)), second=False)


@pytest.mark.parametrize(
    ("expression", "name"),
    [
        (lambda m, x: x.sum(), "SumBackward0"),
        (lambda m, x: x.sum(0), "SumBackward1"),
        (lambda m, x: x.mean(), "MeanBackward0"),
        (lambda m, x: x.mean(1), "MeanBackward1"),
        (lambda m, x: x.prod(), "ProdBackward0"),
        (lambda m, x: x.prod(0), "ProdBackward1"),
        (lambda m, x: x.max(), "MaxBackward1"),
        (lambda m, x: x.max(0)[0], "MaxBackward0"),
        (lambda m, x: x.var(), "VarBackward0"),
        (lambda m, x: x.median(), "MedianBackward0"),
        (lambda m, x: x.median(0)[0], "MedianBackward1"),
        (lambda m, x: x.norm(), "LinalgVectorNormBackward0"),
        (lambda m, x: x.max(x * 2), "MaximumBackward0"),
        (lambda m, x: x.amin(1), "AminBackward0"),
        (lambda m, x: m.std_mean(x)[1], "StdMeanBackward0"),
    ],
)
def test_node_names(expression: object, name: str) -> None:
    for module in (torch, rushlight):
        assert node_name(expression(module, leaf(module, MATRIX))) == name  # type: ignore[operator]


@pytest.mark.parametrize(
    "name",
    [
        "sum",
        "sum(0)",
        "mean",
        "mean(1)",
        "prod",
        "var",
        "std",
        "max",
        "max(1)",
        "amax",
        "norm",
        "logsumexp",
        "median(0)",
        "nansum",
        "dist",
    ],
)
def test_what_backward_frees(name: str) -> None:
    assert second_backward(rushlight, SMOOTH[name], MATRIX) == second_backward(torch, SMOOTH[name], MATRIX)


@pytest.mark.parametrize(
    "expression",
    [
        lambda m: m.ones(2, 3).sum(2),
        lambda m: m.ones(2, 3).sum((0, -2)),
        lambda m: m.tensor([1, 2]).mean(),
        lambda m: m.ones(0).max(),
        lambda m: m.ones(0, 2).max(0),
        lambda m: m.ones(0).argmax(),
        lambda m: m.ones(2).kthvalue(3),
        lambda m: m.ones(2).quantile(1.5),
        lambda m: m.tensor([1, 2]).quantile(0.5),
        lambda m: m.tensor([1, 2]).std(),
        lambda m: m.ones(2, dtype=m.complex64).max(),
        lambda m: m.tensor([1, 2]).norm(),
        lambda m: m.tensor([True]).argmax(),
        lambda m: m.ones(0).mode(),
        lambda m: m.ones(3).renorm(2, 0, 1.0),
        lambda m: m.ones(2).norm("abc"),
        lambda m: m.ones(0, 3).amax(),
        lambda m: m.ones(0, 3).amax(0),
    ],
)
def test_errors(expression: object, same_error: object) -> None:
    same_error(expression, 4)  # type: ignore[operator]


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), ()])
def test_empty_and_scalar(shape: tuple) -> None:
    values = np.full(shape, 2.0)
    for expression in (
        lambda m, x: x.sum(),
        lambda m, x: x.mean(),
        lambda m, x: x.sum(0),
        lambda m, x: x.prod(0),
        lambda m, x: x.logsumexp(0),
        lambda m, x: x.norm(),
    ):
        check(torch, rushlight, expression, values, second=False)


@pytest.mark.parametrize(
    "expression",
    [
        lambda m, x: x.max(0),
        lambda m, x: x.median(-1),
        lambda m, x: x.amax(0),
        lambda m, x: x.std(correction=0),
        lambda m, x: x.quantile(0.5, 0),
    ],
)
def test_scalar_takes_dimension_zero(expression: object) -> None:
    check(torch, rushlight, expression, np.array(2.0), second=False)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("shape", "dim"),
    [
        ((200_000, 3), 0),
        ((3000, 50), 0),
        ((40, 3000, 5), (0, 1)),
        ((100_000,), None),
        ((5, 2000, 7), 1),
        ((1001, 33), 0),
        ((257, 1), 0),
        ((64, 16, 28, 28), (0, 2, 3)),
    ],
)
def test_float32_sums_are_as_exact_as_torch(shape: tuple, dim: object) -> None:
    values = np.random.default_rng(1).random(shape, np.float32)
    exact = values.astype(np.float64).sum(dim)  # type: ignore[arg-type]
    made = plain(rushlight.tensor(values).sum(dim))
    assert made.dtype == np.float32
    assert np.abs(made / exact - 1).max() < 1e-6
    np.testing.assert_allclose(plain(rushlight.tensor(values).mean(dim)), exact / (values.size / exact.size), 1e-6)


def test_half_precision_sums_in_float32() -> None:
    values = np.full((3000, 2), 0.1, np.float16)
    for dim in (None, 0):
        wanted = torch.tensor(values).sum(dim)
        np.testing.assert_allclose(plain(rushlight.tensor(values).sum(dim)), plain(wanted), 1e-3)
        np.testing.assert_allclose(plain(rushlight.tensor(values).mean(dim)), 0.1, 1e-3)


def test_large_gradient_of_a_sum() -> None:
    x = rushlight.ones(100, 100, requires_grad=True)
    (x * 2).sum().backward()
    np.testing.assert_array_equal(plain(x.grad), 2)
    x.grad.add_(1)  # its memory is its own
    y = rushlight.ones(100, 100, requires_grad=True)
    y.sum().backward()
    y.grad[0, 0] = 5
    assert plain(y.grad).sum() == 100 * 100 + 4


def test_sums_overflow_silently() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert rushlight.tensor([3e38, 3e38]).sum().item() == INF
        assert np.isnan(rushlight.tensor([INF, -INF]).mean().item())


def test_named_results() -> None:
    values = np.array([[1.0, 5.0], [3.0, 4.0]])
    found, wanted = rushlight.tensor(values).max(1), torch.tensor(values).max(1)
    assert repr(found) == repr(wanted)
    np.testing.assert_array_equal(plain(found.indices), plain(wanted.indices))
    largest, where = found
    assert largest is found.values is found[0] and where is found[1]
    assert isinstance(found, tuple) and isinstance(found, rushlight.return_types.max)
    assert repr(rushlight.aminmax(rushlight.tensor(values))) == repr(torch.aminmax(torch.tensor(values)))


def test_out() -> None:
    values = rushlight.tensor(MATRIX)
    target, place = rushlight.empty(4, dtype=values.dtype), rushlight.empty(4, dtype=rushlight.int64)
    assert rushlight.sum(values, 0, out=target) is target
    np.testing.assert_allclose(plain(target), MATRIX.sum(0))
    rushlight.max(values, 0, out=(target, place))
    np.testing.assert_array_equal(plain(place), MATRIX.argmax(0))
    np.testing.assert_array_equal(plain(target), MATRIX.max(0))
