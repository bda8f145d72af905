"""Attention and the transformer against torch."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="attention is compared with torch's")

import rushlight  # noqa: E402
from tests.nn.nn_compare import close, copy_parameters, numbers, pair, total  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")


def floats(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def run_both(ours, theirs, inputs, **options):
    """Call both modules on the same inputs; compare results and all gradients. Options map to (ours, theirs)."""
    pairs = [pair(array, requires_grad=True) for array in inputs]
    mine = ours(*(one for one, _ in pairs), **{name: value[0] for name, value in options.items()})
    other = theirs(*(one for _, one in pairs), **{name: value[1] for name, value in options.items()})
    close(mine, other)
    total(mine).backward()
    total(other).backward()
    close([one.grad for one, _ in pairs], [one.grad for _, one in pairs], 1e-4)
    if hasattr(ours, "parameters"):
        close([p.grad for p in ours.parameters()], [p.grad for p in theirs.parameters()], 1e-4)


ATTENTION = {
    "plain": (dict(), {}),
    "averaged": (dict(), dict(average_attn_weights=(False, False))),
    "no weights": (dict(), dict(need_weights=(False, False))),
    "batch first": (dict(batch_first=True), {}),
    "no bias": (dict(bias=False), {}),
    "extras": (dict(add_bias_kv=True, add_zero_attn=True), {}),
    "other sizes": (dict(kdim=5, vdim=3), {}),
    "padding": (dict(), dict(key_padding_mask=pair(np.array([[0, 1, 0, 0], [0, 0, 0, 1]], bool)))),
    "mask": (dict(), dict(attn_mask=pair(np.triu(np.full((3, 4), -np.inf, np.float32), 1)))),
    "boolean mask": (dict(add_zero_attn=True), dict(attn_mask=pair(np.triu(np.ones((3, 4), bool), 1)))),
    "mask per head": (dict(), dict(attn_mask=pair(floats(4, 3, 4)))),
}


@pytest.mark.parametrize("name", ATTENTION)
def test_multihead_attention(name):
    options, call = ATTENTION[name]
    rushlight.manual_seed(1)
    ours = rushlight.nn.MultiheadAttention(6, 2, **options)
    torch.manual_seed(1)
    theirs = torch.nn.MultiheadAttention(6, 2, **options)
    assert list(ours.state_dict()) == list(theirs.state_dict()) and repr(ours) == repr(theirs)
    for one, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        np.testing.assert_allclose(numbers(one), numbers(other), rtol=1e-6)
    copy_parameters(ours, theirs)
    query, key, value = floats(3, 2, 6), floats(4, 2, ours.kdim, seed=1), floats(4, 2, ours.vdim, seed=2)
    if options.get("batch_first"):
        query, key, value = (array.swapaxes(0, 1) for array in (query, key, value))
    run_both(ours, theirs, [query, key, value], **call)


def test_unbatched_attention():
    ours, theirs = rushlight.nn.MultiheadAttention(4, 2), torch.nn.MultiheadAttention(4, 2)
    copy_parameters(ours, theirs)
    run_both(ours, theirs, [floats(3, 4), floats(5, 4, seed=1), floats(5, 4, seed=2)])


@pytest.mark.parametrize(
    "options",
    [
        {},
        dict(is_causal=(True, True)),
        dict(scale=(0.3, 0.3)),
        dict(attn_mask=pair(floats(3, 5))),
        dict(attn_mask=pair(np.array([[True, False, True, True, False], [True] * 5, [False] * 5]))),
    ],
)
def test_scaled_dot_product_attention(options):
    inputs = [floats(2, 2, 3, 4), floats(2, 2, 5, 4, seed=1), floats(2, 2, 5, 6, seed=2)]
    run_both(
        rushlight.nn.functional.scaled_dot_product_attention,
        torch.nn.functional.scaled_dot_product_attention,
        inputs,
        **options,
    )


def test_grouped_queries():
    inputs = [floats(1, 4, 3, 2), floats(1, 2, 5, 2, seed=1), floats(1, 2, 5, 2, seed=2)]
    run_both(
        rushlight.nn.functional.scaled_dot_product_attention,
        torch.nn.functional.scaled_dot_product_attention,
        inputs,
        enable_gqa=(True, True),
    )


@pytest.mark.parametrize(
    "options", [dict(), dict(norm_first=True, activation="gelu"), dict(batch_first=True, bias=False)]
)
def test_encoder_and_decoder_layers(options):
    make = dict(d_model=6, nhead=2, dim_feedforward=8, dropout=0.0, **options)
    mask = pair(np.triu(np.full((3, 3), -np.inf, np.float32), 1))
    shape = (2, 3, 6) if options.get("batch_first") else (3, 2, 6)
    ours, theirs = rushlight.nn.TransformerEncoderLayer(**make), torch.nn.TransformerEncoderLayer(**make)
    assert repr(ours) == repr(theirs)
    copy_parameters(ours, theirs)
    run_both(ours, theirs, [floats(*shape)], src_mask=mask)
    ours, theirs = rushlight.nn.TransformerDecoderLayer(**make), torch.nn.TransformerDecoderLayer(**make)
    assert repr(ours) == repr(theirs)
    copy_parameters(ours, theirs)
    run_both(ours, theirs, [floats(*shape), floats(*shape, seed=1)], tgt_mask=mask)


def test_transformer():
    options = dict(d_model=4, nhead=2, num_encoder_layers=2, num_decoder_layers=1, dim_feedforward=5, dropout=0.0)
    rushlight.manual_seed(2)
    ours = rushlight.nn.Transformer(**options)
    torch.manual_seed(2)
    theirs = torch.nn.Transformer(**options)
    assert repr(ours) == repr(theirs) and list(ours.state_dict()) == list(theirs.state_dict())
    for one, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        np.testing.assert_allclose(numbers(one), numbers(other), rtol=1e-6)
    copy_parameters(ours, theirs)
    mask = (ours.generate_square_subsequent_mask(2), theirs.generate_square_subsequent_mask(2))
    close(*mask)
    run_both(ours, theirs, [floats(3, 2, 4), floats(2, 2, 4, seed=1)], tgt_mask=mask)
    for library, model in ((rushlight, ours), (torch, theirs)):
        with pytest.raises(RuntimeError, match="the feature number of src and tgt must be equal to d_model"):
            model(library.ones(3, 2, 5), library.ones(2, 2, 5))


def test_attention_errors():
    for nn in (rushlight.nn, torch.nn):
        with pytest.raises(ValueError, match="embed_dim and num_heads must be greater than 0"):
            nn.MultiheadAttention(0, 2)
        with pytest.raises(AssertionError, match="embed_dim must be divisible by num_heads"):
            nn.MultiheadAttention(5, 2)
        with pytest.raises(RuntimeError, match="activation should be relu/gelu, not wrong"):
            nn.TransformerEncoderLayer(4, 2, activation="wrong")
