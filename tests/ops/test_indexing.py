"""tensor[index], tensor[index] = value, and indexing along dimensions, against real torch."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import rushlight
from tests.ops.comparing import check, leaf, node_name, plain, second_backward

torch = pytest.importorskip("torch", reason="these tests compare with real torch")

GENERATOR = np.random.default_rng(3)
CUBE = GENERATOR.standard_normal((2, 3, 4))
MATRIX = GENERATOR.standard_normal((3, 4))
VECTOR = GENERATOR.standard_normal(5)
MASK = np.array([[True, False, True, False], [False, False, True, True], [False, True, False, False]])

INDICES = {
    "[1]": lambda m: 1,
    "[-1]": lambda m: -1,
    "[1:]": lambda m: slice(1, None),
    "[:]": lambda m: slice(None),
    "[::2]": lambda m: slice(None, None, 2),
    "[-2:9]": lambda m: slice(-2, 9),
    "[2:1]": lambda m: slice(2, 1),
    "[...]": lambda m: ...,
    "[()]": lambda m: (),
    "[None]": lambda m: None,
    "[:, :]": lambda m: (slice(None), slice(None)),
    "[0, 1]": lambda m: (0, 1),
    "[0, 1, 2]": lambda m: (0, 1, 2),
    "[0, 1:]": lambda m: (0, slice(1, None)),
    "[1:, 0]": lambda m: (slice(1, None), 0),
    "[..., 0]": lambda m: (..., 0),
    "[:, None]": lambda m: (slice(None), None),
    "[None, ..., None]": lambda m: (None, ..., None),
    "[1, ..., ::3]": lambda m: (1, ..., slice(None, None, 3)),
    "[..., ...]": lambda m: (..., ...),
    "[tensor(1)]": lambda m: m.tensor(1),
    "[tensor(1):]": lambda m: slice(m.tensor(1), None),
    "[np.int64(1)]": lambda m: np.int64(1),
    "[tensor]": lambda m: m.tensor([1, 0, 1, -1]),
    "[tensor of two dimensions]": lambda m: m.tensor([[1, 0], [0, 0]]),
    "[int32 tensor]": lambda m: m.tensor([1, 0], dtype=m.int32),
    "[list]": lambda m: [0, 1, 1],
    "[range]": lambda m: range(2),
    "[array]": lambda m: np.array([0, 1]),
    "[array, 0-dim]": lambda m: np.array(1),
    "[bool array]": lambda m: np.array([True, False]),
    "[list of bool]": lambda m: [False, True],
    "[empty list]": lambda m: [],
    "[empty tensor]": lambda m: m.tensor([], dtype=m.int64),
    "[True]": lambda m: True,
    "[False]": lambda m: False,
    "[0, True]": lambda m: (0, True),
    "[tensor(True)]": lambda m: m.tensor(True),
    "[mask]": lambda m: m.tensor([True, False]),
    "[mask of two dimensions]": lambda m: m.tensor(MASK[:, :3].T[:2]),
    "[:, mask]": lambda m: (slice(None), m.tensor(MASK)),
    "[..., mask]": lambda m: (..., m.tensor([True, False, True, True])),
    "[mask, tensor]": lambda m: (m.tensor([True, True]), m.tensor([0, 2])),
    "[tensor, tensor]": lambda m: (m.tensor([0, 1]), m.tensor([2, 0])),
    "[broadcast tensors]": lambda m: (m.tensor([[0], [1]]), m.tensor([2, 0, 1])),
    "[list, list]": lambda m: ([0, 1], [1, 2]),
    "[0, :, list]": lambda m: (0, slice(None), [1, 2]),
    "[list, :, list]": lambda m: ([0, 1], slice(None), [1, 3]),
    "[:, list, 1:]": lambda m: (slice(None), [0, 0, 2], slice(1, None)),
    "[list, 0]": lambda m: ([0, 1], 0),
    "[:, list, list]": lambda m: (slice(None), [0, 1], [1, 3]),
    "[None, tensor]": lambda m: (None, m.tensor([0, 1])),
    "[tensor, None, tensor]": lambda m: (m.tensor([0, 1]), None, m.tensor([0, 1])),
    "[tensor, ..., tensor]": lambda m: (m.tensor([0, 1]), ..., m.tensor([0, 1])),
    "[uint8]": lambda m: m.tensor([1, 0], dtype=m.uint8),
    "[list of lists]": lambda m: [[0, 1], [1, 2]],
    "[list with a slice]": lambda m: [slice(0, 1), 0],
}


@pytest.fixture(autouse=True)
def _no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.mark.parametrize("name", INDICES)
def test_getitem(name):
    index = INDICES[name]
    check(torch, rushlight, lambda m, x: x[index(m)], CUBE)
    check(torch, rushlight, lambda m, x: x[index(m)] * x[index(m)], CUBE)
    check(torch, rushlight, lambda m, x: x[index(m)], (CUBE * 10).astype(np.int64))
    found, expected = (leaf(m, CUBE)[index(m)] for m in (rushlight, torch))
    assert node_name(found) == node_name(expected)
    assert found._is_view() == expected._is_view()
    first = lambda m, x: x[index(m)]
    assert second_backward(rushlight, first, CUBE) == second_backward(torch, first, CUBE)
    base = rushlight.tensor(CUBE)
    view = base[index(rushlight)]
    assert np.shares_memory(base.numpy(), view.numpy()) == (expected._is_view() and view.numel() > 0)


@pytest.mark.parametrize("name", [name for name in INDICES if name != "[uint8]"])  # torch's masked_fill_ refuses it
@pytest.mark.parametrize("kind", ["number", "scalar tensor", "row", "whole"])
def test_setitem(name, kind):
    index = INDICES[name]

    def values(m, x):
        if kind == "number":
            return 3
        if kind == "scalar tensor":
            return (x * x).sum()
        target = x.detach()[index(m)]
        if kind == "row" and target.dim():
            target = target[:1] if target.shape[0] else target
        return (m.ones(tuple(target.shape), dtype=x.dtype) * x.sum()).unsqueeze(0)  # one dimension of size 1 too many

    def written(m, x):
        y = x * 2
        y[index(m)] = values(m, x)
        assert y._version == (name != "[False]")
        return y * y

    check(torch, rushlight, written, CUBE)

    def plainly(m):
        y = m.tensor(CUBE)
        y[index(m)] = values(m, m.tensor(CUBE))
        return plain(y), y._version

    found, expected = plainly(rushlight), plainly(torch)
    np.testing.assert_allclose(found[0], expected[0])
    assert found[1] == expected[1]


def test_setitem_casts_and_writes_through_views():
    for m in (torch, rushlight):
        x = m.zeros(3, 4, dtype=m.int64)
        x[0] = m.ones(4) * 2.7
        x[1, 1] = 1.9
        x.t()[2] = 5
        x[:, 3][m.tensor([0, 2])] = 7
        assert x.tolist() == [[2, 2, 5, 7], [0, 1, 5, 0], [0, 0, 5, 7]]


def test_iteration():
    for m in (torch, rushlight):
        x = leaf(m, MATRIX)
        rows = list(x)
        assert len(rows) == 3
        assert node_name(rows[1]) == "UnbindBackward0"
        (rows[0] * rows[2]).sum().backward()
        np.testing.assert_allclose(plain(x.grad), np.stack([MATRIX[2], np.zeros(4), MATRIX[0]]))


ALONG = {
    "index_select": lambda m, x: x.index_select(1, m.tensor([2, 0, 2])),
    "index_select of a scalar": lambda m, x: x[0, 0].index_select(0, m.tensor([0])),
    "index_add": lambda m, x: x.index_add(1, m.tensor([1, 1, 0]), x[:, :3] * 2, alpha=0.5),
    "index_copy": lambda m, x: x.index_copy(0, m.tensor([2, 0]), x[:2] * 2),
    "index_fill": lambda m, x: x.index_fill(1, m.tensor([3, 1]), 2.0),
    "index_fill by a tensor": lambda m, x: x.index_fill(1, m.tensor([3, 3]), x.sum()),
    "index_reduce prod": lambda m, x: x.index_reduce(0, m.tensor([1, 1, 2]), x, "prod"),
    "index_reduce mean": lambda m, x: x.index_reduce(0, m.tensor([1, 1, 2]), x * 2, "mean", include_self=False),
    "index_reduce amax": lambda m, x: x.index_reduce(1, m.tensor([1, 1, 2, 2]), x * 2, "amax"),
    "index_put": lambda m, x: x.index_put((m.tensor([0, 2]), m.tensor([1, 1])), x.sum()),
    "index_put row": lambda m, x: x.index_put((m.tensor([0, 2]),), x[1] * 2),
    "index_put accumulate": lambda m, x: x.index_put((m.tensor([0, 0, 2]),), x * 2, accumulate=True),
    "index_put two, accumulate": lambda m, x: x.index_put((m.tensor([0, 0]), m.tensor([1, 1])), x[0, :2] * 2, True),
    "index_put mask": lambda m, x: x.index_put((m.tensor(MASK),), x.sum()),
    "take": lambda m, x: x.take(m.tensor([[0, 5], [-1, 5]])),
    "put": lambda m, x: x.put(m.tensor([1, 7]), x[0, :2] * 2),
    "put accumulate": lambda m, x: x.put(m.tensor([1, 1, -1]), x[0, :3] * 2, True),
    "index_add_": lambda m, x: (x * 1).index_add_(0, m.tensor([2, 2]), x[:2]),
    "index_put_": lambda m, x: (x * 1).index_put_((m.tensor([1]),), x[0]),
    "index_fill_": lambda m, x: (x * 1).index_fill_(0, m.tensor([1]), 0),
}


@pytest.mark.parametrize("name", ALONG)
def test_along_a_dimension(name):
    expression = ALONG[name]
    check(torch, rushlight, expression, MATRIX)
    check(torch, rushlight, lambda m, x: expression(m, x) * x.mean(), MATRIX)
    assert second_backward(rushlight, expression, MATRIX) == second_backward(torch, expression, MATRIX)
    assert node_name(expression(rushlight, leaf(rushlight, MATRIX))) == node_name(expression(torch, leaf(torch, MATRIX)))


def test_many_repeated_indices():
    # Enough of them that a sum in the wrong order, or one that keeps only the last, would show.
    index = GENERATOR.integers(0, 7, 500)
    values = GENERATOR.standard_normal((7, 3))
    check(torch, rushlight, lambda m, x: x[m.tensor(index)] * m.arange(500.0, dtype=m.float64)[:, None], values)
    check(torch, rushlight, lambda m, x: x.index_select(0, m.tensor(index)), values.astype(np.float32), rtol=1e-5)


def test_where_elements_are():
    for m in (torch, rushlight):
        x = m.tensor([[0, 2], [3, 0]])
        assert x.nonzero().tolist() == [[0, 1], [1, 0]] == m.argwhere(x).tolist()
        assert [one.tolist() for one in x.nonzero(as_tuple=True)] == [[0, 1], [1, 0]]
        assert m.tensor(5).nonzero().shape == (1, 0)
        assert m.tensor(0).nonzero(as_tuple=True)[0].tolist() == []
        assert [one.tolist() for one in m.unravel_index(m.tensor([5, 2]), (2, 3))] == [[1, 0], [2, 2]]
        assert m.nonzero(x).dtype == m.int64


ERRORS = {
    "out of bounds": lambda m: m.zeros(3)[5],
    "out of bounds below": lambda m: m.zeros(3)[-4],
    "out of bounds, second": lambda m: m.zeros(3, 2)[0, 2],
    "too many": lambda m: m.zeros(3)[0, 0],
    "no dimensions": lambda m: m.zeros(())[0],
    "slice of no dimensions": lambda m: m.zeros(())[:],
    "float": lambda m: m.zeros(3)[1.0],
    "object": lambda m: m.zeros(3)[object()],
    "text": lambda m: m.zeros(3)["a"],
    "negative step": lambda m: m.zeros(3)[::-1],
    "no step": lambda m: m.zeros(3)[::0],
    "float slice": lambda m: m.zeros(3)[1.0:],
    "float tensor": lambda m: m.zeros(3)[m.tensor([1.0])],
    "int8 tensor": lambda m: m.zeros(3)[m.tensor([1], dtype=m.int8)],
    "tensor out of bounds": lambda m: m.zeros(3)[m.tensor([5])],
    "mask of another size": lambda m: m.zeros(2, 3)[m.tensor([True, False, True])],
    "mask of another size, second": lambda m: m.zeros(2, 3)[:, m.tensor([True, False])],
    "index tensors of two sizes": lambda m: m.zeros(4, 4)[m.tensor([0, 1]), m.tensor([0, 1, 2])],
    "iteration": lambda m: list(m.zeros(())),
    "set out of bounds": lambda m: m.zeros(3).__setitem__(5, 1),
    "set list": lambda m: m.zeros(3).__setitem__(0, [1]),
    "set array": lambda m: m.zeros(3).__setitem__(0, np.ones(1)),
    "set NumPy number": lambda m: m.zeros(3).__setitem__(0, np.float32(1)),
    "set complex": lambda m: m.zeros(3).__setitem__(0, 1j),
    "set more dimensions": lambda m: m.zeros(3).__setitem__(slice(None), m.zeros(2, 3)),
    "set another size": lambda m: m.zeros(3).__setitem__(slice(None), m.zeros(2)),
    "set another dtype": lambda m: m.zeros(3).__setitem__(m.tensor([0]), m.zeros(1, dtype=m.float64)),
    "set another size by index": lambda m: m.zeros(3).__setitem__(m.tensor([0, 1]), m.zeros(3)),
    "set a leaf": lambda m: m.zeros(3, requires_grad=True).__setitem__(0, 1),
    "set a leaf, whole": lambda m: m.zeros(3, requires_grad=True).__setitem__(..., 1),
    "set a leaf by index": lambda m: m.zeros(3, requires_grad=True).__setitem__(m.tensor([0]), 1),
    "set expanded": lambda m: m.zeros(1).expand(3).__setitem__(slice(None), m.zeros(3)),
    "index_put None": lambda m: m.zeros(3, 2).index_put((None, m.tensor([0])), m.zeros(3)),
    "index_select": lambda m: m.zeros(3).index_select(0, m.tensor([3])),
    "index_select by floats": lambda m: m.zeros(3).index_select(0, m.tensor([1.0])),
    "index_add": lambda m: m.zeros(3).index_add(0, m.tensor([0, 1]), m.zeros(3)),
    "index_copy": lambda m: m.zeros(3).index_copy(0, m.tensor([0, 1]), m.zeros(3)),
    "index_put": lambda m: m.zeros(3).index_put((m.tensor([0]), m.tensor([0])), m.zeros(())),
    "take": lambda m: m.zeros(3).take(m.tensor([3])),
    "unravel_index": lambda m: m.unravel_index(m.tensor([1.0]), (2, 2)),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name, same_error):
    same_error(ERRORS[name], words=2)
