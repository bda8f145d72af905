"""Matrix products and einsum against real torch: values, gradients of both orders, nodes, what is freed, errors."""
from __future__ import annotations

import numpy as np
import pytest

import rushlight
from tests.ops.comparing import check, leaf, node_name, plain, second_backward

torch = pytest.importorskip("torch", reason="these tests compare with real torch")

GENERATOR = np.random.default_rng(11)


def draw(*shape: int, dtype: type = np.float64) -> np.ndarray:
    values = GENERATOR.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        values = values + 1j * GENERATOR.standard_normal(shape)
    return values.astype(dtype)


RANKS = [((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 4)), ((2, 3), (3, 4)), ((5, 2, 3), (3, 4)), ((5, 2, 3), (5, 3, 4)),
         ((2, 3), (5, 3, 4)), ((5, 2, 3), (3,)), ((3,), (5, 3, 4)), ((1, 2, 3), (5, 3, 4)), ((6, 1, 2, 3), (5, 3, 4)),
         ((6, 5, 2, 3), (3, 4)), ((2, 0), (0, 3)), ((0, 3), (3, 2)), ((4, 0, 3), (3, 2))]


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
@pytest.mark.parametrize("first, second", RANKS)
def test_matmul_of_all_ranks(first, second, dtype):
    check(torch, rushlight, lambda m, a, b: a @ b, draw(*first, dtype=dtype), draw(*second, dtype=dtype))


@pytest.mark.parametrize("first, second", RANKS[:2] + [RANKS[3], RANKS[4], RANKS[5]])
def test_matmul_nodes_have_torchs_names(first, second):
    a, b = draw(*first), draw(*second)
    names = {node_name(m.matmul(leaf(m, a), leaf(m, b))) for m in (torch, rushlight)}
    assert len(names) == 1


PRODUCTS = {
    "mm": (lambda m, a, b: m.mm(a, b), (2, 3), (3, 4)),
    "mm of a transposed": (lambda m, a, b: m.mm(a.t(), b), (3, 2), (3, 4)),
    "bmm": (lambda m, a, b: m.bmm(a, b), (5, 2, 3), (5, 3, 4)),
    "mv": (lambda m, a, b: a.mv(b), (2, 3), (3,)),
    "dot": (lambda m, a, b: a.dot(b), (4,), (4,)),
    "vdot": (lambda m, a, b: m.vdot(a, b), (4,), (4,)),
    "outer": (lambda m, a, b: m.outer(a, b), (3,), (4,)),
    "ger": (lambda m, a, b: a.ger(b), (3,), (4,)),
    "inner": (lambda m, a, b: m.inner(a, b), (2, 3), (4, 3)),
    "kron": (lambda m, a, b: m.kron(a, b), (2, 3), (4, 1, 2)),
    "tensordot": (lambda m, a, b: m.tensordot(a, b, 2), (2, 3, 4), (3, 4, 5)),
    "tensordot of lists": (lambda m, a, b: m.tensordot(a, b, dims=([0, 2], [1, 0])), (2, 3, 4), (4, 2, 5)),
    "chain_matmul": (lambda m, a, b: m.chain_matmul(a, b, a.t(), a), (2, 3), (3, 3)),
    "linear": (lambda m, a, b: m.nn.functional.linear(a, b), (2, 3), (4, 3)),
    "linear of a stack": (lambda m, a, b: m.nn.functional.linear(a, b), (5, 2, 3), (4, 3)),
    "linear of a vector": (lambda m, a, b: m.nn.functional.linear(a, b), (3,), (4, 3)),
    "reflected": (lambda m, a, b: b.__rmatmul__(a), (2, 3), (3, 4)),
}


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
@pytest.mark.parametrize("name", PRODUCTS)
def test_products(name, dtype):
    expression, *shapes = PRODUCTS[name]
    check(torch, rushlight, expression, *(draw(*shape, dtype=dtype) for shape in shapes))


THREE = {
    "addmm": (lambda m, c, a, b, **k: m.addmm(c, a, b, **k), (4,), (2, 3), (3, 4)),
    "addmm of full": (lambda m, c, a, b, **k: c.addmm(a, b, **k), (2, 4), (2, 3), (3, 4)),
    "addmv": (lambda m, c, a, b, **k: m.addmv(c, a, b, **k), (2,), (2, 3), (3,)),
    "addr": (lambda m, c, a, b, **k: m.addr(c, a, b, **k), (1, 4), (2,), (4,)),
    "baddbmm": (lambda m, c, a, b, **k: m.baddbmm(c, a, b, **k), (5, 1, 4), (5, 2, 3), (5, 3, 4)),
    "addbmm": (lambda m, c, a, b, **k: m.addbmm(c, a, b, **k), (2, 4), (5, 2, 3), (5, 3, 4)),
}


