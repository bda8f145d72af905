"""Convolution, pooling, padding and resampling against torch: values, first and second derivatives, repr, errors."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the modules are compared with torch's")

import rushlight  # noqa: E402
from tests.nn.nn_compare import close, copy_parameters, numbers, pair, total  # noqa: E402

SEQUENCE, IMAGE, VOLUME = (2, 4, 9), (2, 4, 7, 6), (1, 4, 4, 5, 4)
CASES = [
    (lambda nn: nn.Conv1d(4, 6, 3), SEQUENCE),
    (lambda nn: nn.Conv1d(4, 6, 3, stride=2, padding=1, dilation=2, groups=2, bias=False), SEQUENCE),
    (lambda nn: nn.Conv1d(4, 2, 4, padding="same"), SEQUENCE),
    (lambda nn: nn.Conv1d(4, 2, 3, padding=2, padding_mode="circular"), SEQUENCE),
    (lambda nn: nn.Conv2d(4, 3, 3), IMAGE),
    (lambda nn: nn.Conv2d(4, 3, (3, 2), stride=(2, 1), padding=(1, 0)), IMAGE),
    (lambda nn: nn.Conv2d(4, 8, 3, padding=1, groups=4), IMAGE),
    (lambda nn: nn.Conv2d(4, 3, 3, dilation=2, padding="same"), IMAGE),
    (lambda nn: nn.Conv2d(4, 3, 3, padding="valid"), (4, 7, 6)),
    (lambda nn: nn.Conv2d(4, 3, 3, padding=1, padding_mode="reflect"), IMAGE),
    (lambda nn: nn.Conv2d(4, 3, 3, padding=1, padding_mode="replicate"), IMAGE),
    (lambda nn: nn.Conv3d(4, 2, 2, stride=2, padding=1), VOLUME),
    (lambda nn: nn.ConvTranspose1d(4, 3, 3, stride=2), SEQUENCE),
    (lambda nn: nn.ConvTranspose2d(4, 6, 3, stride=2, padding=1, output_padding=1, groups=2), IMAGE),
    (lambda nn: nn.ConvTranspose2d(4, 3, (3, 2), dilation=2, bias=False), IMAGE),
    (lambda nn: nn.ConvTranspose3d(4, 2, 2, stride=2), VOLUME),
    (lambda nn: nn.MaxPool1d(3), SEQUENCE),
    (lambda nn: nn.MaxPool2d(2), IMAGE),
    (lambda nn: nn.MaxPool2d(3, stride=2, padding=1, ceil_mode=True), IMAGE),
    (lambda nn: nn.MaxPool2d((3, 2), stride=1, dilation=2), IMAGE),
    (lambda nn: nn.MaxPool3d(2), VOLUME),
    (lambda nn: nn.AvgPool1d(3, stride=2, padding=1), SEQUENCE),
    (lambda nn: nn.AvgPool2d(2), IMAGE),
    (lambda nn: nn.AvgPool2d(3, stride=2, padding=1, ceil_mode=True), IMAGE),
    (lambda nn: nn.AvgPool2d(3, stride=2, padding=1, count_include_pad=False), IMAGE),
    (lambda nn: nn.AvgPool2d(2, divisor_override=3), (4, 7, 6)),
    (lambda nn: nn.AvgPool3d(2), VOLUME),
    (lambda nn: nn.AdaptiveAvgPool1d(4), SEQUENCE),
    (lambda nn: nn.AdaptiveAvgPool2d((3, None)), IMAGE),
    (lambda nn: nn.AdaptiveAvgPool2d(1), IMAGE),
    (lambda nn: nn.AdaptiveAvgPool3d(2), VOLUME),
    (lambda nn: nn.AdaptiveMaxPool2d(3), IMAGE),
    (lambda nn: nn.ConstantPad1d(2, 1.5), SEQUENCE),
    (lambda nn: nn.ZeroPad2d((1, 0, 2, 1)), IMAGE),
    (lambda nn: nn.ReflectionPad2d(2), IMAGE),
    (lambda nn: nn.ReplicationPad1d(2), SEQUENCE),
    (lambda nn: nn.CircularPad2d(1), IMAGE),
    (lambda nn: nn.PixelShuffle(2), IMAGE),
    (lambda nn: nn.PixelUnshuffle(3), (2, 2, 6, 3)),
    (lambda nn: nn.Unfold(3, padding=1, stride=2), IMAGE),
    (lambda nn: nn.Unfold((2, 3), dilation=2), (4, 7, 6)),
    (lambda nn: nn.Fold((5, 6), (2, 3), padding=1), (2, 12, 36)),
    (lambda nn: nn.Fold(4, 2, stride=2), (8, 4)),
    (lambda nn: nn.Upsample(scale_factor=2), IMAGE),
    (lambda nn: nn.Upsample(size=(5, 9)), IMAGE),
    (lambda nn: nn.Upsample(scale_factor=1.7), SEQUENCE),
    (lambda nn: nn.Upsample(scale_factor=2, mode="bilinear"), IMAGE),
    (lambda nn: nn.Upsample(size=5, mode="linear", align_corners=True), SEQUENCE),
    (lambda nn: nn.UpsamplingBilinear2d(scale_factor=2), IMAGE),
]


def penalty(library, module, x):
    """The norm of the input's gradient: its own gradients need second derivatives."""
    (slope,) = library.autograd.grad((module(x) ** 2).sum(), x, create_graph=True)
    return (slope**2).sum()


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0](torch.nn)!r}")
def test_module(case):
    make, shape = case
    rushlight.manual_seed(4)
    ours = make(rushlight.nn)
    torch.manual_seed(4)
    theirs = make(torch.nn)
    assert repr(ours) == repr(theirs) and list(ours.state_dict()) == list(theirs.state_dict())
    for one, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        np.testing.assert_allclose(numbers(one), numbers(other), rtol=1e-6)
    ours.double()
    copy_parameters(ours, theirs.double())
    x, y = pair(np.random.default_rng(0).standard_normal(shape), requires_grad=True)
    got, expected = ours(x), theirs(y)
    close(got, expected, 1e-6)
    total(got).backward()
    total(expected).backward()
    close(x.grad, y.grad, 1e-6)
    close([p.grad for p in ours.parameters()], [p.grad for p in theirs.parameters()], 1e-6)
    for module, value in ((ours, x), (theirs, y)):
        module.zero_grad()
        value.grad = None
    penalty(rushlight, ours, x).backward()
    penalty(torch, theirs, y).backward()
    close(x.grad, y.grad, 1e-6)
    close([p.grad for p in ours.parameters()], [p.grad for p in theirs.parameters()], 1e-6)


