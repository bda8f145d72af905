"""Grad modes as context managers and decorators, against real torch."""

from __future__ import annotations

import threading

from tests.autograd.helpers import agree, attempt, scenarios


def nesting(t):
    seen = [t.is_grad_enabled()]
    with t.no_grad():
        seen.append(t.is_grad_enabled())
        with t.enable_grad():
            seen.append(t.is_grad_enabled())
            with t.set_grad_enabled(False):
                seen.append(t.is_grad_enabled())
            seen.append(t.is_grad_enabled())
        seen.append(t.is_grad_enabled())
    return [*seen, t.is_grad_enabled()]


def exceptions_restore(t):
    for mode in (t.no_grad, t.inference_mode, lambda: t.set_grad_enabled(False)):
        attempt(lambda mode=mode: enter_and_fail(mode))
    return t.is_grad_enabled(), t.is_inference_mode_enabled()


def enter_and_fail(mode):
    with mode():
        raise ValueError("on purpose")


def decorators(t):
    seen = []
    for decorator in (
        t.no_grad,
        t.no_grad(),
        t.enable_grad,
        t.enable_grad(),
        t.inference_mode,
        t.inference_mode(),
        t.inference_mode(False),
        t.set_grad_enabled(False),
        t.set_grad_enabled(True),
    ):

        @decorator
        def work(value, *, scale=2):
            """Says what it is."""
            return value * scale, t.is_grad_enabled(), t.is_inference_mode_enabled()

        seen.append((work(3, scale=5), work.__name__, work.__doc__, t.is_grad_enabled()))
    return seen


def plain_call(t):
    t.set_grad_enabled(False)
    off = t.is_grad_enabled()
    t.set_grad_enabled(True)
    return off, t.is_grad_enabled()


def set_in_a_block(t):
    switch = t.set_grad_enabled(False)
    with switch:
        inside = t.is_grad_enabled()
    return inside, t.is_grad_enabled()


def generators(t):
    seen = []

    @t.no_grad()
    def numbers():
        try:
            got = yield t.is_grad_enabled()
            seen.append((got, t.is_grad_enabled()))
            try:
                yield t.is_grad_enabled()
            except KeyError:
                seen.append(("caught", t.is_grad_enabled()))
            yield 3
        finally:
            seen.append(("closed", t.is_grad_enabled()))
        return "never"

    running = numbers()
    seen.append((next(running), t.is_grad_enabled()))
    seen.append((running.send("hello"), t.is_grad_enabled()))
    seen.append((running.throw(KeyError("x")), t.is_grad_enabled()))
    running.close()

    @t.no_grad()
    def ends():
        yield 1
        return 7

    def outer():
        seen.append((yield from ends()))

    return list(outer()), seen


def threads_have_their_own(t):
    seen = []
    with t.no_grad():
        worker = threading.Thread(target=lambda: seen.append(t.is_grad_enabled()))
        worker.start()
        worker.join()
    return seen


def nothing_is_recorded(t):
    x = t.ones(2, requires_grad=True)
    with t.no_grad():
        y = x * 2
    with t.inference_mode():
        z = x * 2
    w = x * 2
    return y.requires_grad, z.requires_grad, z.is_inference(), w.requires_grad, attempt(lambda: x * z)


def inference_inside_out(t):
    with t.inference_mode():
        with t.inference_mode(False):
            inner = (t.is_grad_enabled(), t.is_inference_mode_enabled())
        with t.enable_grad():
            grad = (t.is_grad_enabled(), (t.ones(1, requires_grad=True) * 2).requires_grad)
        outer = (t.is_grad_enabled(), t.is_inference_mode_enabled())
    return inner, grad, outer, t.is_grad_enabled()


@scenarios(
    nesting,
    exceptions_restore,
    decorators,
    plain_call,
    set_in_a_block,
    generators,
    threads_have_their_own,
    nothing_is_recorded,
    inference_inside_out,
)
def test_modes(scenario):
    agree(scenario)
