"""What a backward pass lets go of: saved values die node by node, graphs die without the garbage collector."""

from __future__ import annotations

import contextlib
import gc
import sys
import tracemalloc
import weakref

import numpy as np
import pytest

import rushlight
from rushlight import nn


@contextlib.contextmanager
def no_collector():
    """Reference counts alone must do."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


class Probe(rushlight.autograd.Function):
    """Passes its input on, and calls something while the gradient passes back. The short pass stays in use."""

    @staticmethod
    def forward(ctx, x, call):
        ctx.call = call
        return x.clone()

    @staticmethod
    def backward(ctx, g):
        ctx.call()
        return g, None


def alive(references) -> int:
    return sum(reference() is not None for reference in references)


def chain(steps: int, probe, size: int = 10):
    """exp(0.1 * ...) again and again, each saving its result; in the middle a probe. Leaf, loss, saved arrays."""
    x = rushlight.zeros(size, requires_grad=True)
    y, references = x, []
    for i in range(steps):
        if i == steps // 2:
            y = Probe.apply(y, probe)
        y = (y * 0.1).exp()
        references.append(weakref.ref(y._array))
    return x, y.sum(), references


@pytest.mark.parametrize("hooked", [False, True], ids=["short pass", "full pass"])
def test_saved_arrays_die_node_by_node(hooked) -> None:
    counts = []
    with no_collector():
        x, loss, references = chain(20, lambda: counts.append(alive(references)))
        if hooked:
            x.register_hook(lambda g: None)
        assert alive(references) == 20
        loss.backward()
        assert counts == [10], "the later half of the saved values is gone when the middle is reached"
        assert alive(references) == 0
        assert loss.grad_fn is not None  # the graph itself is still there


@pytest.mark.parametrize("hooked", [False, True], ids=["short pass", "full pass"])
def test_retained_values_stay(hooked) -> None:
    counts = []
    with no_collector():
        x, loss, references = chain(20, lambda: counts.append(alive(references)))
        if hooked:
            x.register_hook(lambda g: None)
        loss.backward(retain_graph=True)
        assert counts == [20] and alive(references) == 20
        loss.backward()
        assert counts == [20, 10] and alive(references) == 0


def test_gradients_die_on_the_way() -> None:
    """Between two nodes there is one gradient, not a trail of them."""
    seen, counts = [], []

    class Keep(rushlight.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            made = g * 1.0
            seen.append(weakref.ref(made._array))
            counts.append(alive(seen))
            return made

    with no_collector():
        x = rushlight.zeros(10, requires_grad=True)
        y = x
        for _ in range(10):
            y = Keep.apply(y) + 1
        y.sum().backward()
        assert max(counts) <= 2
        assert alive(seen) <= 1  # the last one may have become x.grad


def test_memory_falls_during_backward() -> None:
    """Half way through, about half of what the forward pass saved has been given back."""
    size, steps = 1 << 17, 16
    figures = {}
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        _, loss, _ = chain(
            steps, lambda: figures.setdefault("middle", tracemalloc.get_traced_memory()[0] - before), size
        )
        figures["full"] = tracemalloc.get_traced_memory()[0] - before
        tracemalloc.reset_peak()
        loss.backward()
        figures["peak"] = tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
    one = size * 4
    assert figures["full"] >= steps * one
    assert figures["middle"] < figures["full"] * 0.7
    assert figures["peak"] < figures["full"] + 4 * one, (
        "backward needs a few arrays beyond the saved ones, not a second set"
    )


def with_hooks(x):
    y = x * x
    y.register_hook(lambda g: g * 2)
    y.retain_grad()
    y.grad_fn.register_hook(lambda inputs, outputs: None)
    y.grad_fn.register_prehook(lambda outputs: None)
    return y.exp()


def with_views(x):
    y = x.clone()
    y[0].mul_(2)
    y.view(-1)[1:].exp_()
    first, second = y.unbind()
    return first * second


def with_visible_nodes(x):
    y = x.exp().tanh()
    _ = y.grad_fn.next_functions[0][0].next_functions[0][0].next_functions[0][0].variable
    _ = y.grad_fn._saved_result
    return y


def with_second_order(x):
    (first,) = rushlight.autograd.grad(x.exp().sum(), x, create_graph=True)
    return first * x


def with_a_module(x):
    return nn.Sequential(nn.Linear(2, 4), nn.Tanh(), nn.LayerNorm(4), nn.Linear(4, 1))(x)


class Square(rushlight.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        result = x * x
        ctx.save_for_backward(x, result)
        return result

    @staticmethod
    def backward(ctx, g):
        x, _ = ctx.saved_tensors
        return 2 * g * x


BUILDERS = {
    "operators": lambda x: (x * x + x / 2).exp().sigmoid(),
    "products": lambda x: rushlight.einsum("ij,kj->ik", x, x) @ x,
    "many outputs": lambda x: x.max(dim=0).values + x.sort(dim=1).values[0] + rushlight.cat(x.split(1)).sum(0),
    "indexing": lambda x: x[[0, 1]] + x[x > 0].sum() + rushlight.where(x > 0, x, -x),
    "hooks": with_hooks,
    "views and writes": with_views,
    "visible nodes": with_visible_nodes,
    "a function of one's own": lambda x: Square.apply(x),
    "second order": with_second_order,
    "modules": with_a_module,
}


@pytest.mark.parametrize("ran", [False, True], ids=["dropped", "ran and dropped"])
@pytest.mark.parametrize("name", BUILDERS)
def test_a_graph_dies_without_the_collector(name, ran) -> None:
    with no_collector():
        x = rushlight.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
        middle = x * 1.5
        y = BUILDERS[name](middle)
        references = [weakref.ref(one) for one in (middle, middle._array, y, y._array)]
        if ran:
            y.sum().backward()
        del middle, y
        left = [reference() for reference in references]
        assert left == [None] * 4, f"kept alive by {[gc.get_referrers(one) for one in left if one is not None]}"


def test_an_error_in_the_middle_leaves_no_cycle() -> None:
    with no_collector():
        x = rushlight.ones(3, requires_grad=True)
        y = (x * x).sum()
        references = [weakref.ref(y), weakref.ref(y._array)]
        y.backward()
        with contextlib.suppress(RuntimeError):
            y.backward()
        del y
        assert alive(references) == 0


def test_backward_leaves_nothing_for_the_collector() -> None:
    """A training loop makes no cyclic garbage."""
    model = nn.Sequential(nn.Linear(3, 5), nn.ReLU(), nn.Linear(5, 2))
    data, target = rushlight.ones(4, 3), rushlight.zeros(4, 2)

    def step():
        loss = nn.functional.mse_loss(model(data), target)
        model.zero_grad()
        loss.backward()

    step()
    with no_collector():
        for _ in range(5):
            step()
        assert gc.collect() == 0


DEEP = 100_000
CHAINS = {
    "one edge": lambda y, x: y.neg(),
    "saving": lambda y, x: y * 0.99999,
    "two edges": lambda y, x: y * 0.5 + y * 0.5,
    "to a leaf": lambda y, x: y + x,
    "views": lambda y, x: y.view(1),
    "many outputs": lambda y, x: y.unbind()[0].view(1),
}


@pytest.mark.parametrize("ran", [False, True], ids=["dropped", "ran and dropped"])
@pytest.mark.parametrize("name", CHAINS)
def test_deep_graphs_run_and_die_quietly(name, ran) -> None:
    steps = DEEP if name not in ("views", "many outputs") else 3000  # a view remembers each step from its base
    with no_collector():
        x = rushlight.ones(1, requires_grad=True)
        y = x * 1.0
        reference = weakref.ref(y)
        for _ in range(steps):
            y = CHAINS[name](y, x)
        if ran:
            y.sum().backward()
            assert np.isfinite(x.grad.item())
        del y
        assert reference() is None


def test_a_deep_graph_of_functions_and_hooks() -> None:
    x = rushlight.ones(1, requires_grad=True)
    fired = []
    y = x
    for i in range(5000):
        y = Square.apply(y)
        if i % 1000 == 0:
            y.register_hook(fired.append)
    y.sum().backward()
    assert len(fired) == 5
    del y
    assert sys.getrecursionlimit() < 5000


def test_second_order_through_a_deep_graph() -> None:
    x = rushlight.ones(1, requires_grad=True)
    y = x
    for _ in range(10_000):
        y = y * 1.0
    (first,) = rushlight.autograd.grad((y * y).sum(), x, create_graph=True)
    first.sum().backward()
    assert x.grad.item() == 2
