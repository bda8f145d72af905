"""In-place writes on leaves, views and their bases, detach_, expand and out= (statements 21 to 24)."""

from __future__ import annotations

import pytest

from tests.semantics.helpers import DETACHED, LEAF_INPLACE, LEAF_VIEW_INPLACE, leaf, node_name

# A view whose base was written gets a new node. torch calls it AsStrided; replaying the view is as good.
REGENERATED = {"AsStridedBackward0", "SelectBackward0", "SliceBackward0", "TransposeBackward0", "TBackward0"}

WRITES = {
    "add_": lambda t: t.add_(1),
    "mul_": lambda t: t.mul_(2),
    "iadd": lambda t: t.__iadd__(1),
    "zero_": lambda t: t.zero_(),
    "fill_": lambda t: t.fill_(3.0),
    "copy_": lambda t: t.copy_(t.detach().clone()),
    "exp_": lambda t: t.exp_(),
    "relu_": lambda t: t.relu_(),
    "clamp_": lambda t: t.clamp_(0, 1),
}


# 21: leaves
@pytest.mark.parametrize("name", WRITES)
def test_write_on_a_leaf(engine, raises, name):
    x = leaf(engine, 1.0, 2.0)
    with raises(RuntimeError, LEAF_INPLACE):
        WRITES[name](x)
    assert x.tolist() == [1.0, 2.0]
    assert x._version == 0
    assert x.is_leaf


@pytest.mark.parametrize("name", WRITES)
def test_write_on_a_view_of_a_leaf(engine, raises, name):
    x = leaf(engine, 1.0, 2.0)
    with raises(RuntimeError, LEAF_VIEW_INPLACE):
        WRITES[name](x[0:1])
    assert x.tolist() == [1.0, 2.0]


def test_setitem_on_a_leaf(engine, raises):
    x = leaf(engine, 1.0, 2.0)
    for key in (0, slice(None), ...):
        with raises(RuntimeError):
            x[key] = 5.0
    assert x.tolist() == [1.0, 2.0]


@pytest.mark.parametrize("name", WRITES)
def test_write_on_a_leaf_under_no_grad(engine, name):
    x = leaf(engine, 1.0, 2.0)
    with engine.no_grad():
        WRITES[name](x)
        WRITES[name](x[0:1])
        x[1] = 9.0
    assert x.is_leaf
    assert x.requires_grad
    assert x.grad_fn is None
    assert x._version == 3


def test_write_on_a_leaf_that_needs_no_grad_makes_it_a_nonleaf(engine):
    x, a = leaf(engine, 2.0), engine.ones(1)
    a.mul_(x)
    assert a.requires_grad
    assert not a.is_leaf
    assert node_name(a) == "MulBackward0"
    a.sum().backward()
    assert x.grad.tolist() == [1.0]


def test_inplace_chain_has_the_right_gradient(engine):
    x = leaf(engine, 2.0)
    h = x * 3
    h.add_(1)
    h.mul_(x)
    h.sum().backward()
    assert x.grad.tolist() == [13.0]


def test_result_saving_op_in_place(engine):
    x = leaf(engine, -1.0, 2.0)
    h = x.clone()
    assert h.relu_() is h
    assert node_name(h) == "ReluBackward0"
    h.sum().backward()
    assert x.grad.tolist() == [0.0, 1.0]


def test_inplace_that_cannot_keep_its_shape_or_dtype(engine, raises):
    with raises(RuntimeError, "output with shape [3] doesn't match the broadcast shape [2, 3]"):
        engine.ones(3).add_(engine.ones(2, 3))
    with raises(RuntimeError, "result type Float can't be cast to the desired output type"):
        engine.ones(3, dtype=engine.int64).add_(1.5)


# 22: views
def test_write_on_a_view_rewrites_the_base(engine):
    x = leaf(engine, 1.0, 2.0)
    base = x.clone()
    view = base[0]
    assert node_name(view) == "SelectBackward0"
    view.mul_(3)
    assert node_name(base) == "CopySlices"
    assert node_name(view) in REGENERATED
    assert base._version == view._version == 1
    base.sum().backward()
    assert x.grad.tolist() == [3.0, 1.0]


