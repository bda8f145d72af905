"""Custom Functions, against real torch."""

from __future__ import annotations

import gc
import weakref

import rushlight
from tests.autograd.helpers import agree, attempt, part, scenarios


def make(t, forward=None, backward=None, name="Mine", **methods):
    members = {
        "forward": staticmethod(forward or (lambda ctx, a, *rest: a * 2)),
        "backward": staticmethod(backward or (lambda ctx, *g: g[0])),
    }
    members.update((key, staticmethod(value)) for key, value in methods.items())
    return type(name, (t.autograd.Function,), members)


def leaf(t, *values):
    return t.tensor(values or (1.0, 2.0, 3.0), dtype=t.float64, requires_grad=True)


def exp_with_saved_output(t):
    def forward(ctx, a):
        result = a.exp()
        ctx.save_for_backward(result)
        return result

    exp = make(t, forward, lambda ctx, g: g * ctx.saved_tensors[0])
    x = leaf(t)
    y = exp.apply(x)
    (g,) = t.autograd.grad(y.sum(), x, create_graph=True)
    (h,) = t.autograd.grad(g.sum(), x, retain_graph=True)
    y.add_(1)
    return g, h, attempt(lambda: y.sum().backward(), 12)


def exp_with_saved_output_changed(t):
    def forward(ctx, a):
        result = a.exp()
        ctx.save_for_backward(result)
        return result

    x = leaf(t)
    y = make(t, forward, lambda ctx, g: g * ctx.saved_tensors[0]).apply(x)
    y.mul_(2)
    return attempt(lambda: y.sum().backward(), 12)


def attributes_and_names(t):
    def forward(ctx, a, b, k, word=None):
        ctx.k, ctx.word = k, word
        ctx.save_for_backward(a, None, b)
        return a * b * k

    def backward(ctx, g):
        a, nothing, b = ctx.saved_tensors
        assert nothing is None
        return g * b * ctx.k, g * a * ctx.k, None, None

    x, y = leaf(t), leaf(t)
    z = make(t, forward, backward, "Scaled").apply(x, y, 3, "w")
    node = z.grad_fn
    seen = [
        node.name(),
        type(node).__name__,
        node.k,
        node.word,
        node.needs_input_grad,
        len(node.saved_tensors),
        node.saved_tensors[0] is x,
        [type(n).__name__ for n, _ in node.next_functions],
    ]
    z.sum().backward()
    return seen, x.grad, y.grad, node.k, attempt(lambda: node.saved_tensors), attempt(lambda: z.sum().backward())


def setup_context_form(t):
    def forward(a, b, scale=2.0):
        return a * b * scale, a + b

    def setup(ctx, inputs, output):
        a, b, scale = inputs
        ctx.save_for_backward(a, b)
        ctx.scale = scale

    def backward(ctx, g, h):
        a, b = ctx.saved_tensors
        return g * b * ctx.scale + h, g * a * ctx.scale + h, None

    function = make(t, forward, backward, setup_context=setup)
    x, y = leaf(t), leaf(t, 4.0, 5.0, 6.0)
    first, second = function.apply(x, y)
    (first * second).sum().backward()
    third = function.apply(x.detach(), y, 5.0)
    return first, second, x.grad, y.grad, third[0], third[0].grad_fn.needs_input_grad


def needs_input_grad(t):
    seen = []

    def forward(ctx, *args):
        seen.append(ctx.needs_input_grad)
        return args[0] * 2 + args[1]

    def backward(ctx, g):
        seen.append(ctx.needs_input_grad)
        return g * 2, g, None

    x, c = leaf(t), t.ones(3, dtype=t.float64)
    for pair in ((x, c), (c, x), (x, x)):
        make(t, forward, backward).apply(*pair, 7).sum().backward()
    with t.no_grad():
        make(t, forward, backward).apply(x, c, 7)
    return seen, x.grad


def materialized(t):
    seen = []

    def backward(ctx, *gradients):
        seen.append([None if g is None else g.tolist() for g in gradients])
        return next(g for g in gradients if g is not None)

    def two(ctx, a):
        return a * 1, a * 2

    def two_unmaterialized(ctx, a):
        ctx.set_materialize_grads(False)
        return a * 1, a * 2

    def with_plain(ctx, a):
        return a * 1, "word", a > 0, None, a * 3

    for forward in (two, two_unmaterialized, with_plain):
        make(t, forward, backward).apply(leaf(t))[-1].sum().backward()
    return seen


