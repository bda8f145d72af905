"""grad_fn and what hangs on it, against real torch; and the lifetime facts that only rushlight has."""

from __future__ import annotations

import gc
import weakref

import rushlight
from tests.autograd.helpers import agree, attempt, part, scenarios


def leaf(t, *values):
    return t.tensor(values or (1.0, 2.0, 3.0), dtype=t.float64, requires_grad=True)


def names(tensor):
    """The whole graph under a tensor, as names and output numbers."""

    def walk(node):
        return None if node is None else (type(node).__name__, [(walk(n), i) for n, i in node.next_functions])

    return walk(tensor.grad_fn)


def shapes_of_graphs(t):
    x, c = leaf(t), t.ones(3, dtype=t.float64)
    a, b = (x * c).split([1, 2])
    view = x.clone()
    view[:2].mul_(3)
    return [
        names(x * 2.0),
        names(c * x),
        names(x.exp() + x),
        names((x * x).sum()),
        names(a * b),
        names(a),
        names(t.stack([x, c])),
        a.output_nr,
        b.output_nr,
        names(view),
        names(t.cat([c, x])),
    ]


def identity(t):
    x = leaf(t)
    y = x * x
    held = y.grad_fn
    leaf_node = held.next_functions[0][0]
    return (
        held is y.grad_fn,
        held.next_functions[0][0] is held.next_functions[1][0],
        leaf_node.variable is x,
        leaf_node is (x + 1).grad_fn.next_functions[0][0],
        held.next_functions[0][1],
        x.grad_fn,
        x.detach().grad_fn,
    )


def representation(t):
    node = (leaf(t) * 2).grad_fn
    return repr(node).split(" at ")[0], str(type(node)), repr(node.next_functions[0][0]).split(" at ")[0]


def saved_values(t):
    x, c = leaf(t), t.ones(3, dtype=t.float64)
    product, power, scaled = x * c, x.exp(), x * 2.0
    seen = [
        product.grad_fn._saved_self,
        product.grad_fn._saved_other is c,
        power.grad_fn._saved_result,
        power.grad_fn._saved_result.grad_fn is power.grad_fn,
        scaled.grad_fn._saved_other,
        tuple(x.sum().grad_fn._saved_self_sym_sizes),
    ]
    product.sum().backward()
    return (
        seen,
        attempt(lambda: product.grad_fn._saved_other),
        product.grad_fn._raw_saved_other is not None,
        attempt(lambda: product.grad_fn._saved_nonsense)[0],
    )


def is_node(t):
    y = leaf(t) * 2
    kind = part(t, "autograd.graph").Node
    return isinstance(y.grad_fn, kind), isinstance(y.grad_fn.next_functions[0][0], kind), isinstance(3, kind)


def metadata(t):
    y = leaf(t) * 2
    held = y.grad_fn
    held.metadata["note"] = 3
    return dict(y.grad_fn.metadata)


def node_called(t):
    x, c = leaf(t), t.ones(3, dtype=t.float64)
    return (x * c).grad_fn(c * 2), x.exp().grad_fn(c)


def hooks_on_nodes(t):
    log = []
    x, c = leaf(t), t.ones(3, dtype=t.float64)
    y = x * c

    def post(grad_inputs, grad_outputs):
        log.append(([None if g is None else g.tolist() for g in grad_inputs], [g.tolist() for g in grad_outputs]))
        return tuple(None if g is None else g * 10 for g in grad_inputs)

    first = y.grad_fn.register_hook(post)
    second = y.grad_fn.register_prehook(lambda grad_outputs: tuple(g + 1 for g in grad_outputs))
    y.sum().backward(retain_graph=True)
    first.remove()
    second.remove()
    y.sum().backward()
    return log, x.grad


def hooks_on_accumulators(t):
    log = []
    x = leaf(t)
    y = x * 2
    node = y.grad_fn.next_functions[0][0]
    node.register_prehook(lambda grads: log.append(("pre", x.grad is None)) or tuple(g * 3 for g in grads))
    node.register_hook(
        lambda grad_inputs, grad_outputs: log.append(("post", x.grad.tolist(), len(grad_inputs), len(grad_outputs)))
    )
    y.sum().backward()
    return log, x.grad


def retain_grad_and_writes(t):
    x = leaf(t)
    h = x * 1
    h.retain_grad()
    h.mul_(2)
    h.sum().backward()
    base = x * 1
    view = base[:2]
    view.retain_grad()
    base.retain_grad()
    view.mul_(5)
    (base * base).sum().backward()
    return h.grad, base.grad, view.grad, attempt(lambda: t.ones(1).retain_grad()), h.retains_grad


def refused_hooks(t):
    x = leaf(t)
    return (
        attempt(lambda: t.ones(1).register_hook(print)),
        attempt(lambda: (x * 2).register_post_accumulate_grad_hook(print)),
        attempt(lambda: t.ones(1).register_post_accumulate_grad_hook(print)),
    )


def handles(t):
    log = []
    x = leaf(t)
    with x.register_hook(lambda g: log.append("in")):
        x.sum().backward()
    x.sum().backward()
    own = []
    own.append(x.register_hook(lambda g: (log.append("once"), own[0].remove())[0]))
    x.sum().backward()
    x.sum().backward()
    return log, x.grad


def hook_on_one_saved_value(t):
    x = leaf(t)
    y, z = x * t.ones(3, dtype=t.float64), x.exp()
    y.grad_fn._raw_saved_other.register_hooks(lambda s: s * 5, lambda s: s)
    z.grad_fn._raw_saved_result.register_hooks(lambda s: s * 2, lambda s: s)
    (y.sum() + z.sum()).backward()
    return x.grad, attempt(lambda: y.grad_fn._raw_saved_other.register_hooks(lambda s: s, lambda s: s))


@scenarios(
    shapes_of_graphs,
    identity,
    representation,
    saved_values,
    is_node,
    metadata,
    node_called,
    hooks_on_nodes,
    hooks_on_accumulators,
    retain_grad_and_writes,
    refused_hooks,
    handles,
    hook_on_one_saved_value,
)
def test_visible(scenario):
    agree(scenario)


def test_lifetime_facts():
    x = leaf(rushlight)
    y = x * x  # the line that made it
    node = y.grad_fn
    assert node.made_at.text.endswith("# the line that made it")
    assert node.freed_by is None
    y.sum().backward()
    assert node.freed_by.kind == "backward"
    assert node.freed_by.site.text == "y.sum().backward()"


def test_looking_at_a_graph_keeps_nothing_alive():
    gc.disable()
    try:
        x = leaf(rushlight)
        y = x * x
        node = weakref.ref(y.grad_fn)
        assert node() is None
        held = y.grad_fn
        result = weakref.ref(y)
        del y
        assert result() is None and held.next_functions[0][0].variable is x
    finally:
        gc.enable()
