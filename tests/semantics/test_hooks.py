"""Hooks: their order, what they may return, and the order of nodes (statements 29 and 30)."""

from __future__ import annotations

import pytest

from tests.semantics.helpers import leaf


def recorder(log, label):
    def hook(*grads):
        log.append(label)

    return hook


def hooked_chain(engine, log):
    """x -> h = x * 2 with every kind of hook that logs."""
    x = leaf(engine, 1.0)
    h = x * 2
    node = h.grad_fn
    accumulator = node.next_functions[0][0]
    node.register_hook(recorder(log, "node post"))
    node.register_prehook(recorder(log, "node pre"))
    h.register_hook(recorder(log, "tensor 1"))
    h.register_hook(recorder(log, "tensor 2"))
    accumulator.register_hook(recorder(log, "accumulator post"))
    accumulator.register_prehook(recorder(log, "accumulator pre"))
    x.register_post_accumulate_grad_hook(recorder(log, "post accumulate"))
    x.register_hook(recorder(log, "leaf"))
    # The accumulator lives only as long as someone refers to it.
    return x, h, accumulator


NONLEAF_ORDER = ["tensor 1", "tensor 2", "node pre", "node post"]
LEAF_ORDER = ["leaf", "accumulator pre", "post accumulate", "accumulator post"]


# 29
def test_order_in_backward(engine):
    log: list[str] = []
    x, h, accumulator = hooked_chain(engine, log)
    h.sum().backward()
    assert log == NONLEAF_ORDER + LEAF_ORDER


def test_retain_grad_comes_after_tensor_hooks_and_before_node_hooks(engine):
    x = leaf(engine, 1.0)
    h = x * 2
    h.retain_grad()
    seen = []
    h.register_hook(lambda g: seen.append(("tensor", h.grad is None)))
    h.grad_fn.register_prehook(lambda g: seen.append(("pre", h.grad is None)))
    h.sum().backward()
    assert seen == [("tensor", True), ("pre", False)]


def test_grad_fires_tensor_hooks_but_not_node_hooks_of_its_input(engine):
    log: list[str] = []
    x, h, accumulator = hooked_chain(engine, log)
    engine.autograd.grad(h.sum(), h)
    assert log == ["tensor 1", "tensor 2"]


def test_grad_fires_leaf_hooks_but_not_post_accumulate(engine):
    log: list[str] = []
    x, h, accumulator = hooked_chain(engine, log)
    engine.autograd.grad(h.sum(), x)
    assert log == [*NONLEAF_ORDER, "leaf"]


def test_backward_with_nonleaf_inputs_fires_node_hooks(engine):
    log: list[str] = []
    x, h, accumulator = hooked_chain(engine, log)
    h.sum().backward(inputs=[h])
    assert log == NONLEAF_ORDER


def test_tensor_hook_changes_the_gradient(engine):
    x = leaf(engine, 1.0)
    h = x * 2
    h.register_hook(lambda g: g * 3)
    h.register_hook(lambda g: None)
    h.register_hook(lambda g: g + 1)
    h.sum().backward()
    assert x.grad.tolist() == [8.0]


def test_leaf_hook_changes_what_is_accumulated(engine):
    x = leaf(engine, 1.0)
    x.register_hook(lambda g: g * 10)
    (x * 2 + x * 3).sum().backward()
    # Once, on the sum of both contributions.
    assert x.grad.tolist() == [50.0]


def test_tensor_hook_runs_once_per_backward_with_the_whole_gradient(engine):
    x = leaf(engine, 1.0)
    h = x * 1
    seen = []
    h.register_hook(lambda g: seen.append(g.tolist()))
    (h * 2 + h * 3 + h * 4).sum().backward()
    assert seen == [[9.0]]


def test_grad_returns_what_the_hook_made(engine):
    x = leaf(engine, 1.0)
    x.register_hook(lambda g: g * 10)
    (grad,) = engine.autograd.grad((x * 2).sum(), x)
    assert grad.tolist() == [20.0]