@pytest.mark.parametrize("options", [{}, {"beta": 0.5, "alpha": 2}, {"beta": 0}])
@pytest.mark.parametrize("name", THREE)
def test_products_that_add(name, options):
    expression, *shapes = THREE[name]
    check(torch, rushlight, lambda m, c, a, b: expression(m, c, a, b, **options), *(draw(*shape) for shape in shapes))


def test_complex_factors_are_conjugated_in_gradients():
    check(torch, rushlight, lambda m, c, a, b: m.addmm(c, a, b, beta=1 + 2j, alpha=0.5 - 1j),
          *(draw(*shape, dtype=np.complex128) for shape in ((2, 4), (2, 3), (3, 4))))


def test_beta_zero_ignores_what_is_not_a_number():
    found = rushlight.addmm(rushlight.full((2, 2), float("nan")), rushlight.ones(2, 3), rushlight.ones(3, 2), beta=0)
    np.testing.assert_array_equal(plain(found), np.full((2, 2), 3.0))


def test_in_place_products():
    check(torch, rushlight, lambda m, c, a, b: (c * 1).addmm_(a, b, alpha=2), draw(2, 4), draw(2, 3), draw(3, 4))
    check(torch, rushlight, lambda m, c, a, b: (c * 1).baddbmm_(a, b), draw(5, 2, 4), draw(5, 2, 3), draw(5, 3, 4))


# -- linear ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("shape", [(3,), (2, 3), (5, 2, 3), (6, 5, 2, 3), (0, 3), (2, 0, 3)])
def test_linear_with_bias(shape):
    check(torch, rushlight, lambda m, x, w, b: m.nn.functional.linear(x, w, b), draw(*shape), draw(4, 3), draw(4))


@pytest.mark.parametrize("bias", [(1,), (), (2, 4)])
def test_linear_with_a_bias_that_broadcasts(bias):
    check(torch, rushlight, lambda m, x, w, b: m.nn.functional.linear(x, w, b), draw(2, 3), draw(4, 3), draw(*bias))


@pytest.mark.parametrize("shape, biased, name", [
    ((2, 3), True, "AddmmBackward0"), ((2, 3), False, "MmBackward0"), ((5, 2, 3), True, "ViewBackward0"),
    ((5, 2, 3), False, "UnsafeViewBackward0")])
def test_linear_nodes(shape, biased, name):
    x, w, b = draw(*shape), draw(4, 3), draw(4)
    for m in (torch, rushlight):
        made = m.nn.functional.linear(leaf(m, x), leaf(m, w), leaf(m, b) if biased else None)
        assert node_name(made) == name


@pytest.mark.parametrize("needing", [(0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2)])
def test_linear_gradients_for_every_choice_of_what_needs_one(needing):
    arrays = draw(5, 3), draw(4, 3), draw(4)

    def run(m):
        tensors = [m.tensor(a, requires_grad=i in needing) for i, a in enumerate(arrays)]
        (m.nn.functional.linear(*tensors) ** 2).sum().backward()
        return [None if t.grad is None else plain(t.grad) for t in tensors]

    for found, wanted in zip(run(rushlight), run(torch), strict=True):
        assert (found is None) == (wanted is None)
        if wanted is not None:
            np.testing.assert_allclose(found, wanted)


def test_only_the_needed_side_is_saved():
    x, w = rushlight.randn(2, 3), rushlight.randn(4, 3, requires_grad=True)
    made = rushlight.nn.functional.linear(x, w)
    with rushlight.no_grad():
        w.mul_(2)  # not saved, since x needs no gradient: no complaint
    made.sum().backward()
    made = rushlight.nn.functional.linear(x, w)
    x.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        made.sum().backward()


