"""The elementwise part of a step of an LSTM or a GRU, as one operation each: a step is called once per time."""
from __future__ import annotations

import numpy as np

from .table import TENSORS, operation

# sigmoid(x) is (1 + tanh(x / 2)) / 2, so one tanh serves all gates, scaled before and after: (size, dtype) -> the scales.
_scales: dict = {}


def _lstm_scales(size, dtype):
    found = _scales.get((size, dtype))
    if found is None:
        scale = np.full(4 * size, 0.5, dtype)
        scale[2 * size:3 * size] = 1
        found = _scales[size, dtype] = (scale, 1 - scale)
    return found


def _lstm_gradients(F, needs, g0, g1, gates, cell, activated, squashed):
    size = cell.shape[-1]
    if F is TENSORS:  # the second derivative runs through the activations
        into, forget, candidate, out = (gates[..., i * size:(i + 1) * size] for i in range(4))
        into, forget, candidate, out = F.sigmoid(into), F.sigmoid(forget), F.tanh(candidate), F.sigmoid(out)
        squashed = F.tanh(forget * cell + into * candidate)
    else:
        into, forget, candidate, out = (activated[..., i * size:(i + 1) * size] for i in range(4))
    memory = g1 + g0 * out * (1 - squashed * squashed)
    grad_gates = grad_cell = None
    if needs[0]:
        grad_gates = F.cat([memory * candidate * (into * (1 - into)), memory * cell * (forget * (1 - forget)),
                            memory * into * (1 - candidate * candidate), g0 * squashed * (out * (1 - out))], -1)
    if needs[1]:
        grad_cell = memory * forget
    return grad_gates, grad_cell


@operation(differentiable="gates cell", together=_lstm_gradients, outputs=2, extra="activated squashed", public=False,
           method=False)
def lstm_step(gates, cell):
    """(hidden, cell) from the sums that enter the four gates (input, forget, new, output) and the old cell."""
    size = cell.shape[-1]
    scale, offset = _lstm_scales(size, gates.dtype)
    activated = np.tanh(gates * scale)
    activated *= scale
    activated += offset
    memory = activated[..., size:2 * size] * cell
    memory += activated[..., :size] * activated[..., 2 * size:3 * size]
    squashed = np.tanh(memory)
    return activated[..., 3 * size:] * squashed, memory, activated, squashed


def _gru_parts(F, inside, hidden_gates, size):
    reset = F.sigmoid(inside[..., :size] + hidden_gates[..., :size])
    update = F.sigmoid(inside[..., size:2 * size] + hidden_gates[..., size:2 * size])
    return reset, update, F.tanh(inside[..., 2 * size:] + reset * hidden_gates[..., 2 * size:])


def _gru_gradients(F, needs, g, inside, hidden_gates, hidden, reset, update, candidate):
    size = hidden.shape[-1]
    if F is TENSORS:
        reset, update, candidate = _gru_parts(F, inside, hidden_gates, size)
    grad_new = g * (1 - update) * (1 - candidate * candidate)
    grad_reset = grad_new * hidden_gates[..., 2 * size:] * (reset * (1 - reset))
    grad_update = g * (hidden - candidate) * (update * (1 - update))
    grad_inside = F.cat([grad_reset, grad_update, grad_new], -1) if needs[0] else None
    grad_gates = F.cat([grad_reset, grad_update, grad_new * reset], -1) if needs[1] else None
    return grad_inside, grad_gates, g * update if needs[2] else None


@operation(differentiable="inside hidden_gates hidden", together=_gru_gradients, extra="reset update candidate",
           public=False, method=False)
def gru_step(inside, hidden_gates, hidden):
    """The new hidden state, from the input's and the hidden state's sums for the gates (reset, update, new)."""
    size = hidden.shape[-1]
    both = inside[..., :2 * size] + hidden_gates[..., :2 * size]
    both *= 0.5
    np.tanh(both, both)
    both *= 0.5
    both += 0.5
    reset, update = both[..., :size], both[..., size:]
    candidate = np.tanh(inside[..., 2 * size:] + reset * hidden_gates[..., 2 * size:])
    return candidate + update * (hidden - candidate), reset, update, candidate
