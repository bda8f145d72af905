"""Custom Functions: gradients they return, what they mark, and how they are written (statement 32)."""

from __future__ import annotations

import pytest

from tests.semantics.helpers import leaf, node_name, submodule


def product(engine, gradients):
    """A Function of two tensors whose backward returns whatever `gradients(g)` gives."""

    class Product(engine.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            return x * y

        @staticmethod
        def backward(ctx, g):
            return gradients(g)

    return Product


# the gradients that backward returns
def test_wrong_number_of_gradients(engine, raises):
    x = leaf(engine, 1.0, 2.0)
    words = "function ProductBackward returned an incorrect number of gradients (expected 2, got"
    with raises(RuntimeError, words + " 1)"):
        product(engine, lambda g: g).apply(x, x).sum().backward()
    with raises(RuntimeError, words + " 3)"):
        product(engine, lambda g: (g, g, g)).apply(x, x).sum().backward()


def test_extra_trailing_none_is_allowed(engine):
    x = leaf(engine, 1.0)
    product(engine, lambda g: (g, g, None)).apply(x, x).sum().backward()
    assert x.grad.tolist() == [2.0]


def test_wrong_shape(engine, raises):
    x = leaf(engine, 1.0, 2.0)
    words = "Function ProductBackward returned an invalid gradient at index 1 - got [3] but expected shape compatible"
    with raises(RuntimeError, words):
        product(engine, lambda g: (g, engine.ones(3))).apply(x, x).sum().backward()


def test_broadcastable_shape_is_summed_down(engine):
    x = leaf(engine, 1.0, 2.0)
    product(engine, lambda g: (g.expand(3, 2), None)).apply(x, x).sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]


def test_other_dtype_is_cast(engine):
    x = leaf(engine, 1.0)
    product(engine, lambda g: (g.double(), None)).apply(x, x).sum().backward()
    assert x.grad.dtype == engine.float32


def test_gradient_that_is_no_tensor(engine, raises):
    x = leaf(engine, 1.0)
    with raises(RuntimeError, "expected Variable or None (got int)"):
        product(engine, lambda g: (3, g)).apply(x, x).sum().backward()


def test_none_as_gradient(engine):
    x, y = leaf(engine, 1.0), leaf(engine, 2.0)
    product(engine, lambda g: (None, g)).apply(x, y).sum().backward()
    assert x.grad is None
    assert y.grad.tolist() == [1.0]


def test_none_from_inside_a_chain_means_no_gradient_further_on(engine):
    x, y = leaf(engine, 1.0), leaf(engine, 2.0)
    h = x.exp()
    product(engine, lambda g: (None, g)).apply(h, y).sum().backward()
    assert x.grad is None or x.grad.tolist() == [0.0]