def test_hook_with_a_bad_result(engine, raises):
    x = leaf(engine, 1.0, 2.0)

    def run(result):
        handle = x.register_hook(lambda g: result)
        try:
            (x * 2).sum().backward()
        finally:
            handle.remove()

    with raises(RuntimeError, "hook '<lambda>' has changed the size of value"):
        run(engine.ones(3))
    with raises(RuntimeError, "hook '<lambda>' has changed the type of value"):
        run(engine.ones(2, dtype=engine.float64))
    with pytest.raises(TypeError):
        run(3)
    assert x.grad is None


def test_hook_on_a_tensor_without_grad(engine, raises):
    with raises(RuntimeError, "cannot register a hook on a tensor that doesn't require gradient"):
        engine.ones(1).register_hook(lambda g: g)


def test_removing_hooks(engine):
    x = leaf(engine, 1.0)
    handle = x.register_hook(lambda g: g * 100)
    handle.remove()
    handle.remove()
    x.sum().backward()
    assert x.grad.tolist() == [1.0]
    with x.register_hook(lambda g: g * 2):
        x.sum().backward()
    x.sum().backward()
    assert x.grad.tolist() == [4.0]


def test_removing_one_of_several_hooks(engine):
    x = leaf(engine, 1.0)
    log: list[str] = []
    handles = [x.register_hook(recorder(log, label)) for label in "abc"]
    handles[1].remove()
    x.sum().backward()
    assert log == ["a", "c"]


def test_hook_on_a_tensor_before_an_inplace_op_sees_the_old_place(engine):
    x = leaf(engine, 1.0)
    h = x * 2
    seen = []
    h.register_hook(lambda g: seen.append(("old", g.tolist())))
    h.mul_(5)
    h.register_hook(lambda g: seen.append(("new", g.tolist())))
    h.sum().backward()
    assert seen == [("new", [1.0]), ("old", [5.0])]


def test_post_hook_sees_and_replaces_gradients(engine):
    x = leaf(engine, 1.0)
    h = x * 2
    seen = []

    def hook(grad_inputs, grad_outputs):
        seen.append(([None if g is None else g.tolist() for g in grad_inputs], [g.tolist() for g in grad_outputs]))
        return tuple(None if g is None else g * 5 for g in grad_inputs)

    h.grad_fn.register_hook(hook)
    h.sum().backward()
    assert seen == [([[2.0], None], [[1.0]])]
    assert x.grad.tolist() == [10.0]


def test_pre_hook_replaces_gradients(engine):
    x = leaf(engine, 1.0)
    h = x * 2
    h.grad_fn.register_prehook(lambda grads: (grads[0] * 7,))
    h.sum().backward()
    assert x.grad.tolist() == [14.0]


def test_node_hook_with_the_wrong_number_of_values(engine, raises):
    words = "hook '<lambda>' has returned an incorrect number of values (got"
    h = leaf(engine, 1.0) * 2
    h.grad_fn.register_hook(lambda gi, go: gi[:1])
    with raises(RuntimeError, words + " 1, but expected 2)"):
        h.sum().backward()
    h = leaf(engine, 1.0) * 2
    h.grad_fn.register_prehook(lambda go: go + go)
    with raises(RuntimeError, words + " 2, but expected 1)"):
        h.sum().backward()


def test_node_hooks_can_be_removed(engine):
    x = leaf(engine, 1.0)
    h = x * 2
    log: list[str] = []
    handles = [h.grad_fn.register_hook(recorder(log, "post")), h.grad_fn.register_prehook(recorder(log, "pre"))]
    for handle in handles:
        handle.remove()
    h.sum().backward()
    assert log == []


def test_hooks_run_without_grad_mode_unless_a_graph_is_made(engine):
    x = leaf(engine, 2.0)
    y = (x**2).sum()
    modes = []
    x.register_hook(lambda g: modes.append(engine.is_grad_enabled()))
    y.backward(retain_graph=True)
    engine.autograd.grad(y, x, create_graph=True)
    assert modes == [False, True]


