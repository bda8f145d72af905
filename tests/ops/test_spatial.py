"""Convolution, pooling, padding, resampling against torch: values, both orders, node names, what is saved, errors."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the operations are compared with torch's")

import rushlight  # noqa: E402
from tests.ops.comparing import check, leaf, node_name, outputs_of, second_backward  # noqa: E402

GENERATOR = np.random.default_rng(0)
SEQUENCE, IMAGE, VOLUME = (2, 4, 9), (2, 4, 7, 6), (1, 4, 4, 5, 4)


def draw(*shape):
    return GENERATOR.standard_normal(shape)


def call(name, *rest, **options):
    """The function of nn.functional on the tensors given."""
    return lambda module, *tensors: getattr(module.nn.functional, name)(*tensors, *rest, **options)


CONVOLUTIONS = [
    ("conv1d", (SEQUENCE, (6, 4, 3), (6,)), {}),
    ("conv1d", (SEQUENCE, (6, 2, 3)), {"stride": 2, "padding": 1, "dilation": 2, "groups": 2}),
    ("conv1d", (SEQUENCE[1:], (3, 4, 2), (3,)), {"padding": "same"}),
    ("conv2d", (IMAGE, (3, 4, 3, 2), (3,)), {}),
    ("conv2d", (IMAGE, (3, 4, 3, 3), (3,)), {"stride": (2, 1), "padding": (1, 2), "dilation": (1, 2)}),
    ("conv2d", (IMAGE, (8, 1, 3, 3), (8,)), {"padding": 1, "groups": 4}),
    ("conv2d", (IMAGE, (4, 1, 2, 3)), {"stride": 3, "groups": 4}),
    ("conv2d", (IMAGE, (3, 4, 1, 1), (3,)), {"padding": "valid"}),
    ("conv2d", (IMAGE, (3, 4, 3, 3)), {"padding": "same", "dilation": 2}),
    ("conv2d", ((0, 4, 7, 6), (3, 4, 3, 3), (3,)), {}),
    ("conv3d", (VOLUME, (2, 4, 2, 3, 2), (2,)), {"stride": 2, "padding": 1}),
    ("conv_transpose1d", (SEQUENCE, (4, 3, 3), (3,)), {"stride": 2}),
    ("conv_transpose2d", (IMAGE, (4, 3, 3, 2), (6,)),
     {"stride": 2, "padding": 1, "output_padding": 1, "groups": 2}),
    ("conv_transpose2d", (IMAGE[1:], (4, 3, 2, 2)), {"dilation": (3, 2), "output_padding": (2, 1)}),
    ("conv_transpose3d", (VOLUME, (4, 2, 2, 1, 2), (2,)), {"stride": (2, 1, 2)}),
]  # fmt: skip


@pytest.mark.parametrize("name, shapes, options", CONVOLUTIONS, ids=str)
@pytest.mark.parametrize("kind", [np.float64, np.complex128])
def test_convolution(name, shapes, options, kind):
    arrays = [draw(*shape) if kind is np.float64 else draw(*shape) + 1j * draw(*shape) for shape in shapes]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch warns of the copy that odd padding="same" takes
        check(torch, rushlight, call(name, **options), *arrays)


@pytest.mark.parametrize("needed", [(0,), (1,), (2,), (0, 1), (1, 2), (0, 1, 2)], ids=str)
def test_convolution_saves_both_sides(needed):
    """Whichever gradients are wanted, input and weight are saved, and used up by backward."""
    for module in (torch, rushlight):
        tensors = [module.tensor(draw(*shape)) for shape in (IMAGE, (3, 4, 3, 3), (3,))]
        for number in needed:
            tensors[number].requires_grad_()
        made = module.nn.functional.conv2d(*tensors)
        assert node_name(made) == "ConvolutionBackward0"
        assert made.grad_fn._saved_input is tensors[0] and made.grad_fn._saved_weight is tensors[1]
        made.sum().backward()
        assert [number for number, one in enumerate(tensors) if one.grad is not None] == list(needed)
        with pytest.raises(RuntimeError, match="backward through the graph a second time"):
            made.sum().backward()


def test_large_convolution_is_done_in_shares():
    """Samples are convolved some at a time: the last share is smaller."""
    check(torch, rushlight, call("conv2d", padding=1), draw(19, 8, 32, 32), draw(4, 8, 3, 3), second=False, atol=1e-8)


def test_half_precision_is_computed_in_single():
    x, w = (GENERATOR.standard_normal(shape).astype(np.float16) for shape in ((2, 16, 6, 6), (4, 16, 3, 3)))
    got = rushlight.nn.functional.conv2d(rushlight.tensor(x), rushlight.tensor(w)).numpy()
    assert got.dtype == np.float16
    exact = torch.nn.functional.conv2d(torch.tensor(x).double(), torch.tensor(w).double()).numpy()
    np.testing.assert_allclose(got, exact, rtol=1e-3, atol=1e-3)


OTHERS = [
    ("max_pool1d", (SEQUENCE,), {"kernel_size": 3, "stride": 2, "padding": 1, "return_indices": True}),
    ("max_pool2d", (IMAGE,), {"kernel_size": 2}),
    ("max_pool2d", (IMAGE[1:],),
     {"kernel_size": (3, 2), "stride": (2, 1), "padding": 1, "dilation": (2, 1), "ceil_mode": True,
      "return_indices": True}),
    ("max_pool3d", (VOLUME,), {"kernel_size": 2, "stride": 1, "padding": 1, "return_indices": True}),
    ("avg_pool1d", (SEQUENCE,), {"kernel_size": 3, "stride": 2, "padding": 1}),
    ("avg_pool2d", (IMAGE,), {"kernel_size": 3, "stride": 2, "padding": 1, "ceil_mode": True}),
    ("avg_pool2d", (IMAGE,), {"kernel_size": 3, "stride": 2, "padding": 1, "count_include_pad": False}),
    ("avg_pool2d", (IMAGE,), {"kernel_size": 2, "divisor_override": 3}),
    ("avg_pool3d", (VOLUME[1:],), {"kernel_size": 2, "stride": 1}),
    ("adaptive_avg_pool1d", (SEQUENCE,), {"output_size": 4}),
    ("adaptive_avg_pool2d", (IMAGE,), {"output_size": (3, None)}),
    ("adaptive_avg_pool2d", (IMAGE,), {"output_size": (10, 4)}),
    ("adaptive_avg_pool2d", (IMAGE,), {"output_size": 1}),
    ("adaptive_avg_pool3d", (VOLUME,), {"output_size": (3, 2, 5)}),
    ("adaptive_max_pool1d", (SEQUENCE,), {"output_size": 4, "return_indices": True}),
    ("adaptive_max_pool2d", (IMAGE,), {"output_size": (10, 4), "return_indices": True}),
    ("adaptive_max_pool3d", (VOLUME,), {"output_size": (3, 2, 3)}),
    ("lp_pool1d", (SEQUENCE,), {"norm_type": 2.0, "kernel_size": 3}),
    ("lp_pool2d", (IMAGE,), {"norm_type": 4.0, "kernel_size": (2, 3), "stride": 2}),
    ("lp_pool3d", (VOLUME,), {"norm_type": 2.0, "kernel_size": 2, "ceil_mode": True}),
    ("pad", (SEQUENCE,), {"pad": (2, 1), "mode": "reflect"}),
    ("pad", (IMAGE,), {"pad": (2, -1, 1, 3), "mode": "replicate"}),
    ("pad", (IMAGE,), {"pad": (2, -1, -1, 2), "mode": "circular"}),
    ("pad", (VOLUME,), {"pad": (1, 1, 2, 0, 1, 2), "mode": "reflect"}),
    ("pad", (IMAGE,), {"pad": (1, -2, 0, 2), "value": 1.5}),
    ("unfold", (IMAGE,), {"kernel_size": (3, 2), "dilation": (1, 2), "padding": (1, 0), "stride": 2}),
    ("fold", ((2, 12, 30),), {"output_size": (7, 6), "kernel_size": 2}),
    ("fold", ((12, 12),), {"output_size": (7, 6), "kernel_size": (3, 2), "padding": (0, 1), "stride": 2}),
    ("pixel_shuffle", (IMAGE,), {"upscale_factor": 2}),
    ("pixel_unshuffle", ((2, 2, 6, 4),), {"downscale_factor": 2}),
    ("channel_shuffle", (IMAGE,), {"groups": 2}),
    ("interpolate", (SEQUENCE,), {"scale_factor": 1.7}),
    ("interpolate", (SEQUENCE,), {"size": 5, "mode": "nearest-exact"}),
    ("interpolate", (SEQUENCE,), {"size": 13, "mode": "linear", "align_corners": True}),
    ("interpolate", (IMAGE,), {"scale_factor": (2.2, 0.6), "mode": "bilinear"}),
    ("interpolate", (IMAGE,), {"scale_factor": (2.2, 0.6), "mode": "bilinear", "recompute_scale_factor": True}),
    ("interpolate", (IMAGE,), {"size": (9, 3), "mode": "bicubic"}),
    ("interpolate", (IMAGE,), {"size": (9, 3), "mode": "bicubic", "align_corners": True}),
    ("interpolate", (IMAGE,), {"size": (3, 9), "mode": "bilinear", "antialias": True}),
    ("interpolate", (IMAGE,), {"size": (3, 9), "mode": "bicubic", "antialias": True}),
    ("interpolate", (IMAGE,), {"size": (3, 9), "mode": "lanczos", "antialias": True}),
    ("interpolate", (VOLUME,), {"scale_factor": 1.5, "mode": "trilinear"}),
    ("interpolate", (IMAGE,), {"size": (3, 4), "mode": "area"}),
    ("affine_grid", ((2, 2, 3),), {"size": (2, 3, 4, 5), "align_corners": False}),
    ("affine_grid", ((2, 3, 4),), {"size": (2, 1, 2, 3, 2), "align_corners": True}),
]  # fmt: skip


@pytest.mark.parametrize("name, shapes, options", OTHERS, ids=str)
def test_others(name, shapes, options):
    arrays = [draw(*shape) for shape in shapes]
    expression = call(name, **options)
    curved = lambda module, *inputs: expression(module, *(one**2 * 0.5 + one for one in inputs))
    check(torch, rushlight, curved, *arrays)
    circular = options.get("mode") == "circular"  # torch composes this one of copies
    theirs, ours = (outputs_of(expression(module, leaf(module, arrays[0])))[0] for module in (torch, rushlight))
    assert circular or node_name(ours) == node_name(theirs)
    freed = [second_backward(module, expression, arrays[0]) for module in (rushlight, torch)]
    assert freed[0] == freed[1]


@pytest.mark.parametrize(
    "mode, align_corners", [("bilinear", True), ("nearest", False), ("bicubic", False), ("bicubic", True)]
)
@pytest.mark.parametrize("padding_mode", ["zeros", "border", "reflection"])
def test_grid_sample(mode, padding_mode, align_corners):
    options = {"mode": mode, "padding_mode": padding_mode, "align_corners": align_corners}
    check(torch, rushlight, call("grid_sample", **options), draw(2, 3, 5, 4), 1.5 * draw(2, 3, 4, 2))
    if mode != "bicubic":
        check(torch, rushlight, call("grid_sample", **options), draw(2, 1, 3, 4, 2), 1.5 * draw(2, 2, 1, 3, 3))


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_max_unpool(rank):
    shape = (2, 3, *(4, 6, 2)[:rank])

    def there_and_back(module, x):
        functional = module.nn.functional
        made, indices = getattr(functional, f"max_pool{rank}d")(x, 2, return_indices=True)
        return getattr(functional, f"max_unpool{rank}d")(made * made, indices, 2)

    check(torch, rushlight, there_and_back, draw(*shape))


@pytest.mark.parametrize("rank", [2, 3])
def test_fractional_max_pool(rank):
    """With the same seed the windows lie where torch's do."""

    def pool(module, x):
        module.manual_seed(5)
        function = getattr(module.nn.functional, f"fractional_max_pool{rank}d")
        return function(x, 2, output_ratio=(0.6,) * rank, return_indices=True)

    check(torch, rushlight, pool, draw(2, 3, *(9, 8, 7)[:rank]))


