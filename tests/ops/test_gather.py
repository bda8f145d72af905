"""gather, scatter and their kin, masked_select and masked_scatter, against real torch."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import rushlight
from tests.ops.comparing import check, leaf, node_name, plain, second_backward

torch = pytest.importorskip("torch", reason="these tests compare with real torch")

GENERATOR = np.random.default_rng(17)
MATRIX = GENERATOR.standard_normal((3, 4))
ZEROS = np.array([[1.0, 0.0, 3.0, 0.0], [2.0, 4.0, 0.0, 1.0], [0.5, 1.5, 2.5, 0.0]])
TIED = np.round(MATRIX * 2)
INDEX = np.array([[2, 0, 1, 1], [0, 0, 2, 1]])
COLUMNS = np.array([[3, 0, 3], [1, 1, 1], [0, 2, 2]])
MASK = np.array([[True, False, True, False], [False, False, True, True], [False, True, False, False]])

EXPRESSIONS = {
    "gather": lambda m, x: x.gather(0, m.tensor(INDEX)),
    "gather 1": lambda m, x: m.gather(x, -1, m.tensor(COLUMNS)),
    "gather of fewer": lambda m, x: x.gather(1, m.tensor(COLUMNS[:2])),
    "gather of a scalar": lambda m, x: x[0, 0].gather(0, m.tensor([0, 0])),
    "take_along_dim": lambda m, x: x.take_along_dim(m.tensor([[1], [0], [3]]), 1),
    "take_along_dim flat": lambda m, x: m.take_along_dim(x, m.tensor([5, 5, 0])),
    "scatter": lambda m, x: x.scatter(1, m.tensor([[3, 0], [1, 2]]), x[:2, 1:3] * 2),
    "scatter number": lambda m, x: x.scatter(0, m.tensor(INDEX), 2.5),
    "scatter value=": lambda m, x: x.scatter(0, m.tensor(INDEX), value=2.5),
    "scatter_add": lambda m, x: x.scatter_add(0, m.tensor(INDEX), x[:2] * 2),
    "scatter_add 1": lambda m, x: m.scatter_add(x, 1, m.tensor(COLUMNS), x[:, :3] * 2),
    "scatter_": lambda m, x: (x * 1).scatter_(1, m.tensor([[3, 0]]), x[1:2, :2] * 2),
    "scatter_add_": lambda m, x: (x * 1).scatter_add_(0, m.tensor(INDEX), x[1:]),
    "masked_select": lambda m, x: x.masked_select(m.tensor(MASK)),
    "masked_select broadcast": lambda m, x: m.masked_select(x[:, None], m.tensor(MASK[:2])),
    "masked_scatter": lambda m, x: x.masked_scatter(m.tensor(MASK), x * 2),
    "masked_scatter broadcast": lambda m, x: x.masked_scatter(m.tensor(MASK[0]), (x * 2).flatten()),
    "masked_scatter_": lambda m, x: (x * 1).masked_scatter_(m.tensor(MASK), x * 2),
}


@pytest.fixture(autouse=True)
def _no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_values_gradients_nodes_and_freeing(name):
    expression = EXPRESSIONS[name]
    check(torch, rushlight, expression, MATRIX)
    check(torch, rushlight, lambda m, x: expression(m, x) * x.sum(), MATRIX)
    assert second_backward(rushlight, expression, MATRIX) == second_backward(torch, expression, MATRIX)
    found, expected = (expression(m, leaf(m, MATRIX)) for m in (rushlight, torch))
    assert node_name(found) == node_name(expected)


@pytest.mark.parametrize("reduce", ["sum", "prod", "mean", "amax", "amin"])
@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("values", [MATRIX, ZEROS, TIED], ids=["smooth", "zeros", "ties"])
def test_scatter_reduce(reduce, include_self, values):
    def expression(m, x):
        return x.scatter_reduce(0, m.tensor(INDEX), x.flip(0)[:2] * 1, reduce, include_self=include_self)

    check(torch, rushlight, expression, values, second=values is MATRIX)
    assert second_backward(rushlight, expression, values) == second_backward(torch, expression, values)

    def written(m, x):
        return (x * 1).scatter_reduce_(1, m.tensor(COLUMNS), x[:, :3] * 2, reduce, include_self=include_self)

    check(torch, rushlight, written, values, second=False)
    integers = (values * 3).astype(np.int64)
    check(torch, rushlight, expression, integers)


@pytest.mark.parametrize("name", ["scatter", "scatter_add", "scatter_reduce"])
def test_a_source_larger_than_the_index(name):
    # torch has no gradient for it: the part that the index has places for is what counts.
    more = ("prod",) if name == "scatter_reduce" else ()

    def expression(m, x):
        source = x * 2 if m is rushlight else (x * 2)[:2, :3]
        return getattr(x, name)(0, m.tensor(INDEX[:, :3]), source, *more)

    check(torch, rushlight, expression, MATRIX)


@pytest.mark.parametrize("reduce", ["add", "multiply"])
def test_scatter_with_reduce_has_no_gradient(reduce):
    for source in (2.0, None):
        found, expected = (
            m.tensor(MATRIX).scatter(0, m.tensor(INDEX), source or m.tensor(MATRIX) * 2, reduce=reduce)
            for m in (rushlight, torch)
        )
        np.testing.assert_allclose(plain(found), plain(expected))
    for m in (rushlight, torch):
        y = leaf(m, MATRIX).scatter(0, m.tensor(INDEX), 2.0, reduce=reduce)
        with pytest.raises(RuntimeError, match="derivative for aten::scatter is not implemented"):
            y.sum().backward()


SAVED = {
    "gather": (lambda m, x: x.gather(0, m.tensor(INDEX)), "self index dim"),
    "scatter_add": (lambda m, x: x.scatter_add(0, m.tensor(INDEX), x[1:]), "index dim"),
    "index_select": (lambda m, x: x.index_select(0, m.tensor([0])), "index dim"),
    "masked_select": (lambda m, x: x.masked_select(m.tensor(MASK)), "self mask"),
}


@pytest.mark.parametrize("name", SAVED)
def test_what_is_saved(name):
    expression, names = SAVED[name]
    nodes = [expression(m, leaf(m, MATRIX)).grad_fn for m in (rushlight, torch)]
    for one in names.split():
        found, expected = (getattr(node, "_saved_" + one) for node in nodes)
        if one == "dim":
            assert found == expected
        else:
            np.testing.assert_array_equal(plain(found), plain(expected))


def test_a_write_to_what_was_saved_is_noticed():
    for m in (torch, rushlight):
        for write in ("source", "index"):
            x, index = leaf(m, MATRIX) * 1, m.tensor(INDEX)
            y = x.gather(0, index)
            (x if write == "source" else index).zero_()
            with pytest.raises(RuntimeError, match="modified by an inplace operation"):
                y.sum().backward()


ERRORS = {
    "gather, index": lambda m: m.zeros(3).gather(0, m.tensor([3])),
    "gather, dtype": lambda m: m.zeros(3).gather(0, m.tensor([1.0])),
    "gather, dimensions": lambda m: m.zeros(3, 2).gather(0, m.tensor([1])),
    "gather, sizes": lambda m: m.zeros(3, 2).gather(0, m.zeros(1, 3, dtype=m.int64)),
    "scatter, index": lambda m: m.zeros(3).scatter(0, m.tensor([3]), 1.0),
    "scatter, dtype": lambda m: m.zeros(3).scatter(0, m.tensor([0]), m.zeros(1, dtype=m.float64)),
    "scatter, sizes": lambda m: m.zeros(3).scatter(0, m.tensor([0, 1]), m.zeros(1)),
    "scatter, reduce": lambda m: m.zeros(3).scatter(0, m.tensor([0]), 1.0, reduce="min"),
    "scatter_reduce": lambda m: m.zeros(3).scatter_reduce(0, m.tensor([0]), m.zeros(1), "median"),
    "masked_select": lambda m: m.zeros(3).masked_select(m.tensor([1, 0, 1])),
    "masked_scatter": lambda m: m.zeros(3).masked_scatter(m.tensor([True, True, False]), m.zeros(1)),
    "take_along_dim": lambda m: m.zeros(3, 2).take_along_dim(m.tensor([0]), 1),
    "put": lambda m: m.zeros(3).put(m.tensor([0]), m.zeros(2)),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name, same_error):
    same_error(ERRORS[name], words=2)
