"""Errors at the door of backward() and grad(), and what is let in silently (statements 16 and 17)."""

from __future__ import annotations

import pytest

from tests.semantics.helpers import NO_GRAD_FN, NOT_SCALAR, leaf


# 16, in the order of the checks
def test_empty_inputs(engine, raises):
    x = leaf(engine, 1.0)
    with raises(RuntimeError, "`inputs` argument to `backward()` cannot be empty."):
        engine.autograd.backward(x.sum(), inputs=[])
    with raises(RuntimeError, "`inputs` argument to `backward()` cannot be empty."):
        x.sum().backward(inputs=[])
    with raises(RuntimeError, "`inputs` argument to `grad()` cannot be empty."):
        engine.autograd.grad(x.sum(), [])


def test_empty_inputs_come_before_everything(engine, raises):
    with raises(RuntimeError, "`inputs` argument to `backward()` cannot be empty."):
        engine.ones(3).backward(engine.ones(2), inputs=[])


def test_gradient_of_the_wrong_shape(engine, raises):
    x = leaf(engine, 1.0, 2.0)
    with raises(RuntimeError, "Mismatch in shape: grad_output[0] has a shape of") as error:
        x.sum().backward(engine.ones(3))
    assert "output[0] has a shape of" in error.text
    with raises(RuntimeError, "Mismatch in shape: grad_output[0] has a shape of"):
        (x * 2).backward(engine.ones(1))
    # torch stumbles over its own message when the second of several gradients is wrong: only the type is certain.
    with raises(RuntimeError):
        engine.autograd.backward([x.sum(), x * 2], [engine.ones(()), engine.ones(3)])


def test_wrong_shape_comes_before_no_grad_fn(engine, raises):
    with raises(RuntimeError, "Mismatch in shape"):
        engine.ones(2).backward(engine.ones(3))


def test_number_of_gradients(engine, raises):
    x = leaf(engine, 1.0)
    with raises(RuntimeError, "got 2 tensors and 1 gradients"):
        engine.autograd.backward([x.sum(), x.sum()], [engine.ones(())])


def test_implicit_gradient_only_for_scalars(engine, raises):
    x = leaf(engine, 1.0, 2.0)
    with raises(RuntimeError, NOT_SCALAR):
        (x * 2).backward()
    with raises(RuntimeError, NOT_SCALAR):
        engine.autograd.grad(x * 2, x)


@pytest.mark.parametrize("shape", [(), (1,), (1, 1), (1, 1, 1)])
def test_one_element_of_any_shape_suffices(engine, shape):
    x = engine.full(shape, 3.0, requires_grad=True)
    (x * x).backward()
    assert x.grad.shape == x.shape
    assert x.grad.item() == 6.0


def test_scalar_check_is_only_for_outputs_that_require_grad(engine, raises):
    with raises(RuntimeError, NO_GRAD_FN):
        engine.ones(3).backward()


def test_scalar_check_of_a_later_output_comes_before_no_grad_fn_of_an_earlier(engine, raises):
    x = leaf(engine, 1.0, 2.0)
    with raises(RuntimeError, NOT_SCALAR):
        engine.autograd.backward([engine.ones(3), x * 2])
    with raises(RuntimeError, NO_GRAD_FN):
        engine.autograd.backward([engine.ones(3), x.sum()])


def test_no_grad_fn_names_the_element(engine, raises):
    x = leaf(engine, 1.0, 2.0)
    with raises(RuntimeError, "element 1 of tensors does not require grad and does not have a grad_fn"):
        engine.autograd.backward([x.sum(), engine.ones(())])


def test_no_grad_fn(engine, raises):
    for y in (engine.ones(()), leaf(engine, 1.0).detach().sum()):
        with raises(RuntimeError, NO_GRAD_FN):
            y.backward()
    with engine.no_grad():
        y = leaf(engine, 1.0).sum()
    with raises(RuntimeError, NO_GRAD_FN):
        y.backward()
    with raises(RuntimeError, NO_GRAD_FN):
        engine.autograd.grad(engine.ones(()), leaf(engine, 1.0))


def test_nothing_is_accumulated_when_the_door_stays_shut(engine, raises):
    x = leaf(engine, 1.0, 2.0)
    with raises(RuntimeError, NO_GRAD_FN):
        engine.autograd.backward([x.sum(), engine.ones(())][::-1])
    assert x.grad is None


def test_gradient_must_be_a_tensor(engine):
    x = leaf(engine, 1.0)
    with pytest.raises(TypeError):
        x.sum().backward(3.0)
    with pytest.raises(TypeError):
        engine.autograd.grad(x.sum(), x, grad_outputs=["one"])


def test_real_scalars_only(engine, raises):
    if not hasattr(engine, "complex64"):
        pytest.skip("this engine has no complex numbers")
    x = leaf(engine, 1.0)
    with raises(RuntimeError, "grad can be implicitly created only for real scalar outputs but got"):
        (x.sum() * 1j).backward()


# 17
@pytest.mark.parametrize("name", ["float64", "float16", "int64", "int32", "bool"])
def test_gradient_of_another_dtype_is_cast(engine, name):
    x = leaf(engine, 1.0, 2.0)
    (x * 2).backward(engine.ones(2, dtype=getattr(engine, name)))
    assert x.grad.dtype == engine.float32
    assert x.grad.tolist() == [2.0, 2.0]


def test_backward_works_inside_no_grad(engine):
    x = leaf(engine, 2.0)
    y = (x * x).sum()
    with engine.no_grad():
        y.backward()
    assert x.grad.tolist() == [4.0]
    y = (x * x).sum()
    with engine.no_grad():
        (g,) = engine.autograd.grad(y, x)
    assert g.tolist() == [4.0]


def test_create_graph_wins_over_no_grad(engine):
    x = leaf(engine, 2.0)
    y = (x**3).sum()
    with engine.no_grad():
        (g,) = engine.autograd.grad(y, x, create_graph=True)
    assert g.requires_grad


def test_backward_of_nothing_is_nothing(engine):
    engine.autograd.backward([])


def test_backward_on_a_leaf_itself(engine):
    x = leaf(engine, 2.0)
    x.backward()
    assert x.grad.tolist() == [1.0]
    x.backward(engine.tensor([5.0]))
    assert x.grad.tolist() == [6.0]


def test_none_as_gradient_means_ones(engine):
    x = leaf(engine, 2.0)
    (x * 3).sum().backward(None)
    engine.autograd.backward([(x * 3).sum()], [None])
    assert x.grad.tolist() == [6.0]


def test_explicit_gradient_is_not_modified(engine):
    x = leaf(engine, 2.0)
    seed = engine.tensor([10.0])
    x.backward(seed)
    x.backward(seed)
    assert seed.tolist() == [10.0]
    assert x.grad.tolist() == [20.0]


def test_explicit_gradient_with_history_under_create_graph(engine):
    x, seed = leaf(engine, 2.0), leaf(engine, 5.0)
    (g,) = engine.autograd.grad(x * x, x, grad_outputs=seed, create_graph=True)
    (gs,) = engine.autograd.grad(g.sum(), seed)
    assert gs.tolist() == [4.0]