def test_the_written_view_itself_has_the_right_gradient(engine):
    x = leaf(engine, 1.0, 2.0)
    base = x.clone()
    view = base[1]
    view.mul_(3)
    view.backward()
    assert x.grad.tolist() == [0.0, 3.0]


def test_write_on_a_view_pulls_a_plain_base_into_the_graph(engine):
    x = leaf(engine, 5.0)
    base = engine.ones(2)
    view = base[0:1]
    view.mul_(x)
    assert base.requires_grad
    assert not base.is_leaf
    assert node_name(base) == "CopySlices"
    (base * engine.tensor([10.0, 100.0])).sum().backward()
    assert x.grad.tolist() == [10.0]


def test_write_on_the_base_regenerates_the_views_node(engine):
    x = leaf(engine, 1.0, 2.0)
    base = x.clone()
    view = base[0]
    old = view.grad_fn
    base.mul_(3)
    assert view.grad_fn is not old
    assert node_name(view) in REGENERATED
    view.backward()
    assert x.grad.tolist() == [3.0, 0.0]


def test_write_on_a_plain_base_pulls_its_view_into_the_graph(engine):
    x = leaf(engine, 5.0, 7.0)
    base = engine.ones(2)
    view = base[1]
    assert not view.requires_grad
    base.mul_(x)
    assert view.requires_grad
    assert node_name(view) in REGENERATED
    view.backward()
    assert x.grad.tolist() == [0.0, 1.0]


def test_a_sibling_view_sees_the_write(engine):
    x = engine.ones(2, 2, requires_grad=True)
    base = x.clone()
    row, column = base[0], base[:, 0]
    row.mul_(5)
    column.sum().backward()
    assert x.grad.tolist() == [[5.0, 0.0], [1.0, 0.0]]


def test_a_view_of_a_view(engine):
    x = engine.ones(2, 2, requires_grad=True)
    base = x.clone()
    row = base[0]
    item = row[1]
    item.mul_(7)
    assert node_name(base) == "CopySlices"
    assert item._base is base
    base.sum().backward()
    assert x.grad.tolist() == [[1.0, 7.0], [1.0, 1.0]]


def test_write_through_a_transpose(engine):
    x = engine.ones(2, 2, requires_grad=True)
    base = x.clone()
    base.t()[0, 1] = 0.0
    (base * engine.tensor([[1.0, 2.0], [3.0, 4.0]])).sum().backward()
    assert x.grad.tolist() == [[1.0, 2.0], [0.0, 4.0]]


def test_setitem_with_a_tensor_that_requires_grad(engine):
    x, v = leaf(engine, 1.0, 2.0, 3.0), leaf(engine, 10.0)
    base = x.clone()
    base[1] = v[0] * 2
    base[2:] = v
    (base * engine.tensor([1.0, 10.0, 100.0])).sum().backward()
    assert x.grad.tolist() == [1.0, 0.0, 0.0]
    assert v.grad.tolist() == [120.0]


def test_setitem_with_a_mask_and_with_indices(engine):
    x = leaf(engine, 1.0, -2.0, 3.0)
    base = x.clone()
    base[base < 0] = 0.0
    base[engine.tensor([0])] = 5.0
    assert node_name(base) == "IndexPutBackward0"
    base.sum().backward()
    assert base.tolist() == [5.0, 0.0, 3.0]
    assert x.grad.tolist() == [0.0, 0.0, 1.0]


def test_copy_carries_both_gradients(engine):
    x, v = leaf(engine, 1.0, 2.0), leaf(engine, 3.0, 4.0)
    base = x * 1
    base.copy_(v)
    assert node_name(base) == "CopyBackwards"
    base.sum().backward()
    assert x.grad.tolist() == [0.0, 0.0]
    assert v.grad.tolist() == [1.0, 1.0]


def test_overwritten_part_gets_no_gradient(engine):
    x = leaf(engine, 1.0, 2.0)
    base = x.clone()
    base[0:1].zero_()
    base.sum().backward()
    assert x.grad.tolist() == [0.0, 1.0]


