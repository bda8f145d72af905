"""Sorting, searching and counting against real torch."""

from __future__ import annotations

import numpy as np
import pytest

import rushlight
from tests.ops.comparing import check, leaf, node_name, outputs_of, plain, second_backward

torch = pytest.importorskip("torch", reason="these tests compare with real torch")

GENERATOR = np.random.default_rng(3)
MATRIX = GENERATOR.standard_normal((4, 5))
CUBE = GENERATOR.standard_normal((2, 3, 4))
LONG = GENERATOR.standard_normal((3, 100))
TIED = np.array([[2.0, 1.0, 2.0, 1.0, 0.0], [3.0, 3.0, 3.0, 1.0, 3.0]])
WITH_NAN = np.array([2.0, np.nan, -1.0, np.inf, np.nan, 0.0])
INTEGERS = np.array([[3, 1, 3, 0], [0, 0, 1, 1], [3, 1, 3, 0]])

ORDER = {
    "sort": lambda m, x: x.sort(),
    "sort(0)": lambda m, x: m.sort(x, 0),
    "sort descending": lambda m, x: x.sort(descending=True),
    "sort dim": lambda m, x: m.sort(x, dim=0, descending=True, stable=True),
    "msort": lambda m, x: m.msort(x),
    "topk": lambda m, x: x.topk(2),
    "topk smallest": lambda m, x: m.topk(x, 2, dim=0, largest=False),
    "topk all": lambda m, x: x.topk(x.shape[-1], -1),
    "topk none": lambda m, x: x.topk(0),
}
STABLE = {
    "stable": lambda m, x: m.sort(x, stable=True),
    "stable descending": lambda m, x: m.sort(x, descending=True, stable=True),
    "argsort": lambda m, x: x.argsort(stable=True),
    "argsort(0)": lambda m, x: m.argsort(x, dim=0, descending=True, stable=True),
}
DISTINCT = {
    "unique": lambda m, x: x.unique(),
    "with all": lambda m, x: m.unique(x, return_inverse=True, return_counts=True),
    "counts": lambda m, x: m.unique(x, return_counts=True),
    "dim 0": lambda m, x: m.unique(x, dim=0, return_inverse=True),
    "dim 1": lambda m, x: x.unique(dim=1, return_counts=True, return_inverse=True),
    "runs": lambda m, x: m.unique_consecutive(x),
    "runs with all": lambda m, x: x.unique_consecutive(True, True),
    "runs dim": lambda m, x: m.unique_consecutive(x, dim=1, return_inverse=True, return_counts=True),
}


def same(expression: object, *arrays: np.ndarray) -> None:
    expected = outputs_of(expression(torch, *map(torch.tensor, arrays)))  # type: ignore[operator]
    found = outputs_of(expression(rushlight, *map(rushlight.tensor, arrays)))  # type: ignore[operator]
    for got, wanted in zip(found, expected, strict=True):
        assert plain(got).dtype == plain(wanted).dtype
        np.testing.assert_allclose(plain(got), plain(wanted), 1e-6)


@pytest.mark.parametrize("name", ORDER)
@pytest.mark.parametrize("array", [MATRIX, CUBE], ids=["matrix", "cube"])
def test_order(name: str, array: np.ndarray) -> None:
    check(torch, rushlight, ORDER[name], array)


@pytest.mark.parametrize(
    "expression", [lambda m, x: x.topk(3), lambda m, x: x.topk(4, 1, False), lambda m, x: x.t().topk(2, 0)]
)
def test_few_of_many(expression: object) -> None:
    check(torch, rushlight, expression, LONG)  # type: ignore[arg-type]


@pytest.mark.parametrize("expression", [lambda m, x: x.sort(), lambda m, x: x.topk(1), lambda m, x: x.sort(0, True)])
def test_scalar(expression: object) -> None:
    check(torch, rushlight, expression, np.array(2.0))  # type: ignore[arg-type]


@pytest.mark.parametrize("name", STABLE)
@pytest.mark.parametrize(
    "array", [TIED, INTEGERS, INTEGERS.astype(np.uint8), INTEGERS > 1], ids=["floats", "ints", "bytes", "bools"]
)
def test_ties_keep_their_order(name: str, array: np.ndarray) -> None:
    same(STABLE[name], array)


@pytest.mark.parametrize(
    "expression", [lambda m, x: m.sort(x, stable=True), lambda m, x: m.sort(x, descending=True, stable=True)]
)
def test_nan_is_the_largest(expression: object) -> None:
    same(expression, WITH_NAN)


@pytest.mark.parametrize("name", DISTINCT)
@pytest.mark.parametrize("array", [INTEGERS, TIED], ids=["ints", "floats"])
def test_distinct(name: str, array: np.ndarray) -> None:
    same(DISTINCT[name], array)


def test_distinct_has_no_derivative() -> None:
    for module in (torch, rushlight):
        values = module.unique(leaf(module, TIED))
        assert values.requires_grad
        with pytest.raises(RuntimeError, match="not implemented"):
            values.sum().backward()


