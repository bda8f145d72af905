"""Hooks on saved tensors and over several gradients, gradient edges, versions, anomaly mode; against real torch."""

from __future__ import annotations

import warnings

import pytest

import rushlight
from tests.autograd.helpers import agree, attempt, part, scenarios


def leaf(t, *values):
    return t.tensor(values or (1.0, 2.0, 3.0), dtype=t.float64, requires_grad=True)


def graph(t):
    return part(t, "autograd.graph")


def packing(t):
    log = []
    x = leaf(t)

    def pack(saved):
        log.append(("pack", saved.tolist()))
        return saved * 2

    def unpack(packed):
        log.append(("unpack", packed.tolist()))
        return packed / 2

    with graph(t).saved_tensors_hooks(pack, unpack):
        y = (x.exp() * x * 2.0).sum()
    y.backward()
    return sorted(log), x.grad


def packing_nested(t):
    log = []
    x = leaf(t)
    hooks = graph(t).saved_tensors_hooks
    with hooks(lambda s: log.append("outer") or s, lambda s: s):
        a = x.exp()
        with hooks(lambda s: log.append("inner") or s, lambda s: s):
            b = a.sin()
        c = b.cos()
    c.sum().backward()
    return log, x.grad


def second_order_through_hooks_that_detach(t):
    x = leaf(t)
    with graph(t).saved_tensors_hooks(lambda s: s.detach().clone(), lambda s: s):
        y = (x.exp() * x**3).sum()
    (g,) = t.autograd.grad(y, x, create_graph=True)
    return g, t.autograd.grad(g.sum(), x)


def no_version_check_with_hooks(t):
    x = leaf(t)
    with graph(t).saved_tensors_hooks(lambda s: s.clone(), lambda s: s):
        h = x * 1
        y = (h**2).sum()
    h.add_(1)
    y.backward()
    return x.grad


def bad_hooks(t):
    x = leaf(t)
    hooks = graph(t).saved_tensors_hooks

    def write(saved):
        saved.mul_(2)
        return saved

    def use(pack, unpack):
        with hooks(pack, unpack):
            y = (x * 1).exp().exp()
        y.sum().backward()

    return attempt(lambda: use(write, lambda s: s)), attempt(lambda: use(lambda s: s, lambda s: 3))


def disabled(t):
    x = leaf(t)
    module = graph(t)

    def enter():
        with module.disable_saved_tensors_hooks("not here"), module.saved_tensors_hooks(lambda s: s, lambda s: s):
            x.exp()

    def other_way():
        with module.saved_tensors_hooks(lambda s: s, lambda s: s), module.disable_saved_tensors_hooks("nor here"):
            x.exp()

    return attempt(enter), attempt(other_way), attempt(lambda: x.exp().sum().backward())


def on_cpu(t):
    x = leaf(t)
    with graph(t).save_on_cpu():
        y = (x.exp() * x).sum()
    y.backward()
    return x.grad


def mutation_allowed(t):
    x = leaf(t)
    with graph(t).allow_mutation_on_saved_tensors():
        h = x * 1
        y = (h**2).sum() + (h * x).sum()
        h.mul_(10)
        e = h.exp()
        z = e.sum()
        e.zero_()
        (y + z).backward()
    return x.grad


def mutation_refused(t):
    allow = graph(t).allow_mutation_on_saved_tensors

    def nested():
        with allow(), allow():
            pass

    with allow():
        y = (leaf(t) * 1) ** 2
    return attempt(nested), attempt(lambda: y.sum().backward())


def all_gradients(t):
    log = []
    x, y = leaf(t), leaf(t)
    h = x * y
    unused = leaf(t) * 2

    def hook(gradients):
        log.append([None if g is None else g.tolist() for g in gradients])

    handle = graph(t).register_multi_grad_hook((x, h, unused, y), hook)
    h.sum().backward(retain_graph=True)
    (h.sum() + unused.sum()).backward(retain_graph=True)
    handle.remove()
    h.sum().backward()
    return log


def any_gradient(t):
    log = []
    x, y = leaf(t), leaf(t)
    h = x * y
    handle = graph(t).register_multi_grad_hook((h, x, y), lambda g: log.append(g.tolist()), mode="any")
    h.sum().backward(retain_graph=True)
    h.sum().backward(retain_graph=True)
    handle.remove()
    h.sum().backward()
    return log, attempt(lambda: graph(t).register_multi_grad_hook((x,), print, mode="some"))


def edges(t):
    x = leaf(t)
    h = x * 2
    y = h.exp().sum()
    edge, leaf_edge, root = (graph(t).get_gradient_edge(one) for one in (h, x, y))
    seen = [type(edge.node).__name__, edge.output_nr, leaf_edge.node.variable is x]
    a, b = (x * 3).split([1, 2])
    second = graph(t).get_gradient_edge(b)
    return (
        seen,
        t.autograd.grad(y, edge, retain_graph=True),
        t.autograd.grad(y, [leaf_edge, h], retain_graph=True),
        t.autograd.grad(root, x, retain_graph=True),
        t.autograd.grad(second, x, t.ones(2, dtype=t.float64)),
        second.output_nr,
        attempt(lambda: t.autograd.grad(edge, x)),
        attempt(lambda: graph(t).get_gradient_edge(t.ones(1))),
    )


def backward_from_an_edge(t):
    x = leaf(t)
    edge = graph(t).get_gradient_edge(x * x)
    t.autograd.backward(edge, t.ones(3, dtype=t.float64))
    return x.grad


def versions(t):
    x = t.ones(2)
    graph(t).increment_version(x)
    graph(t).increment_version([x, x])
    h = leaf(t) * 1
    y = h**2
    graph(t).increment_version(h)
    return x._version, attempt(lambda: y.sum().backward(), 12)


def preserved_version(t):
    h = leaf(t) * 1
    y = h**2
    with t.no_grad(), part(t, "autograd.grad_mode")._unsafe_preserve_version_counter(h):
        h.mul_(1)
    y.sum().backward()
    return h._version


def old_variable(t):
    x = t.autograd.Variable(t.ones(2), requires_grad=True)
    (x * 2).sum().backward()
    return x, x.grad, isinstance(t.ones(1), t.autograd.Variable)


@scenarios(
    packing,
    packing_nested,
    second_order_through_hooks_that_detach,
    no_version_check_with_hooks,
    bad_hooks,
    disabled,
    on_cpu,
    mutation_allowed,
    mutation_refused,
    all_gradients,
    any_gradient,
    edges,
    backward_from_an_edge,
    versions,
    preserved_version,
    old_variable,
)
def test_graph(scenario):
    agree(scenario)


def test_anomaly_mode_names_the_line_of_a_custom_function():
    class Broken(rushlight.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * float("nan")

    x = leaf(rushlight)
    with warnings.catch_warnings(record=True) as caught, rushlight.autograd.set_detect_anomaly(True):
        warnings.simplefilter("always")
        y = Broken.apply(x)  # here it was made
        with pytest.raises(RuntimeError, match="Function 'BrokenBackward' returned nan values in its 0th output"):
            y.sum().backward()
    assert "here it was made" in str(caught[-1].message)
