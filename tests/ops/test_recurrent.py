"""The fused steps of LSTM and GRU against PyTorch's cells: values, gradients, second order."""

from __future__ import annotations

import pytest

import rushlight

torch = pytest.importorskip("torch", reason="real torch is the truth these steps are compared with")


def run(engine, kind: str):
    engine.manual_seed(3)
    cell = getattr(engine.nn, kind)(4, 3).double()
    values = engine.randn(2, 4, dtype=engine.float64, requires_grad=True)
    state = [engine.randn(2, 3, dtype=engine.float64, requires_grad=True) for _ in range(2 if kind == "LSTMCell" else 1)]
    made = cell(values, tuple(state) if kind == "LSTMCell" else state[0])
    outputs = made if isinstance(made, tuple) else (made,)
    leaves = [values, *state, *cell.parameters()]
    total = sum((output * output).sum() for output in outputs)
    first = engine.autograd.grad(total, leaves, create_graph=True)
    second = engine.autograd.grad(sum((gradient**2).sum() for gradient in first), leaves)
    return [one.detach().numpy() for one in (*outputs, *first, *second)]


@pytest.mark.parametrize("kind", ["LSTMCell", "GRUCell"])
def test_cells_agree_with_torch(kind):
    for expected, found in zip(run(torch, kind), run(rushlight, kind), strict=True):
        assert found == pytest.approx(expected, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
def test_a_graph_of_steps_is_used_up_once(kind):
    network = getattr(rushlight.nn, kind)(4, 3)
    output, _ = network(rushlight.randn(5, 2, 4))
    loss = output.sum()
    loss.backward()
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        loss.backward()
