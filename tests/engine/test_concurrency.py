"""Several threads in the backward pass at once: no gradient is lost, no graph is used up twice."""

from __future__ import annotations

import contextlib
import sys
import threading

import pytest

import rushlight
from rushlight import FreedGraphError


@pytest.fixture(autouse=True)
def switching():
    """Threads take turns as often as the interpreter allows."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


def together(count, work):
    """Run work(number) in threads that start at the same moment; what they raised."""
    barrier = threading.Barrier(count)
    raised: list = [None] * count

    def run(number):
        barrier.wait()
        try:
            work(number)
        except BaseException as error:
            raised[number] = error

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return raised


@pytest.mark.parametrize("size", [1, 1000, 300_000])
def test_shared_leaves_lose_nothing(size) -> None:
    """Integers, so that the sum is exact. Large arrays let go of the interpreter's lock while they are added."""
    shared = [rushlight.zeros(size, dtype=rushlight.float64, requires_grad=True) for _ in range(3)]
    rounds = 60 if size < 10_000 else 6

    def work(number):
        for i in range(rounds):
            sum(
                (leaf * float(number + i) for leaf in shared), rushlight.zeros(1, dtype=rushlight.float64)
            ).sum().backward()

    assert together(4, work) == [None] * 4
    expected = sum(number + i for number in range(4) for i in range(rounds))
    for leaf in shared:
        assert leaf.grad.min().item() == leaf.grad.max().item() == expected


def test_shared_leaves_with_hooks_lose_nothing() -> None:
    leaf = rushlight.zeros(10, dtype=rushlight.float64, requires_grad=True)
    calls: list = []
    leaf.register_hook(lambda g: calls.append(1))

    def work(number):
        for _ in range(50):
            (leaf * 2).sum().backward()

    assert together(4, work) == [None] * 4
    assert leaf.grad.tolist() == [400] * 10 and len(calls) == 200


def test_one_unretained_graph_is_used_up_by_exactly_one() -> None:
    for _ in range(40):
        leaf = rushlight.ones(10, requires_grad=True)
        y = (leaf * leaf).exp().tanh().sum()
        raised = together(4, lambda number, y=y: y.backward())
        errors = [error for error in raised if error is not None]
        assert len(errors) == 3, raised
        assert all(type(error) is FreedGraphError for error in errors)
        assert leaf.grad is not None
        expected = rushlight.ones(10, requires_grad=True)
        (expected * expected).exp().tanh().sum().backward()
        assert leaf.grad.tolist() == expected.grad.tolist()


def test_a_retained_graph_serves_all() -> None:
    leaf = rushlight.ones(10, dtype=rushlight.float64, requires_grad=True)
    y = (leaf * leaf * 3).sum()
    assert together(4, lambda number: [y.backward(retain_graph=True) for _ in range(25)]) == [None] * 4
    assert leaf.grad.tolist() == [600] * 10


def test_grad_in_threads_gives_each_its_own() -> None:
    leaf = rushlight.ones(10, requires_grad=True)
    results: dict = {}

    def work(number):
        for _ in range(30):
            (found,) = rushlight.autograd.grad((leaf * float(number)).sum(), leaf)
            results.setdefault(number, set()).add(found[0].item())

    assert together(4, work) == [None] * 4
    assert results == {number: {float(number)} for number in range(4)}
    assert leaf.grad is None


def test_modes_stay_with_their_thread() -> None:
    """One thread works without gradients and another with create_graph, over the same leaves."""
    leaf = rushlight.ones(10, dtype=rushlight.float64, requires_grad=True)
    wrong: list = []

    def work(number):
        for _ in range(50):
            if number % 2:
                with rushlight.no_grad():
                    if (leaf * 2).requires_grad:
                        wrong.append("history under no_grad")
            else:
                (first,) = rushlight.autograd.grad((leaf**3).sum(), leaf, create_graph=True)
                (second,) = rushlight.autograd.grad(first.sum(), leaf)
                if second.tolist() != [6] * 10:
                    wrong.append(second.tolist())

    assert together(4, work) == [None] * 4
    assert not wrong


def test_an_error_in_one_thread_leaves_the_others_alone() -> None:
    leaf = rushlight.zeros(10, dtype=rushlight.float64, requires_grad=True)

    class Fail(rushlight.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            raise ValueError

    def work(number):
        for _ in range(50):
            if number == 0:
                with contextlib.suppress(ValueError):
                    Fail.apply(leaf * 1.0).sum().backward()
            else:
                (leaf * 1.0).sum().backward()

    assert together(3, work) == [None] * 3
    assert leaf.grad.tolist() == [100] * 10


def test_in_place_writes_of_one_thread_do_not_confuse_anothers_graph() -> None:
    """Versions are per memory: a write to other memory never makes a saved value look modified."""
    leaf = rushlight.ones(10, dtype=rushlight.float64, requires_grad=True)

    def work(number):
        mine = rushlight.ones(10, dtype=rushlight.float64)
        for _ in range(100):
            if number % 2:
                mine.add_(1)
            else:
                (leaf * mine).sum().backward()

    assert together(4, work) == [None] * 4
    assert leaf.grad.tolist() == [200] * 10
