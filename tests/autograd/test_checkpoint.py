"""Checkpointing, against real torch: gradients, number of runs, random numbers, and the errors when runs differ."""

from __future__ import annotations

import pytest

from tests.autograd.helpers import agree, attempt, part


def leaf(t, *values):
    return t.tensor(values or (1.0, 2.0, 3.0), dtype=t.float64, requires_grad=True)


def counted(log, label="run"):
    def work(x):
        log.append(label)
        return x.exp().sin() * x

    return work


@pytest.mark.parametrize("reentrant", [False, True])
def test_gradients_and_runs(reentrant):
    def scenario(t):
        checkpoint = part(t, "utils.checkpoint").checkpoint
        log = []
        x, w = leaf(t), leaf(t)
        y = checkpoint(counted(log), x * w, use_reentrant=reentrant)
        y.sum().backward(retain_graph=True)
        y.sum().backward()
        return log, y, x.grad, w.grad, attempt(lambda: y.sum().backward())

    agree(scenario)


@pytest.mark.parametrize("reentrant", [False, True])
@pytest.mark.parametrize("preserve", [False, True])
def test_random_numbers(reentrant, preserve):
    def scenario(t):
        checkpoint = part(t, "utils.checkpoint").checkpoint
        x = leaf(t)
        y = checkpoint(
            lambda a: a * t.rand(3, dtype=t.float64) * a, x, use_reentrant=reentrant, preserve_rng_state=preserve
        )
        t.rand(5)
        y.sum().backward()
        return y, x.grad, t.rand(3)

    agree(scenario)


def test_several_arguments_and_outputs():
    def scenario(t):
        checkpoint = part(t, "utils.checkpoint").checkpoint
        made = []
        for reentrant in (False, True):
            x, w = leaf(t), leaf(t, 4.0, 5.0, 6.0)
            a, word, b = checkpoint(lambda p, k, q: (p * q * k, "word", q.exp()), x, 3, w, use_reentrant=reentrant)
            (a.sum() + b.sum()).backward()
            made.append((word, x.grad, w.grad))
        y = checkpoint(lambda p, *, k: p * p * k, x, use_reentrant=False, k=3)
        (g,) = t.autograd.grad(y.sum(), x, create_graph=True)
        return made, g, t.autograd.grad(g.sum(), x)

    agree(scenario)


def test_nested_and_sequential():
    def scenario(t):
        module = part(t, "utils.checkpoint")
        log = []
        x = leaf(t)

        def outer(a):
            log.append("outer")
            return module.checkpoint(counted(log, "inner"), a * 2, use_reentrant=False) * a

        module.checkpoint(outer, x, use_reentrant=False).sum().backward()
        steps = [lambda a: a * 2, lambda a: a.exp(), lambda a: a.sin(), lambda a: a * a, lambda a: a.cos()]
        z = leaf(t)
        for reentrant in (False, True):
            module.checkpoint_sequential(steps, 2, z * 1, use_reentrant=reentrant).sum().backward()
        return set(log), x.grad, z.grad

    agree(scenario)


def test_early_stop():
    def scenario(t):
        module = part(t, "utils.checkpoint")
        log = []

        def work(a):
            b = a.exp()
            log.append("middle")
            b = b.sin()
            log.append("end")
            return b

        for early in (True, False):
            with module.set_checkpoint_early_stop(early):
                y = module.checkpoint(work, leaf(t), use_reentrant=False)
            y.sum().backward()
        return log

    agree(scenario)


def test_runs_that_differ():
    def scenario(t):
        checkpoint = part(t, "utils.checkpoint").checkpoint
        calls = [0]

        def fewer(a):
            calls[0] += 1
            return (a * a).sin() if calls[0] % 2 else a * a

        def more(a):
            calls[0] += 1
            return a * a if calls[0] % 2 else (a * a).sin()

        def other_shape(a):
            calls[0] += 1
            return (a * a)[: 2 + calls[0] % 2].sin()

        tries = []
        for work in (fewer, more, other_shape):
            calls[0] = 0
            y = checkpoint(work, leaf(t), use_reentrant=False, early_stop=False)
            tries.append(attempt(lambda y=y: y.sum().backward(), 7))
        return tries

    agree(scenario)


def test_misuse():
    def scenario(t):
        checkpoint = part(t, "utils.checkpoint").checkpoint
        x = leaf(t)
        y = checkpoint(lambda a: a * a, x, use_reentrant=True)
        z = checkpoint(lambda a: a.detach() * 2, x, use_reentrant=True)
        return (
            attempt(lambda: t.autograd.grad(y.sum(), x)),
            attempt(lambda: z.sum().backward()),
            attempt(lambda: checkpoint(lambda a, b: a, x, use_reentrant=True, b=3)),
            attempt(lambda: checkpoint(lambda a: a, x, use_reentrant=False, determinism_check="some")),
            checkpoint(lambda a: a * 2, t.ones(2), use_reentrant=True).requires_grad,
            y.grad_fn.name(),
        )

    agree(scenario)


def test_inside_no_grad():
    def scenario(t):
        checkpoint = part(t, "utils.checkpoint").checkpoint
        with t.no_grad():
            made = checkpoint(lambda a: a * 2, leaf(t), use_reentrant=False)
        return made

    agree(scenario)