# what forward returns
def test_returning_the_input_as_it_is(engine, raises):
    class Same(engine.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def backward(ctx, g):
            return g * 5

    x = leaf(engine, 1.0)
    y = Same.apply(x)
    assert y is not x
    assert y._is_view()
    assert node_name(y) == "SameBackward"
    y.sum().backward()
    assert x.grad.tolist() == [5.0]
    with raises(RuntimeError, "Output 0 of Same") as error:
        Same.apply(x.clone()).add_(1)
    assert "is a view and is being modified inplace" in error.text


def test_returning_a_view_of_the_input(engine, raises):
    class Flat(engine.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.view(-1)

        @staticmethod
        def backward(ctx, g):
            return g

    y = Flat.apply(leaf(engine, 1.0).clone())
    assert y._is_view()
    with raises(RuntimeError, "Output 0 of Flat"):
        y.add_(1)


def test_outputs_that_are_no_tensors(engine):
    class Mixed(engine.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2, "text", None, [1]

        @staticmethod
        def backward(ctx, *grads):
            assert grads[1:] == (None, None, None)
            return grads[0] * 2

    x = leaf(engine, 1.0)
    y, text, nothing, items = Mixed.apply(x)
    assert (text, nothing, items) == ("text", None, [1])
    y.sum().backward()
    assert x.grad.tolist() == [2.0]


def test_single_output_is_not_wrapped_and_a_tuple_stays_one(engine):
    class One(engine.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return (x * 1,)

        @staticmethod
        def backward(ctx, g):
            return g

    result = One.apply(leaf(engine, 1.0))
    assert isinstance(result, tuple)
    assert len(result) == 1


def test_inputs_that_are_no_tensors(engine):
    class Scale(engine.autograd.Function):
        @staticmethod
        def forward(ctx, x, factor, options):
            ctx.factor = factor
            assert ctx.needs_input_grad == (True, False, False)
            return x * factor

        @staticmethod
        def backward(ctx, g):
            assert ctx.needs_input_grad == (True, False, False)
            return g * ctx.factor, None, None

    x = leaf(engine, 2.0)
    Scale.apply(x, 3, {"a": 1}).sum().backward()
    assert x.grad.tolist() == [3.0]


def test_needs_input_grad(engine):
    seen = []

    class Product(engine.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_backward(x, y)
            return x * y

        @staticmethod
        def backward(ctx, g):
            x, y = ctx.saved_tensors
            seen.append(ctx.needs_input_grad)
            return (g * y if ctx.needs_input_grad[0] else None, g * x if ctx.needs_input_grad[1] else None)

    x, y = leaf(engine, 2.0), engine.tensor([5.0])
    Product.apply(x, y).sum().backward()
    Product.apply(y, x).sum().backward()
    assert seen == [(True, False), (False, True)]
    assert x.grad.tolist() == [10.0]


def test_node_is_named_after_the_function(engine):
    node = product(engine, lambda g: (g, g)).apply(leaf(engine, 1.0), engine.ones(1)).grad_fn
    assert node.name() == "ProductBackward"
    assert type(node).__name__ == "ProductBackward"
    assert node.next_functions[0][0].name().endswith("AccumulateGrad")
    assert node.next_functions[1][0] is None


# modes
def test_forward_runs_without_grad_mode(engine):
    seen = []

    class Look(engine.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            seen.append((engine.is_grad_enabled(), x.requires_grad))
            return x * 2

        @staticmethod
        def backward(ctx, g):
            seen.append(engine.is_grad_enabled())
            return g * 2

    x = leaf(engine, 1.0)
    y = Look.apply(x)
    assert y.requires_grad
    y.sum().backward()
    engine.autograd.grad(Look.apply(x).sum(), x, create_graph=True)
    assert seen == [(False, True), False, (False, True), True]


def test_no_node_without_grad(engine):
    cls = product(engine, lambda g: (g, g))
    assert cls.apply(engine.ones(1), engine.ones(1)).grad_fn is None
    with engine.no_grad():
        assert cls.apply(leaf(engine, 1.0), engine.ones(1)).grad_fn is None


# materialised gradients
@pytest.mark.parametrize("materialize", [None, True, False])
def test_absent_gradients(engine, materialize):
    seen = []

    class Two(engine.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            if materialize is not None:
                ctx.set_materialize_grads(materialize)
            return x * 2, x * 3

        @staticmethod
        def backward(ctx, g, h):
            seen.append(None if h is None else h.tolist())
            return g * 2

    x = leaf(engine, 1.0)
    first, _ = Two.apply(x)
    first.sum().backward()
    assert seen == [None if materialize is False else [0.0]]
    assert x.grad.tolist() == [2.0]


# mark_dirty
def add_one(engine, leave_out=False):
    class AddOne(engine.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            x.add_(1)
            ctx.mark_dirty(x)
            return x * 1 if leave_out else x

        @staticmethod
        def backward(ctx, g):
            return g * 7

    return AddOne


def test_mark_dirty_returns_the_same_object(engine):
    x = leaf(engine, 1.0)
    h = x.clone()
    y = add_one(engine).apply(h)
    assert y is h
    assert node_name(h) == "AddOneBackward"
    assert h.tolist() == [2.0]
    assert h._version >= 1
    h.sum().backward()
    assert x.grad.tolist() == [7.0]


def test_mark_dirty_on_a_leaf(engine, raises):
    with raises(RuntimeError, "a leaf Variable that requires grad"):
        add_one(engine).apply(leaf(engine, 1.0))


def test_mark_dirty_must_be_returned(engine, raises):
    with raises(RuntimeError, "Some elements marked as dirty during the forward method were not returned as output"):
        add_one(engine, leave_out=True).apply(leaf(engine, 1.0).clone())


def test_mark_dirty_is_noticed_by_those_who_saved(engine, raises):
    h = leaf(engine, 1.0).clone()
    y = h**2
    add_one(engine).apply(h)
    with raises(RuntimeError, "one of the variables needed for gradient computation has been modified by an inplace"):
        y.sum().backward()


# mark_non_differentiable
def test_mark_non_differentiable(engine):
    seen = []

    class Pair(engine.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            marked = x * 3
            ctx.mark_non_differentiable(marked)
            return x * 2, marked

        @staticmethod
        def backward(ctx, g, h):
            seen.append(h.tolist())
            return g * 2

    x = leaf(engine, 1.0)
    y, marked = Pair.apply(x)
    assert y.requires_grad
    assert not marked.requires_grad
    assert marked.grad_fn is None
    y.sum().backward()
    assert seen == [[0.0]]
    assert x.grad.tolist() == [2.0]


def test_integer_outputs_are_not_differentiable(engine):
    class Arg(engine.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            index = x.argmax()
            ctx.mark_non_differentiable(index)
            return x * 2, index

        @staticmethod
        def backward(ctx, g, h):
            return g * 2

    y, index = Arg.apply(leaf(engine, 1.0, 2.0))
    assert index.item() == 1
    assert not index.requires_grad


# once_differentiable
def once(engine):
    class Once(engine.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        @submodule(engine, "autograd.function").once_differentiable
        def backward(ctx, g):
            assert not engine.is_grad_enabled()
            return 2 * ctx.saved_tensors[0] * g

    return Once


def test_once_differentiable(engine, raises):
    x, w = leaf(engine, 3.0), leaf(engine, 1.0)
    once(engine).apply(x).sum().backward()
    assert x.grad.tolist() == [6.0]
    y = once(engine).apply(x)
    (g,) = engine.autograd.grad((y * w).sum(), x, create_graph=True)
    assert g.requires_grad
    with raises(RuntimeError, "trying to differentiate twice a function that was marked with @once_differentiable"):
        g.sum().backward()


def test_once_differentiable_with_a_constant_gradient(engine):
    # The incoming gradient needs no graph, so neither does the result.
    x = leaf(engine, 3.0)
    (g,) = engine.autograd.grad(once(engine).apply(x).sum(), x, create_graph=True)
    assert g.tolist() == [6.0]
    assert not g.requires_grad


# setup_context
def test_setup_context(engine):
    class Power(engine.autograd.Function):
        @staticmethod
        def forward(x, n):
            return x**n

        @staticmethod
        def setup_context(ctx, inputs, output):
            x, n = inputs
            ctx.n = n
            ctx.save_for_backward(x, output)

        @staticmethod
        def backward(ctx, g):
            x, output = ctx.saved_tensors
            assert output.tolist() == [8.0]
            return g * ctx.n * x ** (ctx.n - 1), None

    x = leaf(engine, 2.0)
    Power.apply(x, 3).sum().backward()
    assert x.grad.tolist() == [12.0]


def test_vjp_is_another_name_for_backward(engine, raises):
    class Double(engine.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def vjp(ctx, g):
            return g * 2

    class Both(Double):
        @staticmethod
        def backward(ctx, g):
            return g * 2

    x = leaf(engine, 2.0)
    Double.apply(x).sum().backward()
    assert x.grad.tolist() == [2.0]
    with raises(RuntimeError, "Implementing both 'backward' and 'vjp' for a custom Function is not allowed"):
        Both.apply(x).sum().backward()


# jvp
def test_jvp(engine, raises):
    forward_ad = submodule(engine, "autograd.forward_ad")

    class Square(engine.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_forward(x)
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            return 2 * ctx.saved_tensors[0] * g

        @staticmethod
        def jvp(ctx, tangent):
            return 2 * ctx.saved_tensors[0] * tangent

    with forward_ad.dual_level():
        dual = forward_ad.make_dual(engine.tensor([3.0]), engine.tensor([10.0]))
        primal, tangent = forward_ad.unpack_dual(Square.apply(dual))
        assert primal.tolist() == [9.0]
        assert tangent.tolist() == [60.0]
        with raises(NotImplementedError, "You must implement the jvp function for custom autograd.Function"):
            product(engine, lambda g: (g, g)).apply(dual, dual)


# saving
def test_save_for_backward_takes_tensors_and_none(engine, raises):
    class Save(engine.autograd.Function):
        @staticmethod
        def forward(ctx, x, what):
            ctx.save_for_backward(x, what)
            return x * 1

        @staticmethod
        def backward(ctx, g):
            assert ctx.saved_tensors[1] is None
            return g, None

    x = leaf(engine, 1.0)
    Save.apply(x, None).sum().backward()
    with raises(TypeError, "save_for_backward can only save variables, but argument 1 is of type int"):
        Save.apply(x, 3)


def test_saved_output_and_double_backward(engine):
    class Exp(engine.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = x.exp()
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx, g):
            return g * ctx.saved_tensors[0]

    x = leaf(engine, 0.0)
    y = Exp.apply(x).sum()
    (g,) = engine.autograd.grad(y, x, create_graph=True)
    (h,) = engine.autograd.grad(g.sum(), x, create_graph=True)
    assert g.tolist() == h.tolist() == [1.0]


def test_saved_values_are_version_checked(engine, raises):
    class Save(engine.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            return 2 * g * ctx.saved_tensors[0]

    h = leaf(engine, 1.0).clone()
    y = Save.apply(h)
    h.add_(1)
    with raises(RuntimeError, "one of the variables needed for gradient computation has been modified by an inplace"):
        y.sum().backward()


# misuse
def test_missing_methods(engine, raises):
    class NoBackward(engine.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

    class NoForward(engine.autograd.Function):
        pass

    y = NoBackward.apply(leaf(engine, 1.0))
    with raises(NotImplementedError, "You must implement either the backward or vjp method"):
        y.sum().backward()
    with raises(NotImplementedError, "You must implement the forward function for custom autograd.Function."):
        NoForward.apply(leaf(engine, 1.0))


def test_calling_an_instance(engine, raises):
    cls = product(engine, lambda g: (g, g))
    with raises(RuntimeError, "Legacy autograd function with non-static forward method is deprecated"):
        cls()(engine.ones(1), engine.ones(1))


def test_straight_through_estimator(engine):
    class Round(engine.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.round()

        @staticmethod
        def backward(ctx, g):
            return g

    x = leaf(engine, 1.4, 2.6)
    y = Round.apply(x * 1)
    assert y.tolist() == [1.0, 3.0]
    y.sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]
