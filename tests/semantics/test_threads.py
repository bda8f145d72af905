"""Threads, backward inside backward, deep graphs and their destruction (statement 31)."""

from __future__ import annotations

import gc
import threading
import weakref

import pytest

from tests.semantics.helpers import FREED, leaf

DEPTH = 100_000


def in_threads(count, work):
    """Run work(i) in that many threads at once; return what each returned or raised."""
    results = [None] * count
    barrier = threading.Barrier(count)

    def body(i):
        barrier.wait()
        try:
            results[i] = work(i)
        except Exception as error:
            results[i] = error

    threads = [threading.Thread(target=body, args=(i,), daemon=True) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads), "a thread never came back"
    return results


def test_grad_mode_is_per_thread(engine):
    with engine.no_grad():
        assert in_threads(1, lambda i: engine.is_grad_enabled()) == [True]
    assert engine.is_grad_enabled()

    def switch_off(i):
        engine.set_grad_enabled(False)
        return engine.is_grad_enabled()

    assert in_threads(1, switch_off) == [False]
    assert engine.is_grad_enabled()


def test_inference_mode_is_per_thread(engine):
    with engine.inference_mode():
        assert in_threads(1, lambda i: engine.is_inference_mode_enabled()) == [False]


def test_saved_tensor_hooks_are_per_thread(engine):
    packed = []

    def pack(tensor):
        packed.append(tensor)
        return tensor

    with engine.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        in_threads(1, lambda i: leaf(engine, 1.0).exp().sum().backward())
    assert packed == []


def test_threads_into_the_same_leaf_lose_nothing(engine):
    x = engine.zeros(50, requires_grad=True)

    def work(i):
        for _ in range(25):
            (x * 2).sum().backward()

    assert in_threads(4, work) == [None] * 4
    assert x.grad.tolist() == [200.0] * 50


def test_threads_on_one_retained_graph(engine):
    x = leaf(engine, 1.0)
    y = (x * 2 + 1).exp().sum()
    y.backward(retain_graph=True)
    once = x.grad.item()
    results = in_threads(4, lambda i: y.backward(retain_graph=True))
    assert results == [None] * 4
    assert x.grad.item() == pytest.approx(5 * once)


def test_threads_on_one_unretained_graph(engine):
    x = engine.ones(8, requires_grad=True)
    y = (x * x).sum()
    results = in_threads(4, lambda i: y.backward())
    errors = [r for r in results if r is not None]
    assert len(errors) == 3
    for error in errors:
        assert isinstance(error, RuntimeError)
        assert str(error).startswith(FREED)
    assert x.grad.tolist() == [2.0] * 8


def test_a_graph_built_in_one_thread_runs_in_another(engine):
    x = leaf(engine, 3.0)
    y = (x * x).sum()
    assert in_threads(1, lambda i: y.backward()) == [None]
    assert x.grad.tolist() == [6.0]


def test_exception_reaches_the_calling_thread(engine):
    x = leaf(engine, 3.0)
    h = x * x
    h.register_hook(lambda g: 1 / 0)
    (result,) = in_threads(1, lambda i: h.sum().backward())
    assert isinstance(result, ZeroDivisionError)


def test_backward_inside_a_hook(engine):
    x, w = leaf(engine, 2.0), leaf(engine, 3.0)

    def hook(g):
        with engine.enable_grad():
            (w * w).sum().backward()
        return g * w.grad

    h = x * 1
    h.register_hook(hook)
    h.sum().backward()
    assert w.grad.tolist() == [6.0]
    assert x.grad.tolist() == [6.0]


def test_backward_inside_a_function(engine):
    class Inner(engine.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            with engine.enable_grad():
                again = x.detach().requires_grad_()
                (again**3).sum().backward()
            return g * again.grad

    x = leaf(engine, 2.0)
    Inner.apply(x).sum().backward()
    assert x.grad.tolist() == [12.0]


def test_backward_inside_backward_many_deep(engine):
    class Nest(engine.autograd.Function):
        @staticmethod
        def forward(ctx, x, depth):
            ctx.depth = depth
            return x * 2

        @staticmethod
        def backward(ctx, g):
            if ctx.depth == 0:
                return g * 2, None
            with engine.enable_grad():
                inner = engine.ones(1, requires_grad=True)
                Nest.apply(inner, ctx.depth - 1).sum().backward()
            return g * inner.grad, None

    x = leaf(engine, 1.0)
    Nest.apply(x, 20).sum().backward()
    assert x.grad.tolist() == [2.0]


def test_deep_graph_works_and_dies_quietly(engine):
    x = leaf(engine, 1.0)
    y = x
    for _ in range(DEPTH):
        y = y + 0.0
    y.sum().backward()
    assert x.grad.tolist() == [1.0]
    del y
    gc.collect()


def test_deep_graph_that_never_ran_dies_quietly(engine):
    x = leaf(engine, 1.0)
    y = x
    for _ in range(DEPTH):
        y = y * 1.0
    del y
    gc.collect()
    # The leaf has survived and works.
    (x * 2).sum().backward()
    assert x.grad.tolist() == [2.0]


def test_deep_chain_of_inplace_writes_dies_quietly(engine):
    x = leaf(engine, 1.0)
    y = x.clone()
    for _ in range(DEPTH // 10):
        y.add_(0.0)
    y.sum().backward()
    assert x.grad.tolist() == [1.0]


def test_dropping_the_output_drops_the_graph(engine):
    class Token:
        """Something a weak reference can point at."""

    class Hold(engine.autograd.Function):
        @staticmethod
        def forward(ctx, x, token):
            ctx.token = token
            return x * 1

        @staticmethod
        def backward(ctx, g):
            return g, None

    token = Token()
    alive = weakref.ref(token)
    y = Hold.apply(leaf(engine, 1.0), token).sum()
    del token
    gc.collect()
    assert alive() is not None
    del y
    gc.collect()
    assert alive() is None


def test_grad_of_a_dead_graph_stays(engine):
    x = leaf(engine, 2.0)
    y = (x * x).sum()
    y.backward()
    del y
    gc.collect()
    assert x.grad.tolist() == [4.0]