# post-accumulate hooks
def test_post_accumulate_hook_gets_the_leaf_with_its_grad(engine):
    x = leaf(engine, 1.0)
    seen = []

    def hook(param):
        seen.append((param is x, param.grad.tolist()))
        param.grad = None

    handle = x.register_post_accumulate_grad_hook(hook)
    (x * 2).sum().backward()
    assert seen == [(True, [2.0])]
    assert x.grad is None
    handle.remove()
    (x * 2).sum().backward()
    assert x.grad.tolist() == [2.0]


def test_post_accumulate_hook_may_step_the_leaf(engine):
    x = leaf(engine, 1.0)

    def hook(param):
        with engine.no_grad():
            param -= 0.5 * param.grad

    x.register_post_accumulate_grad_hook(hook)
    (x * 2).sum().backward()
    assert x.tolist() == [0.0]


def test_post_accumulate_hook_on_a_nonleaf(engine, raises):
    with raises(RuntimeError, "post accumulate grad hooks cannot be registered on non-leaf tensors"):
        (leaf(engine, 1.0) * 2).register_post_accumulate_grad_hook(lambda p: None)
    with raises(RuntimeError, "cannot register a hook on a tensor that doesn't require gradient"):
        engine.ones(1).register_post_accumulate_grad_hook(lambda p: None)


def test_post_accumulate_hook_sees_the_accumulated_value(engine):
    x = leaf(engine, 1.0)
    seen = []
    x.register_post_accumulate_grad_hook(lambda p: seen.append(p.grad.tolist()))
    for _ in range(2):
        (x * 2 + x).sum().backward()
    assert seen == [[3.0], [6.0]]


# multi-grad hooks
def test_multi_grad_hook_all(engine):
    x, y = leaf(engine, 1.0), leaf(engine, 2.0)
    a, b = x * 2, y * 3
    seen = []
    handle = engine.autograd.graph.register_multi_grad_hook(
        [a, b], lambda grads: seen.append([None if g is None else g.tolist() for g in grads])
    )
    (a + b).sum().backward(retain_graph=True)
    assert seen == [[[1.0], [1.0]]]
    a.sum().backward(retain_graph=True)
    assert seen[1:] == [[[1.0], None]]
    handle.remove()
    (a + b).sum().backward()
    assert len(seen) == 2


def test_multi_grad_hook_any(engine):
    x, y = leaf(engine, 1.0), leaf(engine, 2.0)
    a, b = x * 2, y * 3
    seen = []
    engine.autograd.graph.register_multi_grad_hook([a, b], lambda grad: seen.append(grad.tolist()), mode="any")
    (a * 5 + b * 5).sum().backward(retain_graph=True)
    assert seen == [[5.0]]
    with pytest.raises(ValueError, match="Expects mode to be one of"):
        engine.autograd.graph.register_multi_grad_hook([a, b], lambda grad: None, mode="some")


# 30: the order of nodes
def test_latest_created_runs_first_and_accumulators_before_all(engine):
    x, w = leaf(engine, 1.0), leaf(engine, 1.0)
    log: list[str] = []
    a, b, c = x.exp(), x.sin(), x.cos()
    for label, tensor in (("a", a), ("b", b), ("c", c), ("x", x), ("w", w)):
        tensor.register_hook(recorder(log, label))
    ((a + b + c).sum() + (w * 1).sum()).backward()
    assert log == ["w", "c", "b", "a", "x"]


@pytest.mark.parametrize("swap", [False, True])
def test_leaf_accumulates_before_a_ready_node(engine, swap):
    x, w = leaf(engine, 1.0), leaf(engine, 1.0)
    log: list[str] = []
    h = x.exp()
    h.register_hook(recorder(log, "h"))
    w.register_hook(recorder(log, "w"))
    (w + h if swap else h + w).sum().backward()
    assert log == ["w", "h"]


def test_creation_order_counts_and_not_the_order_of_use(engine):
    x = leaf(engine, 1.0)
    log: list[str] = []
    first, second = x * 2, x * 3
    first.register_hook(recorder(log, "first"))
    second.register_hook(recorder(log, "second"))
    (first + second).sum().backward()
    (second + first).sum()
    assert log == ["second", "first"]
