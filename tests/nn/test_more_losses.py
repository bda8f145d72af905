"""CTC, the cross entropy of a linear layer and distances within a set, against real torch."""

from __future__ import annotations

import numpy as np
import pytest

import rushlight
from tests.ops.comparing import check, plain, second_backward

torch = pytest.importorskip("torch", reason="these tests compare with real torch")

GENERATOR = np.random.default_rng(4)
TIME, BATCH, CLASSES = 7, 4, 5
SCORES = GENERATOR.standard_normal((TIME, BATCH, CLASSES))
TARGETS = np.array([[1, 1, 2], [3, 4, 0], [2, 0, 0], [-1, -1, -1]])  # what follows a target's end is never read
SIZES = [3, 2, 1, 0]
STEPS = [7, 5, 4, 3]


def ctc(m, x, steps=STEPS, targets=TARGETS, sizes=SIZES, **options):
    return m.nn.functional.ctc_loss(
        x.log_softmax(-1), m.tensor(targets), m.tensor(steps), m.tensor(sizes), **options
    )


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("blank", [0, 4])
def test_ctc(reduction: str, blank: int) -> None:
    labels = np.where(TARGETS == blank, 3, TARGETS)
    for dtype, tolerance in ((np.float64, 1e-9), (np.float32, 1e-4)):
        check(torch, rushlight, lambda m, x: ctc(m, x, targets=labels, blank=blank, reduction=reduction),
              SCORES.astype(dtype), second=False, rtol=tolerance, atol=tolerance)  # fmt: skip


def test_ctc_targets_one_after_another_and_without_a_batch() -> None:
    flat = np.concatenate([row[:size] for row, size in zip(TARGETS, SIZES, strict=True)])
    check(torch, rushlight, lambda m, x: ctc(m, x, targets=flat), SCORES, second=False)
    check(torch, rushlight, lambda m, x: m.nn.CTCLoss(reduction="none")(
        x[:, 0].log_softmax(-1), m.tensor(TARGETS[0]), m.tensor(7), m.tensor(3)), SCORES, second=False)  # fmt: skip
    check(torch, rushlight, lambda m, x: m.nn.functional.ctc_loss(
        x.log_softmax(-1), m.tensor(TARGETS), (7, 5, 4, 3), (3, 2, 1, 0)), SCORES, second=False)  # fmt: skip


@pytest.mark.parametrize("zero_infinity", [True, False])
def test_ctc_of_too_few_steps(zero_infinity: bool) -> None:
    check(torch, rushlight, lambda m, x: ctc(m, x, [3, 1, 0, 0], reduction="none", zero_infinity=zero_infinity),
          SCORES, second=False)  # fmt: skip


def test_ctc_is_freed_and_has_no_second_order() -> None:
    assert second_backward(rushlight, ctc, SCORES) == second_backward(torch, ctc, SCORES) == "freed"
    x = rushlight.tensor(SCORES, requires_grad=True)
    (gradient,) = rushlight.autograd.grad(ctc(rushlight, x), x, create_graph=True)
    with pytest.raises(RuntimeError, match="derivative for aten::_ctc_loss_backward is not implemented"):
        gradient.sum().backward()


@pytest.mark.parametrize(
    "options",
    [{"steps": [8, 5, 4, 3]}, {"steps": [7, 5]}, {"steps": [-1, 5, 4, 3]}, {"sizes": [4, 2, 1, 0]}, {"blank": 9},
     {"sizes": [1.0, 2.0, 1.0, 0.0]}, {"targets": TARGETS[:2]}, {"targets": TARGETS.reshape(-1)}, {"reduction": "max"}],
)  # fmt: skip
def test_ctc_errors(options: dict) -> None:
    with pytest.raises(Exception) as wanted:
        ctc(torch, torch.tensor(SCORES), **options)
    with pytest.raises(type(wanted.value)) as found:
        ctc(rushlight, rushlight.tensor(SCORES), **options)
    assert str(found.value)[:20] == str(wanted.value)[:20]
    with pytest.raises(RuntimeError, match="targets must be class numbers"):  # torch reads outside of the array
        ctc(rushlight, rushlight.tensor(SCORES), targets=TARGETS + 3)


def test_linear_cross_entropy() -> None:
    x, weight, bias = (GENERATOR.standard_normal(shape) for shape in ((4, 3), (5, 3), (5,)))
    target = np.array([0, 4, 2, 2])
    for options in ({}, {"reduction": "sum", "ignore_index": 2}, {"label_smoothing": 0.2}):
        check(torch, rushlight, loss_of(target, options), x, weight, bias)
    check(torch, rushlight, lambda m, x, w: m.nn.functional.linear_cross_entropy(
        x, w.reshape(5, 2, 3), m.tensor(np.array([[0, 1], [2, 3], [4, 0], [1, 1]]))),
        x, GENERATOR.standard_normal((10, 3)))  # fmt: skip
    layer = rushlight.nn.LinearCrossEntropyLoss(3, 5, bias=True)
    layer(rushlight.tensor(x.astype(np.float32)), rushlight.tensor(target)).backward()
    assert layer.linear.weight.grad.shape == (5, 3)
    with pytest.raises(RuntimeError, match="expected equal input and linear_weight last dimensions"):
        rushlight.nn.functional.linear_cross_entropy(rushlight.ones(4, 2), layer.linear.weight, rushlight.tensor(target))


def loss_of(target: np.ndarray, options: dict):
    return lambda m, x, w, b: m.nn.functional.linear_cross_entropy(x, w, m.tensor(target), linear_bias=b, **options)


@pytest.mark.parametrize("p", [0, 0.5, 1, 1.5, 2, 3, float("inf")])
def test_pdist(p: float) -> None:
    points = GENERATOR.standard_normal((5, 3))
    points[3] = points[1]  # a distance of zero
    check(torch, rushlight, lambda m, x: m.pdist(x, p), points, second=False)
    check(torch, rushlight, lambda m, x: m.nn.functional.pdist(x, p), points[:1], second=False)
    with pytest.raises(RuntimeError, match="pdist only supports 2D tensors"):
        rushlight.pdist(rushlight.ones(3))


def test_pdist_has_the_second_order_of_cdist() -> None:
    points = GENERATOR.standard_normal((4, 3))
    x = rushlight.tensor(points, requires_grad=True)
    assert rushlight.autograd.gradgradcheck(lambda x: rushlight.pdist(x, 3.0), (x,))
    np.testing.assert_allclose(plain(rushlight.pdist(x)), plain(rushlight.cdist(x, x))[np.triu_indices(4, 1)])
