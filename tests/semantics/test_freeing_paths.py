"""Freeing along chosen paths: inputs=, create_graph and double backward (statements 11 to 15)."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings

import pytest

from tests.semantics.helpers import FREED, leaf, outcome, quiet_grad


def saved_is_alive(tensor):
    return outcome(lambda: tensor.grad_fn._saved_result) == "ok"


# 11: inputs=
def test_backward_inputs_runs_only_the_way_to_them(engine):
    w, x = leaf(engine, 1.0), leaf(engine, 2.0)
    ew, ex = w.exp(), x.exp()
    (ew * 1.0 + ex).sum().backward(inputs=[w])
    assert w.grad.tolist() == pytest.approx([2.7182817])
    assert x.grad is None
    assert not saved_is_alive(ew)
    assert saved_is_alive(ex)


def test_backward_inputs_may_be_one_tensor(engine):
    w, x = leaf(engine, 1.0), leaf(engine, 2.0)
    (w * x).sum().backward(inputs=w)
    assert w.grad.tolist() == [2.0]
    assert x.grad is None


def test_nonleaf_input_gets_grad_and_its_node_runs(engine):
    x = leaf(engine, 2.0)
    h = x.exp()
    y = (h * 3.0).sum()
    ran = []
    h.grad_fn.register_hook(lambda gi, go: ran.append("h"))
    y.backward(inputs=[h])
    assert quiet_grad(h).tolist() == [3.0]
    assert x.grad is None
    assert ran == ["h"]
    assert not saved_is_alive(h)


def test_grad_does_not_run_the_inputs_own_node(engine):
    x = leaf(engine, 2.0)
    h = x.exp()
    y = (h * 3.0).sum()
    ran = []
    h.grad_fn.register_hook(lambda gi, go: ran.append("h"))
    (grad,) = engine.autograd.grad(y, h)
    assert grad.tolist() == [3.0]
    assert ran == []
    assert saved_is_alive(h)
    assert x.grad is None


def test_grad_with_respect_to_a_tensor_and_its_ancestor(engine):
    x = leaf(engine, 2.0)
    h = x * 3.0
    y = (h * h).sum()
    gh, gx = engine.autograd.grad(y, [h, x])
    assert gh.tolist() == [12.0]
    assert gx.tolist() == [36.0]


def test_unreachable_input_is_silent_in_backward(engine):
    x, other = leaf(engine, 2.0), leaf(engine, 3.0)
    (x * 2).sum().backward(inputs=[other])
    assert x.grad is None
    assert other.grad is None


def test_unreachable_input_in_grad(engine, raises):
    x, other = leaf(engine, 2.0), leaf(engine, 3.0)
    with raises(RuntimeError, "The differentiated Tensor at index 1 appears to not have been used in the graph."):
        engine.autograd.grad((x + 2).sum(), [x, other])
    one, two = engine.autograd.grad((x + 2).sum(), [x, other], allow_unused=True)
    assert one.tolist() == [1.0]
    assert two is None
    one, two = engine.autograd.grad((x + 2).sum(), [x, other], materialize_grads=True)
    assert two.tolist() == [0.0]
    with raises(ValueError, "Expected allow_unused to be True or not passed when materialize_grads=True"):
        engine.autograd.grad((x + 2).sum(), [x, other], allow_unused=False, materialize_grads=True)


def test_input_that_needs_no_grad(engine, raises):
    x = leaf(engine, 2.0)
    with raises(RuntimeError, "One of the differentiated Tensors does not require grad"):
        engine.autograd.grad(x.sum(), engine.ones(1))
    with raises(RuntimeError):
        x.sum().backward(inputs=[engine.ones(1)])


def test_grad_leaves_grad_attributes_alone(engine):
    x, w = leaf(engine, 2.0), leaf(engine, 5.0)
    (grad,) = engine.autograd.grad((x * w).sum(), x)
    assert grad.tolist() == [5.0]
    assert x.grad is None
    assert w.grad is None


def test_grad_of_the_output_itself(engine):
    x = leaf(engine, 2.0)
    y = (x * x).sum()
    (grad,) = engine.autograd.grad(y, y)
    assert grad.item() == 1.0
    assert outcome(lambda: y.backward()) == "ok"


def test_grad_of_several_outputs_is_summed(engine):
    x = leaf(engine, 2.0)
    h = x * x
    (grad,) = engine.autograd.grad([h.sum(), (h * 2).sum()], x)
    assert grad.tolist() == [12.0]


def test_grad_with_grad_outputs(engine):
    x = leaf(engine, 1.0, 2.0)
    (grad,) = engine.autograd.grad(x * x, x, grad_outputs=engine.tensor([10.0, 100.0]))
    assert grad.tolist() == [20.0, 400.0]
    (grad,) = engine.autograd.grad([x * x, (x + x).sum()], x, grad_outputs=[engine.ones(2), None])
    assert grad.tolist() == [4.0, 6.0]


def test_batched_grad_outputs(engine):
    x = leaf(engine, 1.0, 2.0)
    (grad,) = engine.autograd.grad(x * x, x, grad_outputs=engine.eye(2), is_grads_batched=True)
    assert grad.tolist() == [[2.0, 0.0], [0.0, 4.0]]


# 12: retain_graph defaults to create_graph
def test_retain_graph_defaults_to_create_graph(engine):
    x = leaf(engine, 2.0)
    y = (x * x).sum()
    engine.autograd.grad(y, x, create_graph=True)
    engine.autograd.grad(y, x, create_graph=False)
    assert outcome(lambda: engine.autograd.grad(y, x)) == "freed"


# 13: double backward
def test_second_derivative_through_exp_frees_the_first_order_node(engine, raises):
    x = leaf(engine, 0.5)
    y = x.exp().sum()
    (first,) = engine.autograd.grad(y, x, create_graph=True)
    (second,) = engine.autograd.grad(first.sum(), x)
    assert second.tolist() == pytest.approx([1.6487212])
    with raises(RuntimeError, FREED):
        y.backward()


def test_second_derivative_through_a_power_of_a_leaf_leaves_the_first_alone(engine):
    x = leaf(engine, 2.0)
    y = (x**3).sum()
    (first,) = engine.autograd.grad(y, x, create_graph=True)
    (second,) = engine.autograd.grad(first.sum(), x)
    assert second.tolist() == [12.0]
    y.backward()
    assert x.grad.tolist() == [12.0]


def test_saved_output_is_a_fresh_tensor_with_the_same_node(engine):
    y = leaf(engine, 0.5).exp()
    saved = y.grad_fn._saved_result
    assert saved is not y
    assert saved.grad_fn is y.grad_fn
    assert saved.requires_grad
    assert saved._version == y._version


def test_saved_input_is_the_identical_object(engine):
    x = leaf(engine, 0.5)
    h = x + 1
    assert (h**2).grad_fn._saved_self is h
    assert (x * h).grad_fn._saved_self is x
    assert (x * h).grad_fn._saved_other is h


def test_third_order(engine):
    x = leaf(engine, 2.0)
    grads = [(x**4).sum()]
    for _ in range(3):
        (g,) = engine.autograd.grad(grads[-1].sum(), x, create_graph=True)
        grads.append(g)
    assert [g.item() for g in grads] == [16.0, 32.0, 48.0, 48.0]


def test_gradient_penalty_reaches_the_weights(engine):
    w, x = leaf(engine, 3.0), leaf(engine, 2.0)
    y = (w * x * x).sum()
    (gx,) = engine.autograd.grad(y, x, create_graph=True)
    (gx**2).sum().backward()
    assert w.grad.tolist() == [2 * 12.0 * 4.0]


def test_create_graph_gradient_keeps_history(engine):
    x = leaf(engine, 2.0)
    (g,) = engine.autograd.grad((x**3).sum(), x, create_graph=True)
    assert g.requires_grad
    assert g.grad_fn is not None
    (g,) = engine.autograd.grad((x**3).sum(), x)
    assert not g.requires_grad
    assert g.grad_fn is None
    # A gradient that depends on nothing has no history even under create_graph.
    (g,) = engine.autograd.grad((x * 3.0).sum(), x, create_graph=True)
    assert not g.requires_grad


# 14: create_graph=True with retain_graph=False
def test_create_without_retain_one_op_deep(engine):
    x = leaf(engine, 2.0)
    (g,) = engine.autograd.grad((x**3).sum(), x, create_graph=True, retain_graph=False)
    (second,) = engine.autograd.grad(g.sum(), x)
    assert second.tolist() == [12.0]


def test_create_without_retain_deeper(engine):
    x = leaf(engine, 0.5)
    y = x.exp().exp().sum()
    (g,) = engine.autograd.grad(y, x, create_graph=True, retain_graph=False)
    assert outcome(lambda: engine.autograd.grad(g.sum(), x)) == "freed"


# 15: the reference-cycle warning
CYCLE_SCRIPT = """
import warnings
import {name} as torch
x = torch.ones(1, requires_grad=True)
def count(function):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        function()
    return len([w for w in caught if "create_graph=True" in str(w.message)])
print(count(lambda: torch.autograd.grad((x ** 2).sum(), x, create_graph=True)))
print(count(lambda: (x ** 2).sum().backward(create_graph=True)))
print(count(lambda: (x ** 2).sum().backward(create_graph=True)))
"""


def test_cycle_warning_comes_once_and_never_from_grad(engine):
    script = CYCLE_SCRIPT.format(name=engine.__name__)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=environment, check=False)
    assert run.returncode == 0, run.stderr
    assert run.stdout.split() == ["0", "1", "0"]


def test_backward_with_create_graph_gives_grads_with_history(engine):
    x = leaf(engine, 2.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        (x**3).sum().backward(create_graph=True)
    assert x.grad.requires_grad
    (second,) = engine.autograd.grad(x.grad.sum(), x)
    assert second.tolist() == [12.0]
    x.grad = None