def non_differentiable(t):
    def forward(ctx, a):
        order, doubled = a * 3, a * 2
        ctx.mark_non_differentiable(order)
        return order, doubled

    x = leaf(t)
    order, doubled = make(t, forward, lambda ctx, g, h: h * 2).apply(x)
    doubled.sum().backward()
    return order, doubled, x.grad, order.grad_fn is None


def dirty(t):
    def forward(ctx, a):
        a.add_(1)
        ctx.mark_dirty(a)
        return a

    function = make(t, forward, lambda ctx, g: g * 5)
    x = leaf(t)
    h = x * 1
    y = function.apply(h)
    seen = [y is h, h._version, type(h.grad_fn).__name__]
    y.sum().backward()
    base = x * 1
    view = base[1:]
    z = function.apply(view)
    seen += [z is view, type(base.grad_fn).__name__]
    g = t.autograd.grad(base.sum(), x)
    return seen, x.grad, g, attempt(lambda: function.apply(x)), attempt(lambda: function.apply(x[1:]))


def dirty_mistakes(t):
    def not_returned(ctx, a):
        a.add_(1)
        ctx.mark_dirty(a)
        return a * 2

    def two_from_a_view(ctx, a):
        a.add_(1)
        ctx.mark_dirty(a)
        return a, a * 2

    x = leaf(t)
    return (
        attempt(lambda: make(t, not_returned).apply(x * 1)),
        attempt(lambda: make(t, two_from_a_view).apply((x * 1)[1:])),
    )


def input_returned(t):
    x = leaf(t)
    for source in (x, x * 1):
        y = make(t, lambda ctx, a: a, lambda ctx, g: g * 4).apply(source)
        seen = [y is source, y._is_view(), y._base is source, attempt(lambda y=y: y.add_(1), 4)]
    y.sum().backward()
    plain = make(t, lambda ctx, a: a).apply(t.ones(2))
    return seen, x.grad, plain.requires_grad


def view_returned(t):
    x = leaf(t)
    y = make(t, lambda ctx, a: a[1:], lambda ctx, g: t.cat([g[:1] * 0, g])).apply(x * 1)
    y.sum().backward()
    return y, x.grad, y._is_view(), attempt(lambda: y.add_(1), 4)


def bad_gradients(t):
    x = leaf(t)
    y = x * 1
    tries = []
    for backward in (
        lambda ctx, g: (g, g),
        lambda ctx, g: (),
        lambda ctx, g: 3,
        lambda ctx, g: t.ones(5),
        lambda ctx, g: t.ones(()),
        lambda ctx, g: t.ones(1),
        lambda ctx, g: [g],
    ):
        tries.append(attempt(lambda b=backward: make(t, backward=b).apply(y).sum().backward(retain_graph=True), 9))
    tries.append(attempt(lambda: make(t, backward=lambda ctx, g: (g, g)).apply(y, 2).sum().backward(), 12))
    return tries


def forgiven_gradients(t):
    x = leaf(t)
    for backward in (
        lambda ctx, g: (g, None, None),
        lambda ctx, g: t.ones(2, 3),
        lambda ctx, g: t.ones(3),
        lambda ctx, g: None,
    ):
        make(t, backward=backward).apply(x).sum().backward()
    return x.grad


def not_implemented(t):
    x = leaf(t)
    empty = type("Empty", (t.autograd.Function,), {})
    one_way = type("OneWay", (t.autograd.Function,), {"forward": staticmethod(lambda ctx, a: a * 2)})
    twice = make(t, vjp=lambda ctx, g: g)
    return (
        attempt(lambda: empty.apply(x)),
        attempt(lambda: one_way.apply(x).sum().backward()),
        attempt(lambda: twice.apply(x).sum().backward()),
        attempt(lambda: make(t)()(x)),
        attempt(lambda: make(t, lambda ctx, a: ctx.save_for_backward(3)).apply(x)),
    )


def vjp_name(t):
    function = type(
        "Named",
        (t.autograd.Function,),
        {"forward": staticmethod(lambda ctx, a: a * 2), "vjp": staticmethod(lambda ctx, g: g * 7)},
    )
    x = leaf(t)
    function.apply(x).sum().backward()
    return x.grad


