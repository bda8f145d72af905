"""Claims one reads in articles on the freed-graph error, and what is true."""

from __future__ import annotations

from tests.semantics.helpers import FREED, NO_GRAD_FN, leaf, outcome


def test_missing_zero_grad_only_sums(engine):
    w = leaf(engine, 1.0)
    for _ in range(3):
        (w * w * 2).sum().backward()
    assert w.grad.tolist() == [12.0]


def test_backward_on_a_detached_tensor_raises(engine, raises):
    with raises(RuntimeError, NO_GRAD_FN):
        (leaf(engine, 1.0) * 2).sum().detach().backward()


def test_retaining_once_is_not_for_ever(engine):
    y = (leaf(engine, 1.0) ** 2).sum()
    results = [outcome(lambda keep=keep: y.backward(retain_graph=keep)) for keep in (True, True, False, False, True)]
    assert results == ["ok", "ok", "ok", "freed", "freed"]


def test_sum_of_a_retained_and_a_freed_graph(engine, raises):
    x, w = leaf(engine, 2.0), leaf(engine, 3.0)
    kept, freed = (x**2).sum(), (w**2).sum()
    kept.backward(retain_graph=True)
    freed.backward()
    assert outcome(lambda: engine.autograd.grad(kept + freed, x)) == "ok"
    with raises(RuntimeError, FREED):
        engine.autograd.grad(kept + freed, w)


def test_calling_forward_again_is_a_new_graph(engine):
    w = leaf(engine, 2.0)

    def loss():
        return (w**2).sum()

    loss().backward()
    loss().backward()
    assert w.grad.tolist() == [8.0]


def test_state_carried_between_steps_is_the_usual_cause(engine):
    w = leaf(engine, 0.5)

    def train(cut):
        h = engine.ones(1)
        for _ in range(2):
            h = (h.detach() if cut else h) * w
            h.sum().backward()

    assert outcome(lambda: train(cut=False)) == "freed"
    assert outcome(lambda: train(cut=True)) == "ok"


def test_detach_does_not_protect_the_other_user_of_the_graph(engine):
    x = leaf(engine, 2.0)
    h = x.exp()
    h.detach().sum()
    h.sum().backward()
    assert outcome(lambda: h.sum().backward()) == "freed"


def test_item_and_tolist_free_nothing(engine):
    y = (leaf(engine, 2.0) ** 2).sum()
    y.item()
    y.tolist()
    assert outcome(y.backward) == "ok"


def test_a_failed_backward_does_not_use_up_the_first_pass(engine):
    # The pass that fails at the door frees nothing.
    x = leaf(engine, 1.0, 2.0)
    y = x**2
    assert outcome(y.backward) != "ok"
    assert outcome(lambda: y.sum().backward()) == "ok"


def test_deleting_the_loss_does_not_bring_the_values_back(engine):
    x = leaf(engine, 2.0)
    h = x.exp()
    loss = h.sum()
    loss.backward()
    del loss
    assert outcome(lambda: (h * 2).sum().backward()) == "freed"


def test_zero_grad_and_grad_none_free_no_graph(engine):
    x = leaf(engine, 2.0)
    y = (x**2).sum()
    y.backward(retain_graph=True)
    x.grad = None
    assert outcome(y.backward) == "ok"
    assert x.grad.tolist() == [4.0]
