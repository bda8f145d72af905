"""Saved-tensor hooks and what is built on them: save_on_cpu, checkpoint, mutation of saved tensors."""

from __future__ import annotations

import warnings

import pytest

from tests.semantics.helpers import FREED, leaf, outcome, submodule


# saved_tensors_hooks
def test_pack_and_unpack_are_called_with_the_values(engine):
    log = []

    def pack(tensor):
        log.append(("pack", tensor.tolist()))
        return tensor.tolist()

    def unpack(values):
        log.append(("unpack", values))
        return engine.tensor(values)

    x = leaf(engine, 3.0)
    with engine.autograd.graph.saved_tensors_hooks(pack, unpack):
        y = x * x
    assert log == [("pack", [3.0]), ("pack", [3.0])]
    y.sum().backward()
    assert log[2:] == [("unpack", [3.0]), ("unpack", [3.0])]
    assert x.grad.tolist() == [6.0]


def test_hooks_change_what_the_gradient_sees(engine):
    x = leaf(engine, 1.0)
    with engine.autograd.graph.saved_tensors_hooks(lambda t: t * 10, lambda t: t):
        y = x * x
    y.sum().backward()
    assert x.grad.tolist() == [20.0]


def test_innermost_hooks_win(engine):
    log: list[str] = []

    def packer(label):
        def pack(tensor):
            log.append(label)
            return tensor

        return pack

    x = leaf(engine, 1.0)
    hooks = engine.autograd.graph.saved_tensors_hooks
    with hooks(packer("outer"), lambda t: t):
        with hooks(packer("inner"), lambda t: t):
            x.exp()
        x.exp()
    x.exp()
    assert log == ["inner", "outer"]


def test_unpacking_happens_at_each_pass_and_each_look(engine):
    count = [0]

    def unpack(tensor):
        count[0] += 1
        return tensor

    x = leaf(engine, 1.0)
    with engine.autograd.graph.saved_tensors_hooks(lambda t: t, unpack):
        y = x.exp()
    y.sum().backward(retain_graph=True)
    y.grad_fn._saved_result  # noqa: B018
    y.sum().backward()
    assert count == [3]
    assert outcome(lambda: y.sum().backward()) == "freed"
    assert count == [3]


def test_bad_hooks(engine, raises):
    hooks = engine.autograd.graph.saved_tensors_hooks
    with hooks(lambda t: t, lambda t: 3):
        y = leaf(engine, 1.0).exp()
    with raises(TypeError, "Output of saved tensor unpack_hook expected to be a Tensor but got result of type int"):
        y.sum().backward()

    def modify(tensor):
        tensor.add_(1)
        return tensor

    with hooks(modify, lambda t: t), raises(RuntimeError, "A saved tensor pack hook is modifying its input in place"):
        leaf(engine, 1.0).clone() ** 2


def test_exception_in_a_pack_hook_reaches_the_caller(engine):
    def pack(tensor):
        raise KeyError("pack")

    with pytest.raises(KeyError), engine.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        leaf(engine, 1.0).exp()
    leaf(engine, 1.0).exp()