def once_differentiable(t):
    once = part(t, "autograd.function").once_differentiable
    function = make(t, lambda ctx, a: a**2, once(lambda ctx, g: g * 3))
    x, weight = leaf(t), leaf(t)
    (g,) = t.autograd.grad(function.apply(x).sum(), x, create_graph=True)
    (h,) = t.autograd.grad(function.apply(x), x, weight, create_graph=True)
    return g, h, attempt(lambda: h.sum().backward(), 12)


def grad_mode_inside(t):
    seen = []

    def forward(ctx, a):
        seen.append(t.is_grad_enabled())
        with t.enable_grad():
            seen.append((a * 2).requires_grad)
        return a * 2

    def backward(ctx, g):
        seen.append(t.is_grad_enabled())
        return g * 2

    x = leaf(t)
    make(t, forward, backward).apply(x).sum().backward()
    t.autograd.grad(make(t, forward, backward).apply(x).sum(), x, create_graph=True)
    return seen, t.is_grad_enabled()


def never_unpacks(t):
    def forward(ctx, a):
        ctx.save_for_backward(a)
        return a * 2

    x = leaf(t)
    y = make(t, forward, lambda ctx, g: g * 2).apply(x)
    t.autograd.grad(y, x, t.ones_like(y))
    return t.autograd.grad(y, x, t.ones_like(y))


def error_keeps_its_type(t):
    def backward(ctx, g):
        raise KeyError("mine")

    return make(t, backward=backward).apply(leaf(t)).sum().backward()


def modified_input(t):
    def forward(ctx, a):
        ctx.save_for_backward(a)
        return a * 2

    h = leaf(t) * 1
    y = make(t, forward, lambda ctx, g: g * ctx.saved_tensors[0]).apply(h)
    h.add_(1)
    return y.sum().backward()


def hooks_see_saved(t):
    packed = []

    def forward(ctx, a):
        result = a.exp()
        ctx.save_for_backward(a, result)
        return result

    x = leaf(t)
    with part(t, "autograd.graph").saved_tensors_hooks(lambda s: packed.append(s.tolist()) or s, lambda s: s):
        y = make(t, forward, lambda ctx, g: g * ctx.saved_tensors[1] + ctx.saved_tensors[0] * 0).apply(x)
    (g,) = t.autograd.grad(y.sum(), x, create_graph=True)
    return packed, g, t.autograd.grad(g.sum(), x)


def forward_mode(t):
    forward_ad = part(t, "autograd.forward_ad")

    def forward(ctx, a, b, k):
        ctx.save_for_forward(a, b)
        ctx.k = k
        return a * b * k

    def jvp(ctx, da, db, dk):
        a, b = ctx.saved_tensors
        return (da * b + a * db) * ctx.k

    x, y = t.tensor([1.0, 2.0]), t.tensor([3.0, 4.0])
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, t.ones(2))
        made = [forward_ad.unpack_dual(make(t, forward, jvp=jvp).apply(dual, y, 2)).tangent]
        made += [
            attempt(lambda: make(t).apply(dual)),
            attempt(lambda: make(t, jvp=lambda ctx, d: (d, d)).apply(dual)),
            attempt(lambda: make(t, jvp=lambda ctx, d: t.ones(7)).apply(dual)),
            attempt(lambda: make(t, lambda ctx, a: a, jvp=lambda ctx, d: d).apply(dual)),
        ]
    return made


def keywords(t):
    return attempt(lambda: make(t).apply(leaf(t), k=3))[0]


@scenarios(
    exp_with_saved_output,
    exp_with_saved_output_changed,
    attributes_and_names,
    setup_context_form,
    needs_input_grad,
    materialized,
    non_differentiable,
    dirty,
    dirty_mistakes,
    input_returned,
    view_returned,
    bad_gradients,
    forgiven_gradients,
    not_implemented,
    vjp_name,
    once_differentiable,
    grad_mode_inside,
    never_unpacks,
    error_keeps_its_type,
    modified_input,
    hooks_see_saved,
    forward_mode,
    keywords,
)
def test_function(scenario):
    agree(scenario)


def test_a_function_leaves_no_cycle():
    def forward(ctx, a):
        result = a * 2
        ctx.save_for_backward(a, result)
        ctx.note = "x"
        return result

    function = make(rushlight, forward, lambda ctx, g: g)
    gc.disable()
    try:
        y = function.apply(leaf(rushlight))
        node = weakref.ref(y.grad_fn)
        alive = weakref.ref(y)
        del y
        assert alive() is None and node() is None
    finally:
        gc.enable()
