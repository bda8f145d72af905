"""How gradients reach .grad: ownership, dtype, shape, retain_grad and assignment (statements 25 to 28)."""

from __future__ import annotations

import copy
import warnings

import pytest

from tests.semantics.helpers import leaf, quiet_grad


def quiet_create_graph(y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        y.backward(create_graph=True)


# 25: taking over, adding, never aliasing
def test_a_gradient_someone_else_holds_is_copied(engine):
    x = leaf(engine, 1.0, 2.0)
    seed = engine.tensor([3.0, 4.0])
    x.backward(seed)
    assert x.grad is not seed
    seed.zero_()
    assert x.grad.tolist() == [3.0, 4.0]


def test_existing_grad_is_added_to_in_place(engine):
    x = leaf(engine, 1.0)
    (x * 2).sum().backward()
    grad = x.grad
    before = grad._version
    (x * 3).sum().backward()
    assert x.grad is grad
    assert grad.tolist() == [5.0]
    assert grad._version == before + 1


def test_a_grad_the_user_assigned_is_added_to_in_place(engine):
    x = leaf(engine, 1.0)
    mine = engine.tensor([10.0])
    x.grad = mine
    (x * 2).sum().backward()
    assert x.grad is mine
    assert mine.tolist() == [12.0]


def test_with_create_graph_a_new_tensor_takes_the_place(engine):
    x = leaf(engine, 2.0)
    (x * 2).sum().backward()
    old = x.grad
    quiet_create_graph((x**2).sum())
    assert x.grad is not old
    assert old.tolist() == [2.0]
    assert x.grad.tolist() == [6.0]
    assert x.grad.requires_grad
    x.grad = None


def test_grads_of_two_leaves_never_alias(engine):
    x, y = leaf(engine, 1.0), leaf(engine, 2.0)
    (x + y).backward(engine.ones(1))
    assert x.grad is not y.grad
    x.grad.add_(5)
    assert y.grad.tolist() == [1.0]


def test_grad_of_one_leaf_used_twice(engine):
    x = leaf(engine, 1.0)
    (x + x).backward(engine.ones(1))
    assert x.grad.tolist() == [2.0]


def test_autograd_grad_may_return_one_object_twice(engine):
    x, y = leaf(engine, 1.0), leaf(engine, 2.0)
    a, b = engine.autograd.grad((x + y).sum(), [x, y])
    assert a is b


def test_grad_from_a_view_of_a_gradient_owns_its_memory(engine):
    x, y = leaf(engine, 1.0, 2.0), leaf(engine, 3.0)
    engine.cat([x, y]).backward(engine.tensor([1.0, 2.0, 3.0]))
    x.grad.zero_()
    assert y.grad.tolist() == [3.0]
    z = engine.zeros(2, requires_grad=True)
    z.sum().backward()
    z.grad[0] = 5.0
    assert z.grad.tolist() == [5.0, 1.0]


def test_a_hook_that_keeps_the_gradient_keeps_its_value(engine):
    x = leaf(engine, 1.0)
    kept = []
    x.register_hook(kept.append)
    (x * 2).sum().backward()
    x.grad.add_(100)
    assert kept[0].tolist() == [2.0]


def test_zeroing_ways(engine):
    x = leaf(engine, 1.0)
    (x * 2).sum().backward()
    x.grad.zero_()
    assert x.grad.tolist() == [0.0]
    (x * 2).sum().backward()
    assert x.grad.tolist() == [2.0]
    x.grad = None
    (x * 2).sum().backward()
    assert x.grad.tolist() == [2.0]
    del x.grad
    assert x.grad is None


def test_gradient_is_no_part_of_a_graph(engine):
    x = leaf(engine, 1.0)
    (x**2).sum().backward()
    assert not x.grad.requires_grad
    assert x.grad.is_leaf
    assert x.grad.grad_fn is None


# 26: dtype and shape
def test_gradient_takes_the_leafs_dtype(engine):
    x = leaf(engine, 1.0)
    (x.double() * 2).sum().backward()
    assert x.grad.dtype == engine.float32
    d = leaf(engine, 1.0, dtype=engine.float64)
    (d.float() * 2).sum().backward()
    assert d.grad.dtype == engine.float64


def test_mixed_dtype_arithmetic(engine):
    x, d = leaf(engine, 2.0), leaf(engine, 3.0, dtype=engine.float64)
    y = (x * d).sum()
    assert y.dtype == engine.float64
    y.backward()
    assert x.grad.dtype == engine.float32
    assert d.grad.dtype == engine.float64
    assert x.grad.tolist() == [3.0]
    assert d.grad.tolist() == [2.0]


@pytest.mark.parametrize(
    ("left", "right"), [((3,), (2, 3)), ((2, 1), (1, 3)), ((), (2, 3)), ((1,), ()), ((1, 1, 3), (2, 3)), ((0,), (1,))]
)
def test_broadcast_gradients_are_summed_down(engine, left, right):
    a, b = engine.ones(left, requires_grad=True), engine.ones(right, requires_grad=True)
    y = a * b
    y.sum().backward()
    assert a.grad.shape == a.shape
    assert b.grad.shape == b.shape
    for t in (a, b):
        repeats = y.numel() / t.numel() if t.numel() else 0
        assert (t.grad == repeats).all().item()


# 27: retain_grad
def test_retain_grad_keeps_and_accumulates_out_of_place(engine):
    x = leaf(engine, 1.0)
    h = x * 2
    assert not h.retains_grad
    h.retain_grad()
    h.retain_grad()
    assert h.retains_grad
    y = (h * 3).sum()
    y.backward(retain_graph=True)
    first = h.grad
    assert first.tolist() == [3.0]
    y.backward()
    assert h.grad is not first
    assert first.tolist() == [3.0]
    assert h.grad.tolist() == [6.0]


def test_retain_grad_sees_the_last_hooks_result(engine):
    x = leaf(engine, 1.0)
    h = x * 2
    h.register_hook(lambda g: g * 10)
    h.retain_grad()
    h.register_hook(lambda g: g * 10)
    h.sum().backward()
    assert h.grad.tolist() == [100.0]
    assert x.grad.tolist() == [200.0]


def test_retain_grad_follows_an_inplace_op(engine):
    x = leaf(engine, 1.0)
    h = x * 2
    h.retain_grad()
    h.mul_(5)
    (h * 3).sum().backward()
    assert h.grad.tolist() == [3.0]
    assert x.grad.tolist() == [30.0]


def test_retain_grad_on_leaves_and_constants(engine, raises):
    x = leaf(engine, 1.0)
    x.retain_grad()
    assert not x.retains_grad
    with raises(RuntimeError, "can't retain_grad on Tensor that has requires_grad=False"):
        engine.ones(1).retain_grad()


def test_retained_grad_is_not_filled_by_autograd_grad_elsewhere(engine):
    x = leaf(engine, 1.0)
    h = x * 2
    h.retain_grad()
    engine.autograd.grad((h * 3).sum(), x)
    # The way to x goes through h, so its retain hook does fire.
    assert h.grad.tolist() == [3.0]


# 28: reading and assigning .grad
def test_reading_grad_of_a_nonleaf_warns(engine):
    h = leaf(engine, 1.0) * 2
    with pytest.warns(UserWarning, match="The .grad attribute of a Tensor that is not a leaf Tensor is being accessed"):
        assert h.grad is None
    h.retain_grad()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert h.grad is None
        assert leaf(engine, 1.0).grad is None
        assert engine.ones(1).grad is None


def test_nonleaf_grad_stays_none(engine):
    x = leaf(engine, 1.0)
    h = x * 2
    h.sum().backward()
    assert quiet_grad(h) is None


def test_assigning_a_wrong_grad(engine, raises):
    x = leaf(engine, 1.0, 2.0)
    with raises(RuntimeError, "attempting to assign a gradient of size '[3]' to a tensor of size '[2]'"):
        x.grad = engine.ones(3)
    with raises(RuntimeError, "attempting to assign a gradient with dtype 'double' to a tensor with"):
        x.grad = engine.ones(2, dtype=engine.float64)
    with raises(TypeError, "assigned grad expected to be a Tensor or None but got grad of type"):
        x.grad = 3.0
    with raises(RuntimeError, "can't assign Variable as its own grad"):
        x.grad = x
    assert x.grad is None


def test_assigning_a_right_grad(engine):
    x = leaf(engine, 1.0, 2.0)
    grad = engine.ones(2)
    x.grad = grad
    assert x.grad is grad
    plain = engine.zeros(2)
    plain.grad = grad
    assert plain.grad is grad


def test_deepcopy_of_leaves_and_nonleaves(engine, raises):
    x = leaf(engine, 1.0)
    (x * 2).sum().backward()
    twin = copy.deepcopy(x)
    assert twin is not x
    assert twin.requires_grad
    assert twin.grad.tolist() == [2.0]
    twin.grad.zero_()
    assert x.grad.tolist() == [2.0]
    with raises(RuntimeError, "Only Tensors created explicitly by the user (graph leaves) support the deepcopy"):
        copy.deepcopy(x * 2)
