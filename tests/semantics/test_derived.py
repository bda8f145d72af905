"""What is built on both modes: forward_ad, autograd.functional, gradcheck."""

from __future__ import annotations

import pytest

from tests.semantics.helpers import leaf, submodule


@pytest.fixture
def forward_ad(engine):
    return submodule(engine, "autograd.forward_ad")


@pytest.fixture
def functional(engine):
    return submodule(engine, "autograd.functional")


# forward mode
def test_dual_numbers(engine, forward_ad):
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(engine.tensor([2.0]), engine.tensor([1.0]))
        result = forward_ad.unpack_dual(dual * dual + 3)
        assert result.primal.tolist() == [7.0]
        assert result.tangent.tolist() == [4.0]
        assert forward_ad.unpack_dual(engine.ones(1)).tangent is None
        assert forward_ad.unpack_dual(dual.detach()).tangent is None
    assert forward_ad.unpack_dual(dual).tangent is None


FORWARD_CASES = {
    "exp": (lambda x: x.exp(), lambda x: x.exp()),
    "sin": (lambda x: x.sin(), lambda x: x.cos()),
    "square": (lambda x: x**2, lambda x: 2 * x),
    "reciprocal": (lambda x: 1 / x, lambda x: -1 / (x * x)),
    "log": (lambda x: x.log(), lambda x: 1 / x),
    "tanh": (lambda x: x.tanh(), lambda x: 1 - x.tanh() ** 2),
    "view": (lambda x: x.view(1, 1)[0], lambda x: x * 0 + 1),
}


@pytest.mark.parametrize("name", FORWARD_CASES)
def test_tangents(engine, forward_ad, name):
    function, derivative = FORWARD_CASES[name]
    x = engine.tensor([0.7])
    with forward_ad.dual_level():
        tangent = forward_ad.unpack_dual(function(forward_ad.make_dual(x, engine.tensor([2.0])))).tangent
    assert engine.allclose(tangent, 2 * derivative(x))


def test_forward_mode_inside_no_grad_and_in_place(engine, forward_ad):
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(engine.tensor([2.0]), engine.tensor([1.0]))
        with engine.no_grad():
            assert forward_ad.unpack_dual(dual * 3).tangent.tolist() == [3.0]
        a = engine.ones(1)
        a.mul_(dual)
        assert forward_ad.unpack_dual(a).tangent.tolist() == [1.0]


def test_forward_over_reverse(engine, forward_ad):
    x = leaf(engine, 3.0)
    with forward_ad.dual_level():
        tangent = forward_ad.unpack_dual(forward_ad.make_dual(x, engine.ones(1)) ** 3).tangent
        assert tangent.tolist() == [27.0]
        (g,) = engine.autograd.grad(tangent.sum(), x)
    assert g.tolist() == [18.0]


def test_forward_mode_errors(engine, forward_ad, raises):
    with raises(RuntimeError, "Trying to create a dual Tensor for forward AD but no level exists"):
        forward_ad.make_dual(engine.ones(1), engine.ones(1))
    with forward_ad.dual_level():
        with raises(RuntimeError, "Trying to set a forward gradient that has a different size"):
            forward_ad.make_dual(engine.ones(2), engine.ones(3))
        with raises(ValueError, "Expected primal to be floating point or complex"):
            forward_ad.make_dual(engine.ones(1, dtype=engine.int64), engine.ones(1))
        with raises(RuntimeError, "Nested forward mode AD is not supported at the moment"), forward_ad.dual_level():
            pass


# autograd.functional
def test_vjp_and_jvp(engine, functional):
    x, v = engine.tensor([1.0, 2.0]), engine.tensor([1.0, 10.0])
    for call in (functional.vjp, functional.jvp):
        value, product = call(lambda t: t**2, x, v)
        assert value.tolist() == [1.0, 4.0]
        assert product.tolist() == [2.0, 40.0]
        assert not product.requires_grad


