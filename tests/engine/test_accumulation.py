"""How gradients come into .grad: buffers are taken over where nobody else has them, and never shared."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import rushlight


def pointer(tensor) -> int:
    return tensor.data_ptr()


class Give(rushlight.autograd.Function):
    """Its gradient is an array made in backward; `seen` learns where it lies, `kept` may hold on to it."""

    @staticmethod
    def forward(ctx, x, seen, kept):
        ctx.seen, ctx.kept = seen, kept
        return x.clone()

    @staticmethod
    def backward(ctx, g):
        made = g * 2.0
        ctx.seen.append(pointer(made))
        if ctx.kept is not None:
            ctx.kept.append(made)
        return made, None, None


def test_a_buffer_that_nobody_else_holds_is_taken_over() -> None:
    x = rushlight.ones(64, requires_grad=True)
    seen: list = []
    Give.apply(x, seen, None).sum().backward()
    assert x.grad.tolist() == [2.0] * 64
    assert pointer(x.grad) == seen[0]


def test_a_buffer_that_somebody_holds_is_copied() -> None:
    x = rushlight.ones(64, requires_grad=True)
    seen: list = []
    kept: list = []
    Give.apply(x, seen, kept).sum().backward()
    assert pointer(x.grad) != seen[0]
    kept[0].zero_()
    assert x.grad.tolist() == [2.0] * 64


@pytest.mark.parametrize(
    "given",
    [rushlight.ones, lambda n: rushlight.ones(1).expand(n), lambda n: rushlight.ones(2 * n)[::2]],
    ids=["whole", "expanded", "strided"],
)
def test_the_callers_gradient_never_becomes_grad(given) -> None:
    for function in (lambda x: x + 0, lambda x: x * 1.0, lambda x: x.view(4), lambda x: x.clone(), lambda x: x[:]):
        x = rushlight.zeros(4, requires_grad=True)
        gradient = given(4)
        function(x).backward(gradient)
        assert not np.shares_memory(x.grad.numpy(), gradient.numpy())
        x.grad.add_(5)
        assert gradient.tolist() == [1] * 4
        assert x.grad.is_contiguous()


PATHS = {
    "sum of both": lambda a, b: (a + b).sum(),
    "difference": lambda a, b: (a - b).sum(),
    "one view of the other's gradient": lambda a, b: (a.view(2, 2) + b.view(2, 2)).sum(),
    "cat": lambda a, b: rushlight.cat([a, b]).sum(),
    "stack": lambda a, b: (rushlight.stack([a, b]) * 1.0).sum(),
    "mean": lambda a, b: (a + b).mean(),
    "product": lambda a, b: (a * b).sum(),
    "used twice": lambda a, b: (a + a + b + b).sum(),
    "where": lambda a, b: rushlight.where(a > 0, a, b).sum(),
    "reshaped": lambda a, b: (a.reshape(4, 1) + b).sum(),
}


@pytest.mark.parametrize("retain", [False, True])
@pytest.mark.parametrize("name", PATHS)
def test_no_two_gradients_share_memory(name, retain) -> None:
    a, b = (rushlight.ones(4, requires_grad=True) for _ in range(2))
    y = PATHS[name](a, b)
    y.backward(retain_graph=retain)
    arrays = [one.grad.numpy() for one in (a, b)] + [one.detach().numpy() for one in (a, b, y)]
    for first, second in itertools.combinations(arrays, 2):
        assert not np.shares_memory(first, second)
    assert all(one.grad.numpy().flags.writeable for one in (a, b))


def test_a_second_pass_adds_into_the_same_tensor() -> None:
    x = rushlight.ones(4, requires_grad=True)
    (x * 2).sum().backward()
    first, place = x.grad, pointer(x.grad)
    version = first._version
    (x * 3).sum().backward()
    assert x.grad is first and pointer(x.grad) == place and first.tolist() == [5] * 4
    assert first._version == version + 1


def test_large_gradients_are_added_in_place_too() -> None:
    """Above a size the leaf's turn comes at once; the sum is the same."""
    size = 1 << 19
    x = rushlight.ones(size, requires_grad=True)
    for _ in range(3):
        (x * 2 + x * x).sum().backward()
    assert x.grad.dtype == rushlight.float32 and x.grad.min().item() == x.grad.max().item() == 12


def test_the_gradient_lies_as_the_leaf_does() -> None:
    x = rushlight.ones(3, 2).t().detach().requires_grad_()
    (x * rushlight.arange(6.0).reshape(2, 3)).sum().backward()
    assert x.grad.stride() == x.stride() == (1, 2)
    assert x.grad.tolist() == [[0, 1, 2], [3, 4, 5]]


def test_many_uses_of_one_leaf_sum_exactly() -> None:
    x = rushlight.zeros(3, dtype=rushlight.float64, requires_grad=True)
    sum((x * float(k) for k in range(1, 101)), rushlight.zeros(3, dtype=rushlight.float64)).sum().backward()
    assert x.grad.tolist() == [5050] * 3


def test_a_shared_gradient_array_is_not_added_into() -> None:
    """y's gradient reaches both a and b as one array; adding another part to a must not change b's."""
    a, b = (rushlight.ones(3, requires_grad=True) for _ in range(2))
    ((a + b) + a * 10.0).sum().backward()
    assert a.grad.tolist() == [11] * 3 and b.grad.tolist() == [1] * 3
    h = a * 1.0
    a.grad = b.grad = None
    ((h + b) + h + h).sum().backward()
    assert a.grad.tolist() == [3] * 3 and b.grad.tolist() == [1] * 3


def test_a_grad_the_hook_returned_is_not_aliased() -> None:
    kept = rushlight.full((3,), 7.0)
    x = rushlight.ones(3, requires_grad=True)
    x.register_hook(lambda g: kept)
    (x * 2).sum().backward()
    assert x.grad.tolist() == [7] * 3
    x.grad.zero_()
    assert kept.tolist() == [7] * 3


def test_grad_returns_fresh_memory() -> None:
    x = rushlight.ones(3, requires_grad=True)
    given = rushlight.ones(3)
    (first,) = rushlight.autograd.grad(x * 1.0, x, given)
    first.add_(1)
    assert given.tolist() == [1] * 3 and x.tolist() == [1] * 3
