"""When saved values are freed: what goes, what stays, and who notices (statements 1, 2 and 4 to 10)."""

from __future__ import annotations

import pytest

from tests.semantics.helpers import DETACHED, FREED, MODIFIED, leaf, outcome, quiet_grad


def alive(node, name="_saved_result"):
    return outcome(lambda: getattr(node, name)) == "ok"


# 1: the order of work at one node
def test_order_at_one_node_and_the_moment_of_freeing(engine):
    x = leaf(engine, 0.5)
    h = x.exp()
    y = h.exp()
    seen = []

    def note(label, node):
        def hook(*grads):
            seen.append((label, alive(node)))

        return hook

    y.register_hook(note("tensor hook", y.grad_fn))
    y.grad_fn.register_prehook(note("pre-hook", y.grad_fn))
    y.grad_fn.register_hook(note("post-hook", y.grad_fn))
    h.register_hook(note("hook of the next tensor", y.grad_fn))
    h.grad_fn.register_prehook(note("next node's own values", h.grad_fn))
    y.backward(engine.ones(1))
    assert seen == [
        ("tensor hook", True),
        ("pre-hook", True),
        ("post-hook", True),
        ("hook of the next tensor", False),
        ("next node's own values", True),
    ]


def test_retained_graph_frees_nothing(engine):
    x = leaf(engine, 0.5)
    y = x.exp()
    y.sum().backward(retain_graph=True)
    assert alive(y.grad_fn)
    y.sum().backward()
    assert not alive(y.grad_fn)