@pytest.mark.parametrize("name, expression", {
    "matmul": lambda m, x: x @ m.ones(4, 2, dtype=m.float64),
    "linear": lambda m, x: m.nn.functional.linear(x, m.ones(2, 4, dtype=m.float64)),
    "bias alone": lambda m, x: m.nn.functional.linear(m.ones(3, 3, 4, dtype=m.float64), m.ones(4, 4, dtype=m.float64),
                                                      x[0]),
    "addmm, added alone": lambda m, x: m.addmm(x, m.ones(3, 2, dtype=m.float64), m.ones(2, 4, dtype=m.float64)),
    "addmm": lambda m, x: m.addmm(m.ones(2, dtype=m.float64), x, m.ones(4, 2, dtype=m.float64)),
    "mv": lambda m, x: x.mv(m.ones(4, dtype=m.float64)),
}.items())
def test_which_products_may_run_backward_twice(name, expression):
    values = draw(3, 4)
    assert second_backward(rushlight, expression, values) == second_backward(torch, expression, values)


def test_the_gradient_of_a_weight_lies_as_the_weight_does():
    x, w, b = rushlight.randn(8, 5), rushlight.randn(6, 5, requires_grad=True), rushlight.randn(6, requires_grad=True)
    rushlight.nn.functional.linear(x, w, b).sum().backward()
    assert w.grad.is_contiguous() and w.grad.dtype is rushlight.float32 and b.grad.dtype is rushlight.float32


@pytest.mark.parametrize("expression", [lambda m, a, b: a @ b, lambda m, a, b: m.nn.functional.linear(a, b.t()),
                                        lambda m, a, b: a[None] @ b, lambda m, a, b: m.bmm(a[None], b[None])])