def test_arrays_of_any_layout():
    """What is cut out of, or a transpose of, another array."""
    weight, x = draw(3, 4, 3, 3), draw(3, 9, 8, 6)
    for name, rest in (("conv2d", (weight,)), ("max_pool2d", ()), ("avg_pool2d", ()), ("unfold", ())):
        def function(module, t, *others, name=name):
            apply = getattr(module.nn.functional, name)
            seen = t.permute(0, 3, 2, 1)[1:, 1:5, ::2, 1:]
            return apply(seen, *others) if others else apply(seen, 2)

        check(torch, rushlight, function, x, *rest)


@pytest.mark.parametrize("function", ["max_pool2d", "adaptive_max_pool2d"])
def test_ties_nan_and_infinity(function):
    """The first of equals gets the gradient; nan wins; a window of -inf has its first element's index."""
    x = np.round(draw(3, 2, 6, 6))
    x[0, 0, 1, 1] = x[0, 1, 4, 5] = np.nan
    x[1, 0, :4] = -np.inf
    x[2] = 0
    check(torch, rushlight, call(function, 3, return_indices=True), x)


@pytest.mark.parametrize("kind", [np.int64, np.uint8])
def test_integers(kind):
    x = GENERATOR.integers(0 if kind is np.uint8 else -9, 9, IMAGE).astype(kind)
    pairs = [("max_pool2d", (2,)), ("interpolate", (5,))] if kind is np.uint8 else [
        ("max_pool2d", (2,)), ("avg_pool2d", (3,)), ("conv2d", ())]  # fmt: skip
    for name, rest in pairs:
        made = []
        for module in (torch, rushlight):
            extra = [module.tensor(np.arange(24).reshape(2, 4, 3, 1))] if name == "conv2d" else []
            made.append(getattr(module.nn.functional, name)(module.tensor(x), *extra, *rest).numpy())
        assert made[0].dtype == made[1].dtype
        np.testing.assert_array_equal(*made)