MULTI_OUTPUT = {
    "unbind": lambda t: t.unbind(),
    "split": lambda t: t.split(1),
    "split_sizes": lambda t: t.split([1, 1]),
    "chunk": lambda t: t.chunk(2),
}


@pytest.mark.parametrize("name", MULTI_OUTPUT)
def test_multi_output_views_refuse_a_write(engine, raises, name):
    base = leaf(engine, 1.0, 2.0).clone()
    first = MULTI_OUTPUT[name](base)[0]
    with raises(RuntimeError, "Output 0 of ") as error:
        first.mul_(2)
    assert "is a view and is being modified inplace" in error.text
    assert "multiple views" in error.text


@pytest.mark.parametrize("name", MULTI_OUTPUT)
def test_multi_output_views_refuse_to_be_used_after_a_write_on_the_base(engine, raises, name):
    base = leaf(engine, 1.0, 2.0).clone()
    first = MULTI_OUTPUT[name](base)[0]
    base.mul_(2)
    with raises(RuntimeError, "Output 0 of ") as error:
        first.grad_fn  # noqa: B018
    assert "its base or another view of its base has been modified inplace" in error.text


@pytest.mark.parametrize("name", MULTI_OUTPUT)
def test_multi_output_views_without_a_graph_may_be_written(engine, name):
    base = engine.ones(2)
    first = MULTI_OUTPUT[name](base)[0]
    first.mul_(2)
    assert base.tolist() == [2.0, 1.0]
    assert base._version == 1


@pytest.mark.parametrize("name", MULTI_OUTPUT)
def test_multi_output_views_may_be_written_under_no_grad(engine, name):
    x = leaf(engine, 1.0, 2.0)
    base = x.clone()
    first = MULTI_OUTPUT[name](base)[0]
    with engine.no_grad():
        first.mul_(2)
    assert base.tolist() == [2.0, 2.0]
    base.sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]


def test_view_made_under_no_grad_refuses_a_write_later(engine, raises):
    base = leaf(engine, 1.0, 2.0).clone()
    with engine.no_grad():
        view = base[0]
    with raises(RuntimeError, "A view was created in no_grad mode and is being modified inplace with grad mode"):
        view.mul_(2)


def test_view_made_under_no_grad_refuses_after_a_write_on_the_base(engine, raises):
    base = engine.zeros(2)
    with engine.no_grad():
        view = base[0]
    base.mul_(leaf(engine, 1.0, 2.0))
    with raises(RuntimeError, "A view was created in no_grad mode and its base or another view of its base has been"):
        view.grad_fn  # noqa: B018


def test_view_made_and_written_under_no_grad(engine):
    x = leaf(engine, 1.0, 2.0)
    base = x * 1
    with engine.no_grad():
        base[0].mul_(100)
    assert base.tolist() == [100.0, 2.0]
    assert node_name(base) == "MulBackward0"
    base.sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]


def test_view_made_under_no_grad_looks_like_a_leaf_and_feeds_nothing(engine):
    # A quirk: it reports the base's requires_grad, has no node, and gradients that reach it vanish.
    x = leaf(engine, 1.0, 2.0)
    for base in (x, x * 1):
        with engine.no_grad():
            view = base[0:1]
            assert not (view * 3).requires_grad
        assert view.requires_grad
        assert view.is_leaf
        assert view.grad_fn is None
        assert view._is_view()
        (view * 3).sum().backward()
        assert view.grad is None
        assert x.grad is None


def test_view_bookkeeping(engine):
    x = leaf(engine, 1.0, 2.0)
    view = x[0]
    assert view._is_view()
    assert view._base is x
    assert not x._is_view()
    assert x._base is None
    assert not view.is_leaf
    assert not x.detach()._is_view()
    assert not (x + 1)._is_view()


def test_saved_view_modified_through_its_base(engine, raises):
    base = leaf(engine, 1.0, 2.0).clone()
    y = base[0] ** 2
    base[1] = 5.0
    with raises(RuntimeError, "one of the variables needed for gradient computation has been modified by an inplace"):
        y.backward()