def test_hooks_see_custom_functions(engine):
    class Square(engine.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            return 2 * ctx.saved_tensors[0] * g

    packed = []

    def pack(tensor):
        packed.append(tensor.tolist())
        return tensor

    with engine.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        Square.apply(leaf(engine, 3.0)).sum().backward()
    assert packed == [[3.0]]


def test_disable_saved_tensors_hooks(engine, raises):
    graph = engine.autograd.graph
    with graph.disable_saved_tensors_hooks("not here, please"):
        with raises(RuntimeError, "not here, please"), graph.saved_tensors_hooks(lambda t: t, lambda t: t):
            leaf(engine, 1.0).exp()
        leaf(engine, 1.0).exp().sum().backward()


def test_register_hooks_on_one_saved_value(engine, raises):
    x = leaf(engine, 1.0)
    y = x * engine.tensor([2.0])
    y.grad_fn._raw_saved_other.register_hooks(lambda t: t * 5, lambda t: t)
    with raises(RuntimeError, "Calling register_hooks on a saved tensor whose hooks have already been set"):
        y.grad_fn._raw_saved_other.register_hooks(lambda t: t, lambda t: t)
    with raises(RuntimeError, "Calling register_hooks on a saved tensor with value None is forbidden"):
        y.grad_fn._raw_saved_self.register_hooks(lambda t: t, lambda t: t)
    y.sum().backward()
    assert x.grad.tolist() == [10.0]
    z = x.exp()
    saved = z.grad_fn._raw_saved_result
    z.sum().backward()
    with raises(RuntimeError, "Calling register_hooks on a saved tensor after it has been freed"):
        saved.register_hooks(lambda t: t, lambda t: t)


def test_double_backward_through_packed_values(engine):
    x = leaf(engine, 2.0)
    with engine.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        y = (x**3).sum()
    (g,) = engine.autograd.grad(y, x, create_graph=True)
    (h,) = engine.autograd.grad(g.sum(), x)
    assert h.tolist() == [12.0]


# save_on_cpu
def test_save_on_cpu(engine):
    x = leaf(engine, 0.0, 1.0)
    with engine.autograd.graph.save_on_cpu():
        y = (x.exp() * x).sum()
    y.backward()
    assert x.grad.tolist() == pytest.approx([1.0, 5.4365635])


# allow_mutation_on_saved_tensors
def test_mutation_of_saved_tensors_allowed(engine):
    x = leaf(engine, 1.0)
    with engine.autograd.graph.allow_mutation_on_saved_tensors():
        h = x.clone()
        y = h**2
        h.add_(5)
        y.sum().backward()
    assert x.grad.tolist() == [2.0]


def test_mutation_of_saved_tensors_context(engine, raises):
    allow = engine.autograd.graph.allow_mutation_on_saved_tensors
    with raises(RuntimeError, "allow_mutation_on_saved_tensors contexts cannot be nested"), allow(), allow():
        pass
    with allow():
        h = leaf(engine, 1.0).clone()
        y = h**2
        h.add_(5)
    with raises(AssertionError, "Trying to backward outside of the 'allow_mutation_on_saved_tensors' context"):
        y.sum().backward()


# checkpoint
def counted(count):
    def work(x):
        count[0] += 1
        return x.exp().sin()

    return work


@pytest.fixture
def checkpoint(engine):
    return submodule(engine, "utils.checkpoint").checkpoint


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpoint_recomputes_once_and_agrees(engine, checkpoint, reentrant):
    count = [0]
    x, plain = leaf(engine, 0.5, 1.0), leaf(engine, 0.5, 1.0)
    y = checkpoint(counted(count), x, use_reentrant=reentrant)
    assert count == [1]
    y.sum().backward()
    assert count == [2]
    plain.exp().sin().sum().backward()
    assert engine.equal(x.grad, plain.grad)


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpoint_twice_fails(engine, checkpoint, reentrant, raises):
    y = checkpoint(counted([0]), leaf(engine, 0.5), use_reentrant=reentrant)
    y.sum().backward()
    with raises(RuntimeError, FREED):
        y.sum().backward()


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpoint_replays_random_numbers(engine, checkpoint, reentrant):
    dropout = submodule(engine, "nn.functional").dropout
    x = engine.ones(100, requires_grad=True)
    y = checkpoint(lambda t: dropout(t, 0.5), x, use_reentrant=reentrant)
    engine.rand(3)
    y.sum().backward()
    assert engine.equal(x.grad, y.detach())


def test_checkpoint_kinds_of_nodes(engine, checkpoint):
    x = leaf(engine, 0.5)
    assert checkpoint(counted([0]), x, use_reentrant=False).grad_fn.name() == "SinBackward0"
    assert checkpoint(counted([0]), x, use_reentrant=True).grad_fn.name() == "CheckpointFunctionBackward"


def test_checkpoint_and_autograd_grad(engine, checkpoint, raises):
    x = leaf(engine, 0.0)
    (g,) = engine.autograd.grad(checkpoint(counted([0]), x, use_reentrant=False).sum(), x)
    assert g.tolist() == pytest.approx([0.5403023])
    with raises(RuntimeError, "When use_reentrant=True, "):
        engine.autograd.grad(checkpoint(counted([0]), x, use_reentrant=True).sum(), x)


def test_checkpoint_with_weights_only_inside(engine, checkpoint):
    w, data = leaf(engine, 2.0), engine.tensor([3.0])
    checkpoint(lambda t: t * w, data, use_reentrant=False).sum().backward()
    assert w.grad.tolist() == [3.0]
    with pytest.warns(UserWarning, match="None of the inputs have requires_grad=True"):
        y = checkpoint(lambda t: t * w, data, use_reentrant=True)
    assert not y.requires_grad


def test_checkpoint_wants_the_kind_named(engine, checkpoint):
    with pytest.warns(UserWarning, match="the use_reentrant parameter should be passed explicitly"):
        checkpoint(counted([0]), leaf(engine, 0.5))


def test_checkpoint_takes_keywords_and_second_order(engine, checkpoint, raises):
    x = leaf(engine, 2.0)
    y = checkpoint(lambda t, k=1: t * t * k, x, use_reentrant=False, k=3)
    (g,) = engine.autograd.grad(y.sum(), x, create_graph=True)
    (h,) = engine.autograd.grad(g.sum(), x)
    assert (g.tolist(), h.tolist()) == ([12.0], [6.0])
    with raises(ValueError, "Unexpected keyword arguments: k"):
        checkpoint(lambda t, k=1: t * k, x, use_reentrant=True, k=3)


def test_checkpoint_notices_another_recomputation(engine, checkpoint, raises):
    calls = [0]

    def work(x):
        calls[0] += 1
        return x.exp() if calls[0] == 1 else x[:1].exp()

    y = checkpoint(work, leaf(engine, 1.0, 2.0), use_reentrant=False)
    with raises(RuntimeError) as error:
        y.sum().backward()
    assert "Recomputed values for the following tensors have different metadata" in error.text


def test_checkpoint_inside_checkpoint(engine, checkpoint):
    x, plain = leaf(engine, 0.5), leaf(engine, 0.5)

    def inner(t):
        return t.exp()

    def outer(t):
        return checkpoint(inner, t, use_reentrant=False).sin() * t

    checkpoint(outer, x, use_reentrant=False).sum().backward()
    (plain.exp().sin() * plain).sum().backward()
    assert engine.equal(x.grad, plain.grad)


def test_checkpoint_of_several_outputs(engine, checkpoint):
    x = leaf(engine, 2.0)
    a, b = checkpoint(lambda t: (t * t, t * 3), x, use_reentrant=False)
    (a + b).sum().backward()
    assert x.grad.tolist() == [7.0]


def test_checkpoint_sequential(engine):
    nn = submodule(engine, "nn")
    model = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 2))
    x = engine.ones(4, 2, requires_grad=True)
    y = submodule(engine, "utils.checkpoint").checkpoint_sequential(model, 2, x, use_reentrant=False)
    assert engine.allclose(y, model(x))
    y.sum().backward()
    through, x.grad = x.grad.clone(), None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model(x).sum().backward()
    assert engine.allclose(through, x.grad)
