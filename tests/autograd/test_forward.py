"""Forward mode, against real torch."""

from __future__ import annotations

import pytest

from tests.autograd.helpers import agree, attempt, part, scenarios

OPERATIONS = {
    "exp": lambda t, a: a.exp(),
    "square": lambda t, a: a * a,
    "constant_times": lambda t, a: 3 - a * 2,
    "matmul": lambda t, a: a @ a.t(),
    "sum": lambda t, a: a.sum(0),
    "select": lambda t, a: a[1],
    "gather": lambda t, a: a[:, t.tensor([0, 2])],
    "softmax": lambda t, a: a.softmax(1),
    "cat": lambda t, a: t.cat([a, t.ones(1, 3, dtype=t.float64)]),
    "max": lambda t, a: a.max(1)[0],
    "std": lambda t, a: a.std(0),
    "mean": lambda t, a: a.mean(),
    "reciprocal": lambda t, a: 1 / a,
    "cumsum": lambda t, a: a.cumsum(0),
    "where": lambda t, a: t.where(a > 0, a, a * 2),
    "norm": lambda t, a: a.norm(),
    "unbind": lambda t, a: t.stack(a.unbind(0)[::-1]),
    "clamp": lambda t, a: a.clamp(0, 1),
    "prod": lambda t, a: a.prod(0),
    "broadcast": lambda t, a: a + t.ones(3, 2, 3, dtype=t.float64),
    "expand": lambda t, a: a.unsqueeze(0).expand(2, 2, 3),
    "sort": lambda t, a: a.sort(1)[0],
    "to_float32": lambda t, a: a.to(t.float32) * 2,
    "compare": lambda t, a: a > 0,
    "detach": lambda t, a: a.detach(),
    "no_grad": lambda t, a: under(t.no_grad, lambda: a * 3),
    "inference": lambda t, a: under(t.inference_mode, lambda: a * 3).clone(),
}
COMPLEX = {
    "exp": lambda a: a.exp(),
    "abs": lambda a: a.abs(),
    "conj": lambda a: a.conj() * 1,
    "real": lambda a: a.real * 1,
    "sgn": lambda a: a.sgn(),
    "product": lambda a: a * a,
    "angle": lambda a: a.angle(),
    "reciprocal": lambda a: 1 / a,
}


def under(mode, function):
    with mode():
        return function()


def matrix(t):
    return t.tensor([[1.0, 2.0, 0.5], [0.3, -1.0, 2.0]], dtype=t.float64)


@pytest.mark.parametrize("name", OPERATIONS)
def test_operations(name):
    def scenario(t):
        forward_ad = part(t, "autograd.forward_ad")
        with forward_ad.dual_level():
            dual = forward_ad.make_dual(matrix(t), matrix(t).cos())
            primal, tangent = forward_ad.unpack_dual(OPERATIONS[name](t, dual))
            return primal.clone(), tangent

    agree(scenario)


@pytest.mark.parametrize("name", COMPLEX)
def test_complex(name):
    def scenario(t):
        forward_ad = part(t, "autograd.forward_ad")
        with forward_ad.dual_level():
            c = t.tensor([1 + 2j, 0.5 - 1j], dtype=t.complex128)
            return forward_ad.unpack_dual(COMPLEX[name](forward_ad.make_dual(c, c * 1j))).tangent

    agree(scenario)


def writes(t):
    forward_ad = part(t, "autograd.forward_ad")
    made = []
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(matrix(t), matrix(t) * 2)

        def tangent(tensor):
            made.append(forward_ad.unpack_dual(tensor).tangent)

        e = dual + 0
        e.add_(1)
        e.mul_(2)
        tangent(e)
        tangent(dual)
        e = dual.clone()
        e[0].mul_(5)
        tangent(e)
        b = t.zeros(2, 3, dtype=t.float64)
        b[1].add_(dual[0])
        tangent(b)
        tangent(b[0])
        e = dual.clone()
        e.mul_(dual)
        tangent(e)
    return made


def forward_over_reverse(t):
    forward_ad = part(t, "autograd.forward_ad")
    y = t.tensor([0.2, 0.5, 1.5], dtype=t.float64)
    made = []
    with forward_ad.dual_level():
        for create_graph in (False, True):
            p = forward_ad.make_dual(y.clone().requires_grad_(), t.ones(3, dtype=t.float64))
            (g,) = t.autograd.grad((p.exp() * p.sin() + p.softmax(0) * p).sum(), p, create_graph=create_graph)
            made.append(forward_ad.unpack_dual(g).tangent.detach())
    return made


def reverse_over_forward(t):
    forward_ad = part(t, "autograd.forward_ad")
    with forward_ad.dual_level():
        q = t.tensor([0.2, 0.5, 1.5], dtype=t.float64).requires_grad_()
        p = forward_ad.make_dual(q, t.ones(3, dtype=t.float64))
        tangent = forward_ad.unpack_dual(p.exp() * p.sin() * p).tangent
        g = t.autograd.grad((tangent**2).sum(), q)[0]
    return g.detach()


def levels(t):
    forward_ad = part(t, "autograd.forward_ad")
    x = t.ones(2)

    def nested():
        with forward_ad.dual_level():
            pass

    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, t.ones(2))
        tries = [
            attempt(nested),
            attempt(lambda: forward_ad.make_dual(dual, x)),
            attempt(lambda: forward_ad.make_dual(x, t.ones(3))),
            attempt(lambda: forward_ad.make_dual(x.int(), x)),
            attempt(lambda: forward_ad.make_dual(x, x.int())),
            forward_ad.unpack_dual(dual * 2).primal.tolist(),
        ]
    with forward_ad.dual_level():
        again = forward_ad.unpack_dual(dual).tangent
    return (
        tries,
        again,
        attempt(lambda: forward_ad.make_dual(x, x)),
        attempt(forward_ad.exit_dual_level),
        forward_ad.unpack_dual(dual),
    )


def by_hand(t):
    forward_ad = part(t, "autograd.forward_ad")
    level = forward_ad.enter_dual_level()
    dual = forward_ad.make_dual(t.ones(2), t.ones(2), level=level)
    found = forward_ad.unpack_dual(dual * 3, level=level).tangent
    forward_ad.exit_dual_level(level=level)
    return level, found


@scenarios(writes, forward_over_reverse, reverse_over_forward, levels, by_hand)
def test_forward(scenario):
    agree(scenario)
