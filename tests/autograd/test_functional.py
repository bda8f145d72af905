"""vjp, jvp, jacobian, hessian, vhp and hvp, against real torch."""

from __future__ import annotations

import itertools

import pytest

from tests.autograd.helpers import agree, attempt, part


def data(t):
    x = t.tensor([[1.0, 2.0, 0.5], [0.3, -1.0, 2.0]], dtype=t.float64)
    y = t.tensor([0.2, 0.5, 1.5], dtype=t.float64)
    return x, y


def rows(a):
    return (a.exp() * a).sum(1)


def both(a, b):
    return (a * b).sin().sum(0)


def cubes(a):
    return (a**3).sum()


def mixed(a, b):
    return (a**3 * b.exp()).sum()


@pytest.mark.parametrize("create_graph", [False, True])
def test_products(create_graph):
    def scenario(t):
        functional, (x, y) = part(t, "autograd.functional"), data(t)
        x.requires_grad_()
        made = [
            functional.vjp(rows, x, y[:2], create_graph=create_graph),
            functional.vjp(both, (x, y), y, create_graph=create_graph),
            functional.vjp(cubes, x, create_graph=create_graph),
            functional.jvp(rows, x, x.detach() + 1, create_graph=create_graph),
            functional.jvp(both, (x, y), (x.detach(), y), create_graph=create_graph),
            functional.vhp(cubes, x, x.detach(), create_graph=create_graph),
            functional.vhp(mixed, (x, y), (x.detach(), y), create_graph=create_graph),
            functional.hvp(cubes, x, x.detach(), create_graph=create_graph),
            functional.hvp(mixed, (x, y), (x.detach(), y), create_graph=create_graph),
        ]
        if create_graph:
            made.append(t.autograd.grad(made[-1][1][0].sum(), x))
        return made

    agree(scenario)


@pytest.mark.parametrize("create_graph", [False, True])
def test_matrices(create_graph):
    def scenario(t):
        functional, (x, y) = part(t, "autograd.functional"), data(t)
        x.requires_grad_()
        made = [
            functional.jacobian(rows, x, create_graph=create_graph),
            functional.jacobian(both, (x, y), create_graph=create_graph),
            functional.jacobian(lambda a: (a.sum(), a * 2), y, create_graph=create_graph),
            functional.hessian(cubes, x, create_graph=create_graph),
            functional.hessian(mixed, (x, y), create_graph=create_graph),
        ]
        if create_graph:
            made.append(t.autograd.grad(made[0].sum(), x))
        return made

    agree(scenario)


def test_vectorized_and_forward():
    def scenario(t):
        functional, (x, y) = part(t, "autograd.functional"), data(t)
        options = dict(vectorize=True, outer_jacobian_strategy="forward-mode")
        return [
            functional.jacobian(both, (x, y), vectorize=True),
            functional.jacobian(both, (x, y), vectorize=True, strategy="forward-mode"),
            functional.jacobian(lambda a: (a.softmax(1), a.sum()), x, vectorize=True, strategy="forward-mode"),
            functional.hessian(cubes, y, vectorize=True).detach(),
            functional.hessian(lambda a: a.exp().prod(), y, **options).detach(),
        ]

    agree(scenario)


FUNCTIONS = {"linear": lambda a: a.sum(), "square": lambda a: (a * a).sum(), "constant": lambda a: a.detach().sum()}


@pytest.mark.parametrize(
    ("name", "kind", "create_graph"),
    list(itertools.product(["vjp", "jvp", "jacobian", "hessian", "vhp", "hvp"], FUNCTIONS, [False, True])),
)
def test_strict(name, kind, create_graph):
    def scenario(t):
        function, (_, y) = getattr(part(t, "autograd.functional"), name), data(t)
        vectors = () if name in ("vjp", "jacobian", "hessian") else (y,)
        return [
            attempt(lambda s=strict: function(FUNCTIONS[kind], y, *vectors, create_graph=create_graph, strict=s), 12)
            for strict in (False, True)
        ]

    agree(scenario)


def test_misuse():
    def scenario(t):
        f, (x, y) = part(t, "autograd.functional"), data(t)
        return [
            attempt(step)
            for step in (
                lambda: f.vjp(rows, x),
                lambda: f.jvp(rows, x),
                lambda: f.vjp(rows, x, y),
                lambda: f.jvp(rows, x, y),
                lambda: f.jvp(both, (x, y), y),
                lambda: f.jacobian(rows, 3),
                lambda: f.jacobian(lambda a: 3, x),
                lambda: f.jacobian(rows, [x]),
                lambda: f.hessian(rows, x),
                lambda: f.hessian(lambda a: (a.sum(), a.sum()), x),
                lambda: f.vhp(rows, x, x),
                lambda: f.hvp(rows, x, x),
                lambda: f.jacobian(rows, x, strategy="sideways"),
                lambda: f.jacobian(rows, x, strategy="forward-mode"),
                lambda: f.jacobian(rows, x, strategy="forward-mode", create_graph=True),
                lambda: f.jacobian(rows, x, strategy="forward-mode", strict=True),
                lambda: f.jacobian(rows, x, vectorize=True, strict=True),
            )
        ]

    agree(scenario)