def test_vjp_wants_its_vector(engine, functional, raises):
    x = engine.tensor([1.0, 2.0])
    with raises(RuntimeError, "The vector v can only be None if"):
        functional.vjp(lambda t: t**2, x)
    with raises(RuntimeError, "v has invalid size"):
        functional.vjp(lambda t: t**2, x, engine.ones(3))
    assert functional.vjp(lambda t: (t**2).sum(), x)[1].tolist() == [2.0, 4.0]


def test_jacobian(engine, functional):
    x, y = engine.tensor([1.0, 2.0]), engine.tensor([3.0, 4.0])
    assert functional.jacobian(lambda t: t**2, x).tolist() == [[2.0, 0.0], [0.0, 4.0]]
    rows = functional.jacobian(lambda a, b: (a * b, a + b), (x, y))
    assert [[block.tolist() for block in row] for row in rows] == [
        [[[3.0, 0.0], [0.0, 4.0]], [[1.0, 0.0], [0.0, 2.0]]],
        [[[1.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [0.0, 1.0]]],
    ]


@pytest.mark.parametrize("strategy", ["reverse-mode", "forward-mode"])
def test_vectorized_jacobian(engine, functional, strategy):
    x = engine.tensor([1.0, 2.0])
    result = functional.jacobian(lambda t: t**2, x, vectorize=True, strategy=strategy)
    assert result.tolist() == [[2.0, 0.0], [0.0, 4.0]]


def test_jacobian_keeps_history_on_request(engine, functional):
    x = leaf(engine, 1.0, 2.0)
    assert not functional.jacobian(lambda t: t**2, x).requires_grad
    kept = functional.jacobian(lambda t: t**2, x, create_graph=True)
    (g,) = engine.autograd.grad(kept.sum(), x)
    assert g.tolist() == [2.0, 2.0]


def test_jacobian_of_a_constant(engine, functional, raises):
    x = engine.ones(2)
    assert functional.jacobian(lambda t: engine.ones(2), x).tolist() == [[0.0, 0.0], [0.0, 0.0]]
    with raises(RuntimeError, "Output 0 of the user-provided function does not require gradients"):
        functional.jacobian(lambda t: engine.ones(2), x, strict=True)
    with raises(TypeError, "The outputs of the user-provided function given to jacobian must be"):
        functional.jacobian(lambda t: 3, x)


def test_hessian_and_products(engine, functional, raises):
    x, v = engine.tensor([1.0, 2.0]), engine.ones(2)

    def cube(t):
        return (t**3).sum()

    assert functional.hessian(cube, x).tolist() == [[6.0, 0.0], [0.0, 12.0]]
    for call in (functional.hvp, functional.vhp):
        value, product = call(cube, x, v)
        assert value.item() == 9.0
        assert product.tolist() == [6.0, 12.0]
    with raises(RuntimeError, "The Tensor returned by the function given to hessian should contain a single element"):
        functional.hessian(lambda t: t**3, x)


# gradcheck
def double_leaf(engine):
    return engine.tensor([0.3, 0.7], dtype=engine.float64, requires_grad=True)


def test_gradcheck_accepts_right_gradients(engine):
    assert engine.autograd.gradcheck(lambda t: t.exp() * t, (double_leaf(engine),))
    assert engine.autograd.gradgradcheck(lambda t: t.exp() * t, (double_leaf(engine),))
    assert engine.autograd.gradcheck(lambda a, b: a @ b, (double_leaf(engine), double_leaf(engine)))


def test_gradcheck_refuses_wrong_gradients(engine, raises):
    class Wrong(engine.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 3

    with raises(RuntimeError, "Jacobian mismatch for output 0 with respect to input 0"):
        engine.autograd.gradcheck(Wrong.apply, (double_leaf(engine),))
    assert engine.autograd.gradcheck(Wrong.apply, (double_leaf(engine),), raise_exception=False) is False


def test_gradcheck_wants_an_input_that_requires_grad(engine, raises):
    with raises(ValueError, "gradcheck expects at least one input tensor to require gradient"):
        engine.autograd.gradcheck(lambda t: t.exp(), (engine.ones(2, dtype=engine.float64),))
