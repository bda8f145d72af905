"""Initialisers draw torch's numbers; clipping and vectors of parameters."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the numbers are compared with torch's")

import rushlight  # noqa: E402
from tests.nn.nn_compare import numbers, pair  # noqa: E402

FILLS = [
    lambda init, t: init.uniform_(t, -1, 2),
    lambda init, t: init.normal_(t, 1.0, 0.5),
    lambda init, t: init.trunc_normal_(t, std=0.5, a=-1, b=1),
    lambda init, t: init.trunc_normal_(t, mean=1.0, std=0.5, a=2.0, b=2.5),
    lambda init, t: init.constant_(t, 0.3),
    lambda init, t: init.ones_(t),
    lambda init, t: init.zeros_(t),
    lambda init, t: init.eye_(t),
    lambda init, t: init.xavier_uniform_(t, gain=2.0),
    lambda init, t: init.xavier_normal_(t),
    lambda init, t: init.kaiming_uniform_(t, mode="fan_out", nonlinearity="relu"),
    lambda init, t: init.kaiming_normal_(t, a=0.1),
    lambda init, t: init.orthogonal_(t, gain=1.5),
    lambda init, t: init.sparse_(t, 0.3),
]


@pytest.mark.parametrize("shape", [(5, 4), (4, 7), (20, 30)])
@pytest.mark.parametrize("place", range(len(FILLS)))
def test_initialisers(place, shape):
    ours, theirs = rushlight.empty(shape), torch.empty(shape)
    rushlight.manual_seed(11)
    assert FILLS[place](rushlight.nn.init, ours) is ours
    torch.manual_seed(11)
    FILLS[place](torch.nn.init, theirs)
    np.testing.assert_allclose(numbers(ours), numbers(theirs), rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize("groups", [1, 2])
def test_dirac(groups):
    ours, theirs = rushlight.empty(4, 2, 3, 3), torch.empty(4, 2, 3, 3)
    np.testing.assert_array_equal(
        numbers(rushlight.nn.init.dirac_(ours, groups)), numbers(torch.nn.init.dirac_(theirs, groups))
    )


def test_gains_and_errors():
    for name, parameter in [("relu", None), ("tanh", None), ("leaky_relu", 0.3), ("selu", None), ("conv2d", None)]:
        assert rushlight.nn.init.calculate_gain(name, parameter) == torch.nn.init.calculate_gain(name, parameter)
    for lib in (rushlight, torch):
        with pytest.raises(ValueError, match="Unsupported nonlinearity"):
            lib.nn.init.calculate_gain("nothing")
        with pytest.raises(ValueError, match="Fan in and fan out can not be computed"):
            lib.nn.init.xavier_uniform_(lib.empty(3))
        with pytest.raises(ValueError, match="Mode wrong not supported"):
            lib.nn.init.kaiming_uniform_(lib.empty(3, 3), mode="wrong")
        with pytest.raises(ValueError, match="Only tensors with 2 dimensions"):
            lib.nn.init.eye_(lib.empty(3))


def test_initialising_a_parameter_needs_no_grad_mode():
    weight = rushlight.nn.Parameter(rushlight.zeros(2, 2))
    rushlight.nn.init.ones_(weight)
    assert weight.is_leaf and weight.requires_grad and weight.tolist() == [[1.0, 1.0], [1.0, 1.0]]


@pytest.mark.parametrize("norm_type", [2.0, 1.0, 3.0, float("inf")])
@pytest.mark.parametrize("max_norm", [0.5, 100.0])
def test_clip_grad_norm(norm_type, max_norm):
    random = np.random.default_rng(0)
    arrays = [random.standard_normal(shape).astype(np.float32) for shape in [(3, 4), (5,), ()]]
    ours, theirs = zip(*[pair(array, requires_grad=True) for array in arrays], strict=True)
    for mine, other in zip(ours, theirs, strict=True):
        (mine * mine).sum().backward()
        (other * other).sum().backward()
    got = rushlight.nn.utils.clip_grad_norm_(ours, max_norm, norm_type)
    expected = torch.nn.utils.clip_grad_norm_(theirs, max_norm, norm_type)
    assert isinstance(got, rushlight.Tensor)
    np.testing.assert_allclose(float(got), float(expected), rtol=1e-5)
    for mine, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(numbers(mine.grad), numbers(other.grad), rtol=1e-5)


def test_clip_grad_norm_nonfinite_and_without_gradients():
    for lib in (rushlight, torch):
        parameter = lib.nn.Parameter(lib.ones(2))
        assert float(lib.nn.utils.clip_grad_norm_([parameter], 1.0)) == 0.0
        parameter.grad = lib.tensor([float("inf"), 1.0])
        with pytest.raises(RuntimeError, match="The total norm of order 2.0 for gradients"):
            lib.nn.utils.clip_grad_norm_([parameter], 1.0, error_if_nonfinite=True)


def test_clip_grad_value():
    for lib in (rushlight, torch):
        parameter = lib.nn.Parameter(lib.ones(3))
        parameter.grad = lib.tensor([-3.0, 0.5, 2.0])
        lib.nn.utils.clip_grad_value_(parameter, 1.0)
        assert parameter.grad.tolist() == [-1.0, 0.5, 1.0]


def test_parameters_to_vector_and_back():
    for lib in (rushlight, torch):
        net = lib.nn.Linear(2, 3)
        vector = lib.nn.utils.parameters_to_vector(net.parameters())
        assert vector.shape == (9,) and vector.requires_grad
        lib.nn.utils.vector_to_parameters(lib.arange(9.0), net.parameters())
        assert net.weight.tolist() == [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]]
        assert net.bias.tolist() == [6.0, 7.0, 8.0]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "call",
    [
        lambda F, x: F.dropout(x, 0.4),
        lambda F, x: F.dropout(x, 1.0),
        lambda F, x: F.dropout2d(x, 0.4),
        lambda F, x: F.dropout1d(x[0], 0.4),
        lambda F, x: F.dropout3d(x, 0.4),
        lambda F, x: F.alpha_dropout(x, 0.4, training=True),
        lambda F, x: F.feature_alpha_dropout(x, 0.4, training=True),
        lambda F, x: F.rrelu(x, training=True),
        lambda F, x: F.gumbel_softmax(x, tau=0.7, dim=1),
        lambda F, x: F.gumbel_softmax(x, hard=True, dim=-1),
    ],
)
def test_random_functions(call):
    """The same seed gives the same mask, and the gradient is scaled as the value is."""
    ours, theirs = pair(np.random.default_rng(0).standard_normal((2, 3, 4, 5)).astype(np.float32), requires_grad=True)
    rushlight.manual_seed(5)
    got = call(rushlight.nn.functional, ours)
    torch.manual_seed(5)
    expected = call(torch.nn.functional, theirs)
    np.testing.assert_allclose(numbers(got), numbers(expected), rtol=1e-4, atol=1e-6)
    (got * got).sum().backward()
    (expected * expected).sum().backward()
    np.testing.assert_allclose(numbers(ours.grad), numbers(theirs.grad), rtol=1e-4, atol=1e-5)


@pytest.mark.filterwarnings("ignore")
def test_weight_norm():
    results = []
    for lib in (rushlight, torch):
        lib.manual_seed(0)
        layer = lib.nn.utils.weight_norm(lib.nn.Linear(3, 2))
        assert sorted(layer.state_dict()) == ["bias", "weight_g", "weight_v"]
        layer(lib.ones(1, 3)).sum().backward()
        grads = [layer.weight_g.grad, layer.weight_v.grad]
        lib.nn.utils.remove_weight_norm(layer)
        assert sorted(layer.state_dict()) == ["bias", "weight"]
        results.append([numbers(t) for t in (*grads, layer.weight)])
    for mine, other in zip(*results, strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-5, atol=1e-6)


def test_pad_sequence_and_the_refusal_to_pack():
    for lib in (rushlight, torch):
        sequences = [lib.ones(2), lib.ones(3) * 2]
        for options in ({}, dict(batch_first=True, padding_value=9.0), dict(padding_side="left")):
            padded = lib.nn.utils.rnn.pad_sequence(sequences, **options)
            reference = torch.nn.utils.rnn.pad_sequence([torch.ones(2), torch.ones(3) * 2], **options)
            assert padded.tolist() == reference.tolist()
    with pytest.raises(NotImplementedError, match="packed sequences are not supported"):
        rushlight.nn.utils.rnn.pack_padded_sequence(rushlight.ones(2, 2), [2, 1])
    with pytest.raises(NotImplementedError, match="pad the sequences"):
        rushlight.nn.LSTM(2, 2)(["not a tensor"])