def test_indices_and_output_size():
    x, y = pair(np.random.default_rng(0).standard_normal(IMAGE).astype(np.float32))
    for options in (dict(kernel_size=2), dict(kernel_size=3, stride=2, padding=1)):
        close(
            rushlight.nn.functional.max_pool2d(x, **options, return_indices=True),
            torch.nn.functional.max_pool2d(y, **options, return_indices=True),
        )
    ours, theirs = rushlight.nn.ConvTranspose2d(4, 2, 3, stride=2), torch.nn.ConvTranspose2d(4, 2, 3, stride=2)
    copy_parameters(ours, theirs)
    close(ours(x, output_size=[16, 14]), theirs(y, output_size=[16, 14]))


@pytest.mark.parametrize(
    "call",
    [
        lambda nn, x: nn.Conv2d(3, 2, 3)(x),
        lambda nn, x: nn.Conv2d(4, 2, 9)(x),
        lambda nn, x: nn.Conv2d(4, 3, 3, groups=2),
        lambda nn, x: nn.Conv2d(4, 4, 3, groups=0),
        lambda nn, x: nn.Conv2d(4, 4, 3, padding="wrong"),
        lambda nn, x: nn.Conv2d(4, 4, 3, padding="same", stride=2),
        lambda nn, x: nn.Conv2d(4, 4, 3)(x[0, 0]),
        lambda nn, x: nn.MaxPool2d(2, padding=2)(x),
        lambda nn, x: nn.functional.interpolate(x),
        lambda nn, x: nn.functional.interpolate(x, size=3, scale_factor=2),
    ],
)
def test_errors(call):
    """Same exception type, and the same opening words."""
    x, y = pair(np.ones(IMAGE, np.float32))
    with pytest.raises(Exception) as expected:
        call(torch.nn, y)
    with pytest.raises(type(expected.value)) as got:
        call(rushlight.nn, x)
    assert str(got.value).startswith(" ".join(str(expected.value).split()[:3]))