def test_outputs_are_validated_before_post_hooks(engine, raises):
    class WrongShape(engine.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            return engine.ones(7)

    x = leaf(engine, 1.0, 2.0)
    y = WrongShape.apply(x)
    seen = []
    y.grad_fn.register_hook(lambda gi, go: seen.append("post"))
    with raises(RuntimeError, "Function WrongShapeBackward returned an invalid gradient at index 0"):
        y.sum().backward()
    assert seen == []


# 2: only tensors go
def test_nodes_edges_sizes_and_scalars_survive(engine):
    x = leaf(engine, 1.0, 2.0)
    y = (x**3).sum()
    power = y.grad_fn.next_functions[0][0]
    y.backward()
    assert y.grad_fn.next_functions[0][0].name() == "PowBackward0"
    assert power.next_functions[0][0].name().endswith("AccumulateGrad")
    assert power.next_functions[0][0].variable is x
    assert power._saved_exponent == 3
    assert tuple(y.grad_fn._saved_self_sym_sizes) == (2,)
    assert outcome(lambda: power._saved_self) == "freed"


def test_plain_ctx_attributes_survive(engine):
    class Scale(engine.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.factor = 3.0
            ctx.kept = x.detach() * 1
            ctx.save_for_backward(x)
            return x * 3

        @staticmethod
        def backward(ctx, g):
            return g * ctx.factor

    x = leaf(engine, 1.0)
    y = Scale.apply(x)
    y.sum().backward()
    assert y.grad_fn.factor == 3.0
    assert y.grad_fn.kept.tolist() == [1.0]
    assert outcome(lambda: y.grad_fn.saved_tensors) == "freed"


# 4: only the needed side is saved
def test_multiplying_by_a_constant_saves_only_the_constant(engine):
    x, a = leaf(engine, 2.0), engine.tensor([5.0])
    node = (x * a).grad_fn
    assert node._saved_other is a
    assert node._saved_self is None
    node = (a * x).grad_fn
    assert node._saved_self is a
    assert node._saved_other is None


def test_the_unsaved_side_may_change(engine, raises):
    x, a = leaf(engine, 2.0).clone(), engine.tensor([5.0])
    y = x * a
    with engine.no_grad():
        x.add_(100.0)
    y.sum().backward()
    z = leaf(engine, 2.0) * a
    a.add_(1)
    with raises(RuntimeError, MODIFIED):
        z.sum().backward()


def test_mm_saves_only_the_needed_side(engine, raises):
    w, data = engine.ones(2, 2, requires_grad=True), engine.ones(2, 2)
    node = (data @ w).grad_fn
    assert node._saved_self is data
    assert node._saved_mat2 is None
    node = (w @ data).grad_fn
    assert node._saved_self is None
    assert node._saved_mat2 is data
    both = w @ w.t()
    assert both.grad_fn._saved_self is w
    assert both.grad_fn._saved_mat2 is not None


def test_div_by_a_constant_saves_the_divisor_only(engine):
    x, a = leaf(engine, 2.0), engine.tensor([4.0])
    node = (x / a).grad_fn
    assert node._saved_other is a
    assert node._saved_self is None
    node = (a / x).grad_fn
    assert node._saved_self is a
    assert node._saved_other is x


def test_nothing_is_saved_without_a_graph(engine):
    x = leaf(engine, 2.0)
    with engine.no_grad():
        assert (x * x).grad_fn is None
    assert (x.detach() * 2).grad_fn is None


# 5: order of checks when a saved value is unpacked
def test_freed_comes_before_modified(engine, raises):
    x, a = leaf(engine, 2.0), engine.tensor([5.0])
    y = x * a
    y.sum().backward()
    a.add_(1)
    with raises(RuntimeError, FREED):
        y.sum().backward()


def test_freed_comes_before_detached(engine, raises):
    h = leaf(engine, 2.0).clone()
    y = h**2
    y.sum().backward()
    h.detach_()
    with raises(RuntimeError, FREED):
        y.sum().backward()


def test_detached_comes_before_modified(engine, raises):
    h = leaf(engine, 2.0).clone()
    y = h**2
    h.detach_()
    h.add_(1)
    with raises(RuntimeError, DETACHED):
        y.sum().backward()


def test_freed_comes_before_the_unpack_hook(engine, raises):
    calls = []

    def unpack(packed):
        calls.append(packed)
        return packed

    x, a = leaf(engine, 2.0), engine.tensor([5.0])
    y = x * a
    y.grad_fn._raw_saved_other.register_hooks(lambda t: t, unpack)
    y.sum().backward()
    assert len(calls) == 1
    with raises(RuntimeError, FREED):
        y.sum().backward()
    assert len(calls) == 1


def test_undefined_comes_before_freed(engine):
    # The side that was never saved reads as None, before and after the other side is freed.
    x, a = leaf(engine, 2.0), engine.tensor([5.0])
    y = x * a
    assert y.grad_fn._saved_self is None
    y.sum().backward()
    assert outcome(lambda: y.grad_fn._saved_other) == "freed"


# 6: reading saved values after freeing
def test_reading_saved_values_after_freeing(engine, raises):
    y = leaf(engine, 2.0).exp()
    assert y.grad_fn._saved_result.tolist() == y.tolist()
    y.sum().backward()
    with raises(RuntimeError, FREED):
        y.grad_fn._saved_result  # noqa: B018
    assert y.grad_fn._raw_saved_result is not None


def test_reading_ctx_saved_tensors_after_freeing(engine, raises):
    class Square(engine.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return 2 * x * g

    x = leaf(engine, 3.0)
    y = Square.apply(x)
    assert y.grad_fn.saved_tensors[0] is x
    assert len(y.grad_fn._raw_saved_tensors) == 1
    y.sum().backward()
    with raises(RuntimeError, FREED):
        y.grad_fn.saved_tensors  # noqa: B018
    # Unlike the built-in nodes, a custom Function's raw saved tensors are gone too.
    with raises(RuntimeError, FREED):
        y.grad_fn._raw_saved_tensors  # noqa: B018


def test_ctx_kept_outside_raises_after_freeing(engine, raises):
    kept = []

    class Square(engine.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            kept.append(ctx)
            return x * x

        @staticmethod
        def backward(ctx, g):
            return 2 * ctx.saved_tensors[0] * g

    Square.apply(leaf(engine, 3.0)).sum().backward()
    with raises(RuntimeError, FREED):
        kept[0].saved_tensors  # noqa: B018


SAVED_NAMES = [
    ("mul", lambda x: x * x, ["self", "other"]),
    ("div", lambda x: x / x, ["self", "other"]),
    ("pow", lambda x: x**2, ["self"]),
    ("exp", lambda x: x.exp(), ["result"]),
    ("tanh", lambda x: x.tanh(), ["result"]),
    ("sigmoid", lambda x: x.sigmoid(), ["result"]),
    ("sqrt", lambda x: x.sqrt(), ["result"]),
    ("relu", lambda x: x.relu(), ["result"]),
    ("log", lambda x: x.log(), ["self"]),
    ("sin", lambda x: x.sin(), ["self"]),
    ("abs", lambda x: x.abs(), ["self"]),
    ("mm", lambda x: x.mm(x), ["self", "mat2"]),
    ("softmax", lambda x: x.softmax(0), ["result"]),
    ("log_softmax", lambda x: x.log_softmax(0), ["result"]),
    ("clamp", lambda x: x.clamp(0, 1), ["self"]),
    ("prod", lambda x: x.prod(), ["self", "result"]),
    ("std", lambda x: x.std(), ["self", "result"]),
]


@pytest.mark.parametrize(("call", "names"), [row[1:] for row in SAVED_NAMES], ids=[row[0] for row in SAVED_NAMES])
def test_names_of_saved_values(engine, call, names):
    x = (engine.rand(3, 3) + 0.5).requires_grad_()
    y = call(x)
    node = y.grad_fn
    for name in names:
        saved = getattr(node, "_saved_" + name)
        expected = y if name == "result" else x
        assert saved.shape == expected.shape
        assert saved.tolist() == expected.tolist()
        assert hasattr(node, "_raw_saved_" + name)
    y.sum().backward()
    for name in names:
        assert outcome(lambda name=name: getattr(node, "_saved_" + name)) == "freed"
        assert getattr(node, "_raw_saved_" + name) is not None


# 7: custom Functions that do not unpack
@pytest.mark.parametrize("saves", [False, True])
def test_function_that_never_unpacks_runs_twice(engine, saves):
    class Triple(engine.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            if saves:
                ctx.save_for_backward(x)
            return x * 3

        @staticmethod
        def backward(ctx, g):
            return g * 3

    x = leaf(engine, 1.0)
    y = Triple.apply(x).sum()
    y.backward()
    y.backward()
    assert x.grad.tolist() == [6.0]


def test_function_that_unpacks_fails_twice(engine, raises):
    class Square(engine.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            return 2 * ctx.saved_tensors[0] * g

    x = leaf(engine, 3.0)
    y = Square.apply(x).sum()
    y.backward()
    with raises(RuntimeError, FREED):
        y.backward()
    assert x.grad.tolist() == [6.0]


# 8: a shared part
def test_shared_part_that_saved_something(engine, raises):
    x = leaf(engine, 2.0)
    trunk = x.exp()
    a, b = trunk.sum(), (trunk + 1).sum()
    a.backward()
    with raises(RuntimeError, FREED):
        b.backward()


def test_shared_part_that_saved_nothing(engine):
    x = leaf(engine, 2.0)
    trunk = x + 1
    a, b = (trunk * 2).sum(), (trunk * 3).sum()
    a.backward()
    b.backward()
    assert x.grad.tolist() == [5.0]


def test_retain_once_gives_exactly_one_more_call(engine, raises):
    x = leaf(engine, 2.0)
    trunk = x * x
    a, b = trunk.sum(), (trunk + 1).sum()
    a.backward(retain_graph=True)
    b.backward()
    assert x.grad.tolist() == [8.0]
    with raises(RuntimeError, FREED):
        a.backward()


def test_two_roots_in_one_call(engine):
    x = leaf(engine, 2.0)
    trunk = x * x
    engine.autograd.backward([trunk.sum(), (trunk * 2).sum()])
    assert x.grad.tolist() == [12.0]


def test_the_same_root_twice_doubles(engine):
    x = leaf(engine, 2.0)
    y = (x * x).sum()
    engine.autograd.backward([y, y])
    assert x.grad.tolist() == [8.0]


def test_root_that_is_an_ancestor_of_another_root(engine):
    x = leaf(engine, 2.0)
    h = x * x
    y = h * 3
    engine.autograd.backward([y.sum(), h.sum()])
    assert x.grad.tolist() == [16.0]


# 9: no rollback
def test_a_failing_second_pass_leaves_its_traces(engine, raises):
    w, x = leaf(engine, 1.0), leaf(engine, 2.0)
    h = x.exp()
    h.retain_grad()
    y = (h + w).sum()
    y.backward()
    seen = []
    h.register_hook(lambda g: seen.append("hook of the failing node"))
    h.grad_fn.register_prehook(lambda g: seen.append("pre-hook of the failing node"))
    h.grad_fn.register_hook(lambda gi, go: seen.append("post-hook of the failing node"))
    before = x.grad.tolist()
    with raises(RuntimeError, FREED):
        y.backward()
    assert seen == ["hook of the failing node", "pre-hook of the failing node"]
    assert quiet_grad(h).tolist() == [2.0]
    assert w.grad.tolist() == [2.0]
    assert x.grad.tolist() == before


# 10: an exception inside backward
class Mine(Exception):
    """An error type of the user's own."""


def test_exception_in_a_function_keeps_its_type_and_frees_what_ran(engine, raises):
    class Fail(engine.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 1

        @staticmethod
        def backward(ctx, g):
            raise Mine("no")

    x = leaf(engine, 2.0)
    behind = x.exp()
    middle = Fail.apply(behind)
    front = middle.exp()
    with raises(Mine, "no"):
        front.sum().backward()
    assert not alive(front.grad_fn)
    assert outcome(lambda: middle.grad_fn.saved_tensors) == "ok"
    assert alive(behind.grad_fn)
    assert x.grad is None


@pytest.mark.parametrize("place", ["tensor", "pre", "post", "leaf"])
def test_exception_in_a_hook_keeps_its_type(engine, raises, place):
    x = leaf(engine, 2.0)
    h = x.exp()
    y = h.sum()

    def hook(*grads):
        raise Mine(place)

    if place == "tensor":
        h.register_hook(hook)
    elif place == "pre":
        h.grad_fn.register_prehook(hook)
    elif place == "post":
        h.grad_fn.register_hook(hook)
    else:
        x.register_hook(hook)
    with raises(Mine, place):
        y.backward()
    assert x.grad is None
    # Only a node that came to its end is freed.
    assert alive(h.grad_fn) == (place != "leaf")


def test_engine_works_after_an_exception(engine):
    x = leaf(engine, 2.0)
    h = x * x
    handle = h.register_hook(lambda g: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        h.sum().backward()
    handle.remove()
    h.sum().backward()
    assert x.grad.tolist() == [4.0]


def test_keyboard_interrupt_passes_through(engine):
    x = leaf(engine, 2.0)
    h = x * x

    def hook(g):
        raise KeyboardInterrupt

    h.register_hook(hook)
    with pytest.raises(KeyboardInterrupt):
        h.sum().backward()
