"""Pooling, padding and resampling modules against torch: repr, options, values, gradients."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the modules are compared with torch's")

import rushlight  # noqa: E402
from tests.nn.nn_compare import close, pair, total  # noqa: E402

SEQUENCE, IMAGE, VOLUME = (2, 4, 9), (2, 4, 8, 6), (1, 4, 4, 6, 4)
CASES = [
    (lambda nn: nn.LPPool1d(2, 3), SEQUENCE),
    (lambda nn: nn.LPPool2d(2, 3, stride=2, ceil_mode=True), IMAGE),
    (lambda nn: nn.LPPool3d(2, 2), VOLUME),
    (lambda nn: nn.MaxPool1d(3, return_indices=True), SEQUENCE),
    (lambda nn: nn.MaxPool3d(3, 1, 1, ceil_mode=True), VOLUME),
    (lambda nn: nn.AvgPool3d(2, ceil_mode=True, divisor_override=5), VOLUME),
    (lambda nn: nn.AdaptiveMaxPool1d(4, return_indices=True), SEQUENCE),
    (lambda nn: nn.AdaptiveMaxPool2d((3, None)), IMAGE),
    (lambda nn: nn.AdaptiveMaxPool3d(2), VOLUME),
    (lambda nn: nn.AdaptiveAvgPool3d((None, 2, 1)), VOLUME),
    (lambda nn: nn.FractionalMaxPool2d(2, output_ratio=(0.5, 0.7), _random_samples=None), IMAGE),
    (lambda nn: nn.FractionalMaxPool3d(2, output_size=2, return_indices=True), VOLUME),
    (lambda nn: nn.ZeroPad1d(2), SEQUENCE),
    (lambda nn: nn.ZeroPad3d((1, 0, 2, 1, 0, 1)), VOLUME),
    (lambda nn: nn.ConstantPad2d((1, -1, 2, 0), 2.5), IMAGE),
    (lambda nn: nn.ConstantPad3d(1, -1.0), VOLUME),
    (lambda nn: nn.ReflectionPad1d((3, 1)), SEQUENCE),
    (lambda nn: nn.ReflectionPad3d(1), VOLUME),
    (lambda nn: nn.ReplicationPad2d((0, 3, 1, 0)), IMAGE),
    (lambda nn: nn.ReplicationPad3d(2), VOLUME),
    (lambda nn: nn.CircularPad1d((1, 2)), SEQUENCE),
    (lambda nn: nn.CircularPad3d(1), VOLUME),
    (lambda nn: nn.Upsample(scale_factor=(2, 1.5), mode="bicubic", align_corners=True), IMAGE),
    (lambda nn: nn.Upsample(size=(3, 5, 9), mode="trilinear"), VOLUME),
    (lambda nn: nn.Upsample(scale_factor=2, mode="nearest-exact"), SEQUENCE),
    (lambda nn: nn.UpsamplingNearest2d(size=11), IMAGE),
    (lambda nn: nn.ChannelShuffle(2), IMAGE),
    (lambda nn: nn.Unfold((2, 3), padding=1, stride=2), IMAGE),
    (lambda nn: nn.Fold((5, 4), 2, stride=(1, 2)), (2, 8, 8)),
]  # fmt: skip


@pytest.mark.parametrize("make, shape", CASES, ids=lambda case: repr(case(torch.nn)) if callable(case) else "")
def test_module(make, shape):
    ours, theirs = make(rushlight.nn), make(torch.nn)
    assert repr(ours) == repr(theirs)
    public = [{k: v for k, v in vars(one).items() if k[0] != "_"} for one in (ours, theirs)]
    assert public[0] == public[1]
    x, y = pair(np.random.default_rng(0).standard_normal(shape), requires_grad=True)
    rushlight.manual_seed(6)
    torch.manual_seed(6)
    got, expected = ours(x), theirs(y)
    close(got, expected, 1e-9)
    firsts = [one[0] if isinstance(one, tuple) else one for one in (got, expected)]
    for one in firsts:
        total(one * one).backward()
    close(x.grad, y.grad, 1e-9)


@pytest.mark.parametrize("rank, size", [(1, None), (2, None), (2, (2, 3, 9, 7)), (3, None)])
def test_unpool(rank, size):
    x, y = pair(np.random.default_rng(1).standard_normal((2, 3, *(8, 6, 4)[:rank])), requires_grad=True)
    results = []
    for nn, value in ((rushlight.nn, x), (torch.nn, y)):
        pool = getattr(nn, f"MaxPool{rank}d")(2, return_indices=True)
        back = getattr(nn, f"MaxUnpool{rank}d")(2)
        made, indices = pool(value)
        results.append(back(made, indices, output_size=size))
        total(results[-1]).backward()
    assert repr(back) == repr(getattr(rushlight.nn, f"MaxUnpool{rank}d")(2))
    close(*results)
    close(x.grad, y.grad)


def test_a_small_network_trains_as_torch_does():
    """The same seed: the same starting weights, the same losses."""
    losses = []
    images = np.random.default_rng(2).standard_normal((8, 1, 12, 12)).astype(np.float32)
    labels = np.arange(8) % 3
    for library in (rushlight, torch):
        nn = library.nn
        library.manual_seed(3)
        network = nn.Sequential(
            nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(4, 8, 3, stride=2, bias=False),
            nn.Tanh(), nn.ConvTranspose2d(8, 4, 2), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(16, 3),
        )  # fmt: skip
        optimizer = library.optim.SGD(network.parameters(), lr=0.3, momentum=0.9)
        kept = []
        for _ in range(6):
            loss = nn.functional.cross_entropy(network(library.tensor(images)), library.tensor(labels))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            kept.append(loss.item())
        losses.append(kept)
    np.testing.assert_allclose(losses[0], losses[1], rtol=1e-4)
    assert losses[0][-1] < losses[0][0]