EDGES = np.array([0.0, 1.0, 1.0, 2.5])
QUERIES = np.array([[-1.0, 0.0, 1.0], [1.2, 2.5, 9.0]])


@pytest.mark.parametrize(
    "expression",
    [
        lambda m, e, q: m.searchsorted(e, q),
        lambda m, e, q: m.searchsorted(e, q, right=True),
        lambda m, e, q: m.searchsorted(e, q, side="right", out_int32=True),
        lambda m, e, q: m.searchsorted(e, 1.0),
        lambda m, e, q: m.searchsorted(m.stack([e, e * 2]), q),
        lambda m, e, q: m.bucketize(q, e),
        lambda m, e, q: m.bucketize(1.0, e),
        lambda m, e, q: m.bucketize(q, e, right=True, out_int32=True),
        lambda m, e, q: m.searchsorted(e.float(), q),
        lambda m, e, q: m.searchsorted(m.tensor([0, 1, 2]), q),
        lambda m, e, q: m.searchsorted(e.flip(0), q, sorter=m.tensor([3, 2, 1, 0])),
    ],
)
def test_searching(expression: object) -> None:
    same(expression, EDGES, QUERIES)


@pytest.mark.parametrize(
    "expression",
    [
        lambda m, x: m.isin(x, m.tensor([3, 0])),
        lambda m, x: m.isin(x, 1),
        lambda m, x: m.isin(3, x),
        lambda m, x: m.isin(x, m.tensor([1]), invert=True),
        lambda m, x: m.bincount(x[0]),
        lambda m, x: m.bincount(x[0], minlength=7),
        lambda m, x: x[0].bincount(m.tensor([0.5, 1.0, 2.0, 4.0])),
    ],
)
def test_membership_and_counts(expression: object) -> None:
    same(expression, INTEGERS)


@pytest.mark.parametrize(
    "expression",
    [
        lambda m, x: m.histc(x, 4),
        lambda m, x: x.histc(5, -1, 1),
        lambda m, x: m.histc(x * 0 + 1, 3),
        lambda m, x: m.histogram(x, 4),
        lambda m, x: m.histogram(x, 3, range=(-1.0, 1.0), density=True),
        lambda m, x: m.histogram(x, m.tensor([-2.0, 0.0, 0.3, 2.0], dtype=x.dtype)),
        lambda m, x: m.histogram(x, 4, weight=x * x),
        lambda m, x: m.histogramdd(x[:, :2], [2, 3]),
        lambda m, x: m.histogramdd(x[:, :2], 2, density=True),
    ],
)
def test_histograms(expression: object) -> None:
    same(expression, MATRIX)


@pytest.mark.parametrize("name", ["sort", "msort", "topk"])
def test_nodes_and_what_backward_frees(name: str) -> None:
    names = [node_name(outputs_of(ORDER[name](module, leaf(module, MATRIX)))[0]) for module in (torch, rushlight)]
    assert names[0] == names[1]
    assert second_backward(rushlight, ORDER[name], MATRIX) == second_backward(torch, ORDER[name], MATRIX) == "freed"


@pytest.mark.parametrize("name", ["sort", "topk", "max", "cummin"])
def test_writing_to_the_indices_is_noticed_and_to_the_values_is_fine(name: str) -> None:
    for module in (torch, rushlight):
        arguments = {"topk": (2,), "max": (0,), "cummin": (0,)}.get(name, ())
        x = leaf(module, MATRIX)
        values, indices = getattr(x * 2, name)(*arguments)
        values.mul_(3)
        values.sum().backward()
        assert plain(x.grad).sum() == 6 * values.numel()
        values, indices = getattr(x * 2, name)(*arguments)
        indices.add_(0)
        with pytest.raises(RuntimeError, match="modified by an inplace operation: .*LongTensor"):
            values.sum().backward()


def test_named_results() -> None:
    for name, arguments in (
        ("sort", ()),
        ("topk", (1,)),
        ("kthvalue", (1,)),
        ("median", (0,)),
        ("cummax", (0,)),
        ("mode", ()),
    ):
        shown = [repr(getattr(module.tensor([[1.0, 2.0]]), name)(*arguments)) for module in (torch, rushlight)]
        assert shown[0] == shown[1]


@pytest.mark.parametrize(
    "expression",
    [
        lambda m: m.ones(2).topk(3),
        lambda m: m.ones(2).sort(1),
        lambda m: m.ones(2, dtype=m.complex64).sort(),
        lambda m: m.bincount(m.tensor([-1])),
        lambda m: m.histc(m.ones(2), 0),
        lambda m: m.histc(m.ones(2), 2, 1, 0),
        lambda m: m.searchsorted(m.tensor(1.0), m.ones(2)),
        lambda m: m.bucketize(m.ones(2), m.ones(2, 2)),
        lambda m: m.searchsorted(m.ones(2), m.ones(2), side="middle"),
    ],
)
def test_errors(expression: object, same_error: object) -> None:
    same_error(expression, 4)  # type: ignore[operator]