def test_op_that_saves_its_result_does_not_mind(engine):
    x = leaf(engine, 0.0, 2.0)
    base = x.clone()
    y = base[0].exp()
    base[1] = 5.0
    y.backward()
    assert x.grad.tolist() == [1.0, 0.0]


# 23: detach_
def test_detach_in_place(engine):
    h = leaf(engine, 1.0) * 2
    assert h.detach_() is h
    assert not h.requires_grad
    assert h.grad_fn is None
    assert h.is_leaf


def test_detach_in_place_on_a_view(engine, raises):
    base = leaf(engine, 1.0, 2.0).clone()
    with raises(RuntimeError, "Can't detach views in-place"):
        base[0].detach_()


def test_detach_in_place_on_a_saved_input(engine, raises):
    h = leaf(engine, 1.0).clone()
    y = h**2
    h.detach_()
    with raises(RuntimeError, DETACHED):
        y.sum().backward()


def test_detach_in_place_on_a_saved_output(engine):
    x = leaf(engine, 0.0)
    h = x.exp()
    y = h.sum()
    h.detach_()
    y.backward()
    assert x.grad.tolist() == [1.0]


def test_detach_shares_memory_and_stops_gradients(engine):
    x = leaf(engine, 1.0, 2.0)
    d = x.detach()
    assert not d.requires_grad
    assert d.is_leaf
    d[0] = 9.0
    assert x.tolist() == [9.0, 2.0]
    (x * x.detach()).sum().backward()
    assert x.grad.tolist() == [9.0, 2.0]


# 24: expanded tensors and out=
def test_write_on_an_expanded_tensor(engine, raises):
    with raises(RuntimeError, "unsupported operation: more than one element of the written-to tensor refers to"):
        engine.ones(1).expand(3).add_(1)
    with raises(RuntimeError, "unsupported operation: more than one element of the written-to tensor refers to"):
        leaf(engine, 1.0).clone().expand(3).mul_(2)


def test_out_with_inputs_that_need_grad(engine, raises):
    x = leaf(engine, 1.0, 2.0)
    words = "add(): functions with out=... arguments don't support automatic differentiation, but one of the arguments"
    with raises(RuntimeError, words):
        engine.add(x, 1, out=engine.zeros(2))
    with raises(RuntimeError, words):
        engine.add(x.detach(), 1, out=leaf(engine, 0.0, 0.0))


def test_out_without_grad(engine):
    x, out = leaf(engine, 1.0, 2.0), engine.zeros(2)
    with engine.no_grad():
        assert engine.add(x, 1, out=out) is out
    assert out.tolist() == [2.0, 3.0]
    engine.mul(out, 2, out=out)
    assert out.tolist() == [4.0, 6.0]
    assert out._version == 2


# requires_grad itself
def test_requires_grad_may_change_on_leaves_only(engine, raises):
    x = engine.ones(2)
    assert x.requires_grad_() is x
    assert x.requires_grad
    x.requires_grad = False
    assert not x.requires_grad
    h = leaf(engine, 1.0) * 2
    h.requires_grad_(True)
    with raises(RuntimeError, "you can only change requires_grad flags of leaf variables."):
        h.requires_grad_(False)
    with raises(RuntimeError, "you can only change requires_grad flags of leaf variables."):
        h.requires_grad = False


def test_only_floats_require_grad(engine, raises):
    with raises(RuntimeError, "only Tensors of floating point dtype can require gradients"):
        engine.ones(2, dtype=engine.int64).requires_grad_()
    with raises(RuntimeError, "Only Tensors of floating point and complex dtype can require gradients"):
        engine.tensor([1, 2], requires_grad=True)


def test_integer_results_never_require_grad(engine):
    x = leaf(engine, 1.0, 3.0)
    assert not (x > 2).requires_grad
    assert not x.argmax().requires_grad
    assert not x.long().requires_grad
    values, indices = x.max(0)
    assert values.requires_grad
    assert not indices.requires_grad
