"""gradcheck and gradgradcheck: they accept what real torch accepts, and refuse what it refuses."""

from __future__ import annotations

import pytest

import rushlight
from tests.autograd.helpers import agree, attempt, part


def wrong(t, factor, forward=lambda a: a * 2):
    return type(
        "Wrong",
        (t.autograd.Function,),
        {"forward": staticmethod(lambda ctx, a: forward(a)), "backward": staticmethod(lambda ctx, g: g * factor)},
    )


def inputs(t):
    x = t.tensor([0.3, -1.2, 2.0], dtype=t.float64, requires_grad=True)
    c = t.tensor([1 + 2j, 0.5 - 1j], dtype=t.complex128, requires_grad=True)
    return x, c


RIGHT = {
    "elementwise": lambda x, c: x.exp() * x,
    "two_outputs": lambda x, c: (x.sum(), x * 3),
    "complex": lambda x, c: c * c.exp(),
    "complex_to_real": lambda x, c: c.abs(),
    "both": lambda x, c: x.sum() * c,
    "integers_too": lambda x, c: (x.abs(), x.argmax()),
    "reshaped": lambda x, c: x.view(3, 1) @ x.view(1, 3),
}


@pytest.mark.parametrize("name", RIGHT)
def test_right(name):
    def scenario(t):
        return (
            t.autograd.gradcheck(RIGHT[name], inputs(t), check_forward_ad=True),
            t.autograd.gradgradcheck(RIGHT[name], inputs(t)),
        )

    agree(scenario)


def test_wrong():
    def scenario(t):
        x, _ = inputs(t)
        check, again = t.autograd.gradcheck, t.autograd.gradgradcheck
        noisy = [0]

        def different(ctx, g):
            noisy[0] += 1
            return g * 2 + 1e-7 * noisy[0] * g

        irregular = type(
            "Irregular",
            (t.autograd.Function,),
            {"forward": staticmethod(lambda ctx, a: a * 2), "backward": staticmethod(different)},
        )
        constant = type(
            "Constant",
            (t.autograd.Function,),
            {"forward": staticmethod(lambda ctx, a: a * 0), "backward": staticmethod(lambda ctx, g: g * 0 + 1e-9)},
        )
        return (
            check(wrong(t, 2).apply, x),
            check(wrong(t, 3).apply, x, raise_exception=False),
            attempt(lambda: check(wrong(t, 3).apply, x), 10),
            attempt(lambda: check(irregular.apply, x)),
            attempt(lambda: check(constant.apply, x)),
            attempt(lambda: check(lambda a: a.detach() * 2, x)),
            check(lambda a: a.detach() * 0, x),
            check(irregular.apply, x, nondet_tol=1e-3),
            again(lambda a: a**3, x),
            attempt(lambda: again(wrong(t, 2, lambda a: a * 2).apply, x)),
            attempt(lambda: check(lambda a: a * 2, x.detach())),
            attempt(lambda: check(lambda a: a * 2, t.ones(1, dtype=t.float64, requires_grad=True).expand(3))),
        )

    agree(scenario)


def test_the_error_has_its_name():
    def scenario(t):
        module = part(t, "autograd.gradcheck")
        try:
            module.gradcheck(wrong(t, 3).apply, inputs(t)[0])
        except module.GradcheckError as error:
            return isinstance(error, RuntimeError)

    agree(scenario)


def test_the_name_is_callable_however_it_was_reached():
    def scenario(t):
        x, _ = inputs(t)
        part(t, "autograd.gradcheck")
        return t.autograd.gradcheck(lambda a: a * 2, x), t.autograd.gradgradcheck(lambda a: a * a, x)

    agree(scenario)
    module = part(rushlight, "autograd.gradcheck")
    assert module(lambda a: a * 2, inputs(rushlight)[0])


def test_forward_over_reverse():
    def scenario(t):
        return t.autograd.gradgradcheck(lambda x, c: x.exp() * x.softmax(0), inputs(t), check_fwd_over_rev=True)

    agree(scenario)