def test_half_precision(expression):
    check(torch, rushlight, expression, draw(3, 4, dtype=np.float16), draw(4, 2, dtype=np.float16), second=False,
          rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize("dtype", [np.int64, np.int32])
def test_integers(dtype):
    a, b = np.arange(6, dtype=dtype).reshape(2, 3), np.arange(12, dtype=dtype).reshape(3, 4)
    check(torch, rushlight, lambda m, a, b: a @ b, a, b)
    check(torch, rushlight, lambda m, a, b: m.einsum("ij,jk->ik", a, b), a, b)


def test_out():
    a, b = draw(2, 3), draw(3, 4)
    for function in ("mm", "matmul"):
        out = rushlight.empty(2, 4, dtype=rushlight.float64)
        assert getattr(rushlight, function)(rushlight.tensor(a), rushlight.tensor(b), out=out) is out
        np.testing.assert_allclose(plain(out), a @ b)


ERRORS = {
    "mm of a vector": lambda m: m.mm(m.ones(3), m.ones(3, 4)),
    "mm of sizes": lambda m: m.mm(m.ones(2, 3), m.ones(4, 5)),
    "mm of dtypes": lambda m: m.mm(m.ones(2, 3), m.ones(3, 4, dtype=m.float64)),
    "matmul of sizes": lambda m: m.ones(2, 3) @ m.ones(4, 5),
    "matmul of batches": lambda m: m.ones(5, 2, 3) @ m.ones(4, 3, 4),
    "matmul of inner sizes": lambda m: m.ones(5, 2, 3) @ m.ones(5, 4, 4),
    "matmul of a number": lambda m: m.matmul(m.ones(2, 3), 3.0),
    "matmul of scalars": lambda m: m.ones(()) @ m.ones(3),
    "matmul of bool": lambda m: m.ones(2, 2, dtype=m.bool) @ m.ones(2, 2, dtype=m.bool),
    "dot of sizes": lambda m: m.dot(m.ones(2), m.ones(3)),
    "dot of matrices": lambda m: m.dot(m.ones(2, 3), m.ones(3)),
    "dot of dtypes": lambda m: m.dot(m.ones(3), m.ones(3, dtype=m.float64)),
    "mv of sizes": lambda m: m.mv(m.ones(2, 3), m.ones(4)),
    "mv of vectors": lambda m: m.mv(m.ones(2), m.ones(4)),
    "bmm of matrices": lambda m: m.bmm(m.ones(2, 3), m.ones(2, 3)),
    "bmm of sizes": lambda m: m.bmm(m.ones(2, 3, 4), m.ones(2, 3, 4)),
    "bmm of dtypes": lambda m: m.bmm(m.ones(2, 3, 3), m.ones(2, 3, 3, dtype=m.float64)),
    "linear of sizes": lambda m: m.nn.functional.linear(m.ones(2, 3), m.ones(4, 5)),
    "linear of stacked sizes": lambda m: m.nn.functional.linear(m.ones(5, 2, 3), m.ones(4, 5)),
    "linear of a wrong bias": lambda m: m.nn.functional.linear(m.ones(2, 3), m.ones(4, 3), m.ones(5)),
    "addmm of a wrong sum": lambda m: m.addmm(m.ones(5), m.ones(2, 3), m.ones(3, 4)),
    "einsum, repeated output": lambda m: m.einsum("ij->iji", m.ones(2, 3)),
    "einsum, unknown output": lambda m: m.einsum("ij->ik", m.ones(2, 3)),
    "einsum, sizes": lambda m: m.einsum("ij,jk", m.ones(2, 3), m.ones(4, 3)),
    "einsum, a stray dot": lambda m: m.einsum("ij.k", m.ones(2, 3)),
    "einsum, too few letters": lambda m: m.einsum("ij", m.ones(2, 3, 4)),
    "einsum, a digit": lambda m: m.einsum("i1", m.ones(2, 3)),
    "einsum, a crooked diagonal": lambda m: m.einsum("ii", m.ones(2, 3)),
    "einsum, too few operands": lambda m: m.einsum("ij,jk,kl", m.ones(2, 3), m.ones(3, 4)),
    "einsum, too many operands": lambda m: m.einsum("ij", m.ones(2, 3), m.ones(3, 3)),
    "einsum, no tensor": lambda m: m.einsum("ij", 3),
    "einsum, a large label": lambda m: m.einsum(m.ones(2, 2), [0, 60]),
    "tensordot": lambda m: m.tensordot(m.ones(2, 3), m.ones(2, 3), 1),
    "inner": lambda m: m.inner(m.ones(2, 3), m.ones(2, 4)),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name, same_error):
    same_error(ERRORS[name], 4)


# -- einsum ----------------------------------------------------------------------------------------------------------
EQUATIONS = [
    ("ij,jk->ik", (2, 3), (3, 4)), ("ij,jk", (2, 3), (3, 4)), ("ii->i", (3, 3)), ("ii", (3, 3)), ("ij->ji", (2, 3)),
    ("bij,bjk->bik", (5, 2, 3), (5, 3, 4)), ("...ij,...jk->...ik", (6, 5, 2, 3), (5, 3, 4)), ("i,j->ij", (2,), (3,)),
    ("i,i", (3,), (3,)), ("ij,kl,jk->il", (2, 3), (4, 5), (3, 4)),
    ("abc,cd,de,ea->b", (2, 3, 4), (4, 5), (5, 6), (6, 2)),
    ("iij,jk->ik", (3, 3, 2), (2, 4)), ("ij,ij->", (2, 3), (2, 3)), ("b h w, b h w -> b", (2, 3, 4), (2, 3, 4)),
    ("ij,jk->ik", (2, 1), (3, 4)), ("ij,jk->ik", (1, 3), (3, 4)), ("bn,anm,bm->ba", (2, 4), (5, 4, 3), (2, 3)),
    ("...ii->...i", (2, 3, 3)), ("Ab,bA", (2, 3), (3, 2)), ("aB,Bc", (2, 3), (3, 4)), ("...,...->...", (2, 3), (3,)),
    ("i...,i...->...", (2, 3), (2, 3)), ("ij,jk->ijk", (2, 3), (3, 4)), ("i->", (3,)), (",->", (), ()),
    ("i,i,i,i->i", (3,), (3,), (3,), (3,)), ("ij,jk", (2, 0), (0, 3)), ("iiii->i", (3, 3, 3, 3)),
    ("ijij->ij", (2, 3, 2, 3)), ("bhqd,bhkd->bhqk", (2, 3, 4, 5), (2, 3, 6, 5)), ("...a->...", (2, 3))]


@pytest.mark.parametrize("equation, shapes", [(one[0], one[1:]) for one in EQUATIONS])
def test_einsum(equation, shapes):
    check(torch, rushlight, lambda m, *operands: m.einsum(equation, *operands), *(draw(*shape) for shape in shapes))


def test_einsum_with_lists_of_numbers():
    check(torch, rushlight, lambda m, a, b: m.einsum(a, [0, 1, ...], b, [1, 2], [..., 2, 0]), draw(2, 3, 5), draw(3, 4))
    check(torch, rushlight, lambda m, a, b: m.einsum(a, [0, 1], b, [1, 2]), draw(2, 3), draw(3, 4))
    check(torch, rushlight, lambda m, a, b: m.einsum("ij,jk", [a, b]), draw(2, 3), draw(3, 4))


def test_einsum_with_complex_numbers():
    check(torch, rushlight, lambda m, a, b, c: m.einsum("ij,kj,kl->il", a, b, c),
          *(draw(*shape, dtype=np.complex128) for shape in ((2, 3), (4, 3), (4, 5))))