ERRORS = [
    lambda F, x, w: F.conv2d(x[:, :3], w),
    lambda F, x, w: F.conv2d(x, w, groups=2),
    lambda F, x, w: F.conv2d(x, w, groups=0),
    lambda F, x, w: F.conv2d(x, w, x[0, 0, 0]),
    lambda F, x, w: F.conv2d(x, w, stride=0),
    lambda F, x, w: F.conv2d(x, w, padding=-1),
    lambda F, x, w: F.conv2d(x, w, stride=(1, 2, 3)),
    lambda F, x, w: F.conv2d(x, w, padding="wide"),
    lambda F, x, w: F.conv2d(x, w, padding="same", stride=2),
    lambda F, x, w: F.conv2d(x[:, :, :2], w),
    lambda F, x, w: F.conv2d(x[0, 0], w),
    lambda F, x, w: F.conv2d(x, w.double()),
    lambda F, x, w: F.conv2d(x, None),
    lambda F, x, w: F.conv_transpose2d(x, w),
    lambda F, x, w: F.conv_transpose2d(x, w.transpose(0, 1), output_padding=1),
    lambda F, x, w: F.max_pool2d(x, 0),
    lambda F, x, w: F.max_pool2d(x, 2, padding=2),
    lambda F, x, w: F.max_pool2d(x, 9),
    lambda F, x, w: F.max_pool2d(x, (1, 2, 3)),
    lambda F, x, w: F.max_pool2d(x[0, 0], 2),
    lambda F, x, w: F.max_pool1d(x[0], 9),
    lambda F, x, w: F.max_pool1d(x, 2),
    lambda F, x, w: F.avg_pool2d(x, 2, divisor_override=0),
    lambda F, x, w: F.avg_pool2d(x[0, 0], 2),
    lambda F, x, w: F.avg_pool1d(x, 2),
    lambda F, x, w: F.adaptive_avg_pool2d(x, (1, 2, 3)),
    lambda F, x, w: F.adaptive_avg_pool2d(x[0, 0], (2, 2)),
    lambda F, x, w: F.adaptive_max_pool2d(x.long(), 2),
    lambda F, x, w: F.max_unpool2d(x, x.long() + 900, 2),
    lambda F, x, w: F.max_unpool2d(x, x, 2),
    lambda F, x, w: F.interpolate(x),
    lambda F, x, w: F.interpolate(x, 3, 2.0),
    lambda F, x, w: F.interpolate(x, 3, mode="linear"),
    lambda F, x, w: F.interpolate(x, 3, mode="wavelet"),
    lambda F, x, w: F.interpolate(x, 3, align_corners=True),
    lambda F, x, w: F.interpolate(x, (1, 2, 3)),
    lambda F, x, w: F.interpolate(x, 0),
    lambda F, x, w: F.interpolate(x.long(), 3),
    lambda F, x, w: F.pad(x, (7, 7, 0, 0), "reflect"),
    lambda F, x, w: F.pad(x, (1,)),
    lambda F, x, w: F.pad(x, (1, 1), "mirror"),
    lambda F, x, w: F.unfold(x, 9),
    lambda F, x, w: F.fold(x[0], (6, 6), 3),
    lambda F, x, w: F.grid_sample(x, x[..., :2], "cubic"),
    lambda F, x, w: F.grid_sample(x, x),
    lambda F, x, w: F.affine_grid(x[0], (4, 1, 3, 3)),
]


@pytest.mark.parametrize("number", range(len(ERRORS)))
def test_errors(number):
    """The same exception type, and the same opening words."""
    raised = []
    for module in (torch, rushlight):
        x, w = module.tensor(np.ones(IMAGE, np.float32)), module.tensor(np.ones((3, 4, 3, 3), np.float32))
        with pytest.raises(Exception) as caught:
            ERRORS[number](module.nn.functional, x, w)
        raised.append(caught.value)
    assert type(raised[0]) is type(raised[1])
    words = str(raised[0]).split()[:3]
    assert str(raised[1]).split()[: len(words)] == words
