"""Connectionist temporal classification: the probability that a sequence of predictions spells a shorter target."""
from __future__ import annotations

from typing import Any

import numpy as np

from .linalg_base import PRIVATE
from .matrix import scalar_name
from .table import operation

# A target a, b is spelled by the states blank, a, blank, b, blank. From one step to the next a path stays in its state,
# goes on to the next one, or skips a blank between two different labels. All arrays are (time, batch, states).


def _labels(targets: np.ndarray, blank: int) -> np.ndarray:
    """The label of each state."""
    made = np.full((targets.shape[0], 2 * targets.shape[1] + 1), blank, np.int64)
    made[:, 1::2] = targets
    return made


def _emissions(log_probs: np.ndarray, labels: np.ndarray) -> np.ndarray:
    return np.take_along_axis(log_probs, labels[None], 2)


def _reached(before: np.ndarray, skips: np.ndarray) -> np.ndarray:
    """The log-probability of each state one step later, without what that step emits."""
    one, two = np.full_like(before, -np.inf), np.full_like(before, -np.inf)
    one[:, 1:] = before[:, :-1]
    two[:, 2:] = np.where(skips, before[:, :-2], -np.inf)
    largest = np.maximum(np.maximum(before, one), two)
    shift = np.where(largest == -np.inf, 0, largest)
    return np.log(np.exp(before - shift) + np.exp(one - shift) + np.exp(two - shift)) + shift


def _skips(labels: np.ndarray) -> np.ndarray:
    """Whether the states from the third on can be reached over the one before."""
    return labels[:, 2:] != labels[:, :-2]


def _beginnings(emissions: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Of each time and state, the log-probability of all paths that have come there."""
    made = np.full_like(emissions, -np.inf)
    made[0, :, :2] = emissions[0, :, :2]
    skips = _skips(labels)
    for t in range(1, len(made)):
        made[t] = emissions[t] + _reached(made[t - 1], skips)
    return made


def _endings(emissions: np.ndarray, labels: np.ndarray, steps: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Of each time and state, the log-probability of all paths that go on from there to the end of their target."""
    made = np.full_like(emissions, -np.inf)
    skips = _skips(labels)[:, ::-1]
    states = np.arange(labels.shape[1])
    final = (states == 2 * sizes[:, None]) | (states == 2 * sizes[:, None] - 1)
    after = np.full(labels.shape, -np.inf, emissions.dtype)
    for t in reversed(range(len(made))):
        going_on = _reached(after[:, ::-1], skips)[:, ::-1]
        last = (steps == t + 1)[:, None]
        after = emissions[t] + np.where(last, np.where(final, 0, -np.inf), going_on).astype(emissions.dtype)
        made[t] = after
    return made


def _gradient(F: Any, g: Any, log_probs: Any, targets: Any, input_lengths: tuple, target_lengths: tuple, result: Any,
              log_alpha: Any, blank: int, zero_infinity: bool) -> Any:
    return F.ctc_loss_backward(g, log_probs, targets, input_lengths, target_lengths, result, log_alpha, blank,
                               zero_infinity)


@operation(log_probs=_gradient, tensors="targets", extra="log_alpha", node="CtcLossBackward0", **PRIVATE)
def ctc_loss_of_each(log_probs, targets, input_lengths, target_lengths, blank, zero_infinity):
    """Minus the log-probability of each target; what is longer in `targets` than its length says must be blank."""
    if log_probs.dtype.itemsize == 2:
        raise NotImplementedError(f"\"ctc_loss_cpu\" not implemented for '{scalar_name(log_probs.dtype)}'")
    labels = _labels(targets, blank)
    log_alpha = _beginnings(_emissions(log_probs, labels), labels)
    steps, sizes, batch = np.array(input_lengths), np.array(target_lengths), np.arange(len(labels))
    last = log_alpha[steps - 1, batch]
    ends = np.logaddexp(last[batch, 2 * sizes], np.where(sizes > 0, last[batch, 2 * sizes - 1], -np.inf))
    nothing = np.where(sizes == 0, 0, -np.inf)  # what a prediction of no steps spells
    return -np.where(steps == 0, nothing, ends).astype(log_probs.dtype), log_alpha


def _no_second(F: Any, g: Any) -> Any:
    raise RuntimeError("derivative for aten::_ctc_loss_backward is not implemented")


@operation(grad=_no_second, log_probs=_no_second, tensors="targets result log_alpha", node="NotImplemented", **PRIVATE)
def ctc_loss_backward(grad, log_probs, targets, input_lengths, target_lengths, result, log_alpha, blank, zero_infinity):
    """As PyTorch has it, this takes the log-probabilities to be normalised and counts that in: hence exp(log_probs)."""
    labels = _labels(targets, blank)
    steps, sizes, batch = np.array(input_lengths), np.array(target_lengths), np.arange(len(labels))
    through = log_alpha + _endings(_emissions(log_probs, labels), labels, steps, sizes)
    total = np.full_like(log_probs, -np.inf)
    for s in range(labels.shape[1]):  # one label may be that of several states
        total[:, batch, labels[:, s]] = np.logaddexp(total[:, batch, labels[:, s]], through[:, :, s])
    made = (np.exp(log_probs) - np.exp(total + result[:, None] - log_probs)) * grad[:, None]
    unread = np.arange(len(log_probs))[:, None] >= steps
    if zero_infinity:
        unread = unread | (result == np.inf)
    made[unread] = 0
    return made
