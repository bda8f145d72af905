"""A backward pass that stops in the middle: which leaves have their gradients, what is freed, and that it can go on."""

from __future__ import annotations

import pytest

import rushlight
from tests.conftest import load_engine


def failing(module, error):
    """A Function whose backward raises."""

    class Fail(module.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            raise error

    return Fail.apply


class Stop(Exception):
    """Not an error of either engine."""


def programs(module, fail):
    """name -> leaves and a loss, on which backward fails half way."""

    def leaves(count):
        return [module.ones(2, requires_grad=True) for _ in range(count)]

    a, b, c = leaves(3)
    yield "later branch is done", (a, b, c), (fail(a * 2) + (b * 3).exp() + c).sum()
    a, b, c = leaves(3)
    yield "earlier branch is not", (a, b, c), ((a * 2).exp() + fail(b * 3) + c).sum()
    a, b = leaves(2)
    yield "a leaf on both sides", (a, b), (fail(a * 2) + (a * 3).exp() * b).sum()
    a, b = leaves(2)
    yield "in a chain", (a, b), (fail((a * 2).exp()) * b).sum()
    a, b = leaves(2)
    b.grad = module.full((2,), 10.0)
    a.grad = module.full((2,), 20.0)
    yield "with gradients from before", (a, b), (fail(a * 2) + b * 3).sum()


NAMES = [name for name, _, _ in programs(rushlight, failing(rushlight, Stop()))]


@pytest.mark.parametrize("hooked", [False, True], ids=["", "hooked"])
@pytest.mark.parametrize(
    "error", [Stop(), KeyboardInterrupt(), RuntimeError("stop")], ids=lambda error: type(error).__name__
)
@pytest.mark.parametrize("name", NAMES)
def test_ready_leaves_have_their_gradients_as_in_torch(name, error, hooked) -> None:
    found = {}
    for engine in ("torch", "rushlight"):
        module = load_engine(engine)
        for program, leaves, loss in programs(module, failing(module, error)):
            if program != name:
                continue
            if hooked:
                leaves[-1].register_hook(lambda g: None)
            with pytest.raises(type(error)) as caught:
                loss.backward()
            if engine == "rushlight":
                assert caught.value is error
            found[engine] = [None if leaf.grad is None else leaf.grad.tolist() for leaf in leaves]
    for expected, given in zip(found["torch"], found["rushlight"], strict=True):
        assert given == (expected if expected is None else pytest.approx(expected))


@pytest.mark.parametrize("place", ["tensor", "pre", "post", "accumulate"])
def test_an_interrupt_in_a_hook_loses_nothing(place) -> None:
    """What ran is freed and its leaves have their gradients; after the hook is gone the rest can run."""
    early, late = (rushlight.ones(2, requires_grad=True) for _ in range(2))
    middle = early.exp()
    after = late.exp()
    loss = middle.sum() + after.sum()

    def interrupt(*args):
        raise KeyboardInterrupt

    handle = {
        "tensor": lambda: middle.register_hook(interrupt),
        "pre": lambda: middle.grad_fn.register_prehook(interrupt),
        "post": lambda: middle.grad_fn.register_hook(interrupt),
        "accumulate": lambda: early.register_post_accumulate_grad_hook(interrupt),
    }[place]()
    with pytest.raises(KeyboardInterrupt):
        loss.backward()
    expected = pytest.approx([2.7182817] * 2)
    assert late.grad.tolist() == expected, "the leaf that was ready has its gradient"
    assert (early.grad is not None) == (place == "accumulate")
    handle.remove()
    if place != "accumulate":
        assert middle.grad_fn.freed_by is None
        middle.sum().backward()
        assert early.grad.tolist() == expected
    assert after.grad_fn.freed_by is not None


def test_the_failing_node_and_those_behind_it_keep_their_values() -> None:
    x = rushlight.ones(2, requires_grad=True)
    behind = x.exp()
    node = failing(rushlight, Stop())(behind)
    front = node.exp()
    with pytest.raises(Stop):
        front.sum().backward()
    assert front.grad_fn.freed_by is not None and behind.grad_fn.freed_by is None
    behind.sum().backward()
    assert x.grad is not None


def test_the_modes_are_back_after_an_error() -> None:
    """Grad mode, and NumPy's handling of floating-point errors."""
    import numpy as np

    before = np.geterr()
    for create_graph in (False, True):
        x = rushlight.ones(2, requires_grad=True)
        y = failing(rushlight, Stop())(x * 2).sum()
        with pytest.raises(Stop):
            rushlight.autograd.grad(y, x, create_graph=create_graph)
        assert rushlight.is_grad_enabled() and np.geterr() == before
        with rushlight.no_grad():
            with pytest.raises(Stop):
                y.backward()
            assert not rushlight.is_grad_enabled()
    assert (x * 2).requires_grad


def test_a_retained_graph_can_be_tried_again() -> None:
    x = rushlight.ones(2, requires_grad=True)
    attempts = []

    class Sometimes(rushlight.autograd.Function):
        @staticmethod
        def forward(ctx, value):
            ctx.save_for_backward(value)
            return value * 2

        @staticmethod
        def backward(ctx, g):
            ctx.saved_tensors  # noqa: B018 - it must be there at every attempt
            attempts.append(g)
            if len(attempts) < 3:
                raise Stop
            return g * 2

    y = Sometimes.apply(x).sum()
    for _ in range(2):
        with pytest.raises(Stop):
            y.backward()
    y.backward()
    assert x.grad.tolist() == [2, 2]


def test_an_error_in_one_of_several_roots() -> None:
    a, b = (rushlight.ones(2, requires_grad=True) for _ in range(2))
    good, bad = (a * 2).sum(), failing(rushlight, Stop())(b).sum()
    with pytest.raises(Stop):
        rushlight.autograd.backward([good, bad])
    bad_first = (failing(rushlight, Stop())(b).sum(), (a * 2).sum())
    a.grad = None
    with pytest.raises(Stop):
        rushlight.autograd.backward(list(bad_first))
    assert a.grad.tolist() == [2, 2], "made later, so it ran first"
