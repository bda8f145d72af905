"""Views, copies and joining against real torch: values, gradients of both orders, nodes, memory, strides, errors."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import rushlight
from tests.ops.comparing import check, leaf, node_name, outputs_of, plain, second_backward

torch = pytest.importorskip("torch", reason="these tests compare with real torch")

GENERATOR = np.random.default_rng(11)
VECTOR = GENERATOR.standard_normal(6)
MATRIX = GENERATOR.standard_normal((3, 4))
CUBE = GENERATOR.standard_normal((2, 3, 4))
THIN = GENERATOR.standard_normal((1, 3, 1, 2))
IMAGE = GENERATOR.standard_normal((2, 4, 4, 6))
COMPLEX = GENERATOR.standard_normal((3, 4)) + 1j * GENERATOR.standard_normal((3, 4))

VIEWS = {
    "view": (CUBE, lambda m, x: x.view(6, 4)),
    "view -1": (CUBE, lambda m, x: x.view((2, -1))),
    "view of a transpose": (CUBE, lambda m, x: x.transpose(0, 1).view(3, 2, 2, 2)),
    "view to no dimensions": (MATRIX[:1, :1], lambda m, x: x.view(())),
    "view_as": (CUBE, lambda m, x: x.view_as(m.zeros(4, 6))),
    "reshape": (CUBE, lambda m, x: x.reshape(4, 6)),
    "reshape of strided": (MATRIX, lambda m, x: x[:, ::2].reshape(3, 2, 1)),
    "flatten": (CUBE, lambda m, x: x.flatten(1)),
    "unflatten": (CUBE, lambda m, x: x.unflatten(-1, (2, -1))),
    "ravel": (MATRIX, lambda m, x: m.ravel(x)),
    "expand": (VECTOR, lambda m, x: x.expand(2, 6)),
    "expand -1": (THIN, lambda m, x: x.expand(3, 2, -1, 5, -1)),
    "expand to itself": (VECTOR, lambda m, x: x.expand(6)),
    "broadcast_to": (MATRIX[:1], lambda m, x: m.broadcast_to(x, (2, 3, 4))),
    "permute": (CUBE, lambda m, x: x.permute(2, 0, -2)),
    "transpose": (CUBE, lambda m, x: m.transpose(x, -1, 0)),
    "swapaxes": (CUBE, lambda m, x: x.swapaxes(0, 1)),
    "t": (MATRIX, lambda m, x: x.t()),
    "t of a vector": (VECTOR, lambda m, x: x.t()),
    "T": (MATRIX, lambda m, x: x.T),
    "mT": (CUBE, lambda m, x: x.mT),
    "H": (MATRIX, lambda m, x: x.H),
    "adjoint": (COMPLEX, lambda m, x: x.adjoint()),
    "movedim": (CUBE, lambda m, x: x.movedim((0, 1), (-1, 0))),
    "squeeze": (THIN, lambda m, x: x.squeeze()),
    "squeeze(dim)": (THIN, lambda m, x: x.squeeze(-2)),
    "squeeze(dims)": (THIN, lambda m, x: x.squeeze((0, 1))),
    "unsqueeze": (CUBE, lambda m, x: x.unsqueeze(-2)),
    "narrow": (CUBE, lambda m, x: x.narrow(1, -2, 1)),
    "select": (CUBE, lambda m, x: x.select(-1, -2)),
    "diagonal": (CUBE, lambda m, x: x.diagonal(-1, 2, 1)),
    "unfold": (CUBE, lambda m, x: x.unfold(2, 3, 1)),
    "unfold apart": (VECTOR, lambda m, x: x.unfold(0, 2, 3)),
    "as_strided": (MATRIX, lambda m, x: x.as_strided((3, 3), (4, 1), 1)),
    "as_strided overlapping": (VECTOR, lambda m, x: x.as_strided((4, 3), (1, 1))),
    "as_strided of a part": (MATRIX, lambda m, x: x[1:].as_strided((2, 2), (4, 2))),
    "unbind": (CUBE, lambda m, x: x.unbind(1)),
    "split": (CUBE, lambda m, x: x.split(2, 1)),
    "split sizes": (CUBE, lambda m, x: x.split([1, 3], -1)),
    "chunk": (CUBE, lambda m, x: m.chunk(x, 3, 2)),
    "tensor_split": (VECTOR, lambda m, x: x.tensor_split(4)),
    "tensor_split at": (CUBE, lambda m, x: m.tensor_split(x, (1, 2), dim=2)),
    "hsplit": (MATRIX, lambda m, x: x.hsplit(2)),
    "vsplit": (MATRIX, lambda m, x: x.vsplit([1, 2])),
    "dsplit": (CUBE, lambda m, x: x.dsplit(2)),
}
COPIES = {
    "reshape, copying": (MATRIX, lambda m, x: x.t().reshape(-1)),
    "ravel, copying": (MATRIX, lambda m, x: x.t().ravel()),
    "contiguous": (MATRIX, lambda m, x: x.t().contiguous()),
    "clone": (MATRIX, lambda m, x: x.clone()),
    "sum_to_size": (CUBE, lambda m, x: x.sum_to_size(3, 1)),
    "cat": (MATRIX, lambda m, x: m.cat([x, x * 2, x[:1]])),
    "cat 1": (MATRIX, lambda m, x: m.cat((x, x[:, :1]), dim=-1)),
    "cat with an empty one": (MATRIX, lambda m, x: m.cat([x, m.zeros(0, dtype=m.float64)], 0)),
    "cat of two dtypes": (MATRIX, lambda m, x: m.cat([x, x.float(), m.ones(1, 4, dtype=m.int64)])),
    "stack": (MATRIX, lambda m, x: m.stack([x, x * x], 1)),
    "stack of scalars": (VECTOR, lambda m, x: m.stack([x[0], x[3], x[0]])),
    "hstack": (MATRIX, lambda m, x: m.hstack([x, x])),
    "vstack": (VECTOR, lambda m, x: m.vstack([x, x])),
    "dstack": (VECTOR, lambda m, x: m.dstack([x, x])),
    "column_stack": (VECTOR, lambda m, x: m.column_stack([x, x.view(6, 1)])),
    "block_diag": (MATRIX, lambda m, x: m.block_diag(x, x[0], x[1, 1])),
    "flip": (CUBE, lambda m, x: x.flip(0, -1)),
    "fliplr": (MATRIX, lambda m, x: m.fliplr(x)),
    "roll": (CUBE, lambda m, x: x.roll((1, -2), (0, 2))),
    "roll flat": (CUBE, lambda m, x: m.roll(x, 5)),
    "rot90": (CUBE, lambda m, x: x.rot90(3, (0, 2))),
    "repeat": (MATRIX, lambda m, x: x.repeat(2, 1, 3)),
    "tile": (MATRIX, lambda m, x: x.tile(2)),
    "repeat_interleave": (MATRIX, lambda m, x: x.repeat_interleave(2, 1)),
    "repeat_interleave by": (MATRIX, lambda m, x: x.repeat_interleave(m.tensor([2, 0, 1]), 0)),
    "tril": (CUBE, lambda m, x: x.tril(1)),
    "triu": (CUBE, lambda m, x: m.triu(x, -1)),
    "diag in": (VECTOR, lambda m, x: x.diag(1)),
    "diag out": (MATRIX, lambda m, x: m.diag(x, -1)),
    "diag_embed": (CUBE, lambda m, x: m.diag_embed(x, 1, 0, 2)),
    "diagflat": (MATRIX, lambda m, x: m.diagflat(x)),
    "trace": (MATRIX, lambda m, x: x.trace()),
    "meshgrid": (VECTOR, lambda m, x: m.meshgrid(x, x[:2], indexing="xy")),
    "broadcast_tensors": (MATRIX, lambda m, x: m.broadcast_tensors(x, x[:, None, :1])),
    "cartesian_prod": (VECTOR, lambda m, x: m.cartesian_prod(x[:2], x[2:])),
    "combinations": (VECTOR, lambda m, x: m.combinations(x, 2, True)),
    "atleast": (VECTOR, lambda m, x: [m.atleast_1d(x[0]), m.atleast_2d(x), m.atleast_3d(x)]),
    "constant_pad_nd": (MATRIX, lambda m, x: m.constant_pad_nd(x, (1, -1, 2, 0), 3.0)),
    "pixel_shuffle": (IMAGE, lambda m, x: m.pixel_shuffle(x, 2)),
    "pixel_unshuffle": (IMAGE, lambda m, x: m.pixel_unshuffle(x, 2)),
    "channel_shuffle": (IMAGE, lambda m, x: m.channel_shuffle(x, 2)),
    "select_copy": (CUBE, lambda m, x: m.select_copy(x, 1, 0)),
    "permute_copy": (CUBE, lambda m, x: m.permute_copy(x, (1, 0, 2))),
    "unbind_copy": (CUBE, lambda m, x: m.unbind_copy(x, 1)),
    "select_scatter": (CUBE, lambda m, x: x.select_scatter(x[:, :, 0] * 2, 2, 1)),
    "slice_scatter": (MATRIX, lambda m, x: x.slice_scatter(x[:, :2] * 2, 1, 0, 4, 2)),
    "diagonal_scatter": (MATRIX, lambda m, x: x.diagonal_scatter(x[0, :3] * 2, 1)),
}
EVERYTHING = {**VIEWS, **COPIES}


@pytest.mark.parametrize("name", sorted(EVERYTHING))
def test_values_and_gradients(name):
    values, expression = EVERYTHING[name]
    check(torch, rushlight, expression, values)
    check(torch, rushlight, lambda m, x: [one * one for one in outputs_of(expression(m, x))], values)


@pytest.mark.parametrize("name", sorted(set(EVERYTHING) - {"adjoint"}))  # conjugation is a copy here, a flag in torch
def test_nodes_and_freeing(name):
    values, expression = EVERYTHING[name]
    expected, found = (outputs_of(expression(m, leaf(m, values))) for m in (torch, rushlight))
    assert [node_name(one) for one in found] == [node_name(one) for one in expected]
    assert [one._is_view() for one in found] == [one._is_view() for one in expected]
    assert second_backward(rushlight, expression, values) == second_backward(torch, expression, values)


@pytest.mark.parametrize("name", sorted(set(VIEWS) - {"adjoint"}))
def test_views_share_memory_and_have_torchs_strides(name):
    values, expression = VIEWS[name]
    base = rushlight.tensor(values)
    found, expected = (outputs_of(expression(m, x)) for m, x in ((rushlight, base), (torch, torch.tensor(values))))
    for one, other in zip(found, expected, strict=True):
        assert np.shares_memory(one.numpy(), base.numpy())
        assert one.storage_offset() == other.storage_offset()
        assert one.is_contiguous() == other.is_contiguous()
        steps = [(a, b) for a, b, size in zip(one.stride(), other.stride(), one.shape, strict=True) if size > 1]
        assert all(a == b for a, b in steps)
    version = base._version
    target = found[0]
    if not any(s == 0 and n > 1 for s, n in zip(target.stride(), target.shape, strict=True)) and "overlap" not in name:
        target.zero_()
        assert base._version == target._version == version + 1
        assert not plain(target).any()


def test_view_never_copies():
    for m in (torch, rushlight):
        x = m.zeros(3, 4).t()
        with pytest.raises(RuntimeError, match="view size is not compatible with input tensor's size and stride"):
            x.view(-1)
    strided = rushlight.from_numpy(np.zeros((4, 6))[:, 1:5:2])
    with pytest.raises(RuntimeError, match="view size is not compatible"):
        strided.view(-1)
    assert strided.view(2, 2, 2).shape == (2, 2, 2)
    assert not strided.is_contiguous()
    assert strided.stride() == (6, 2)


def test_view_as_another_dtype():
    values = np.arange(8, dtype=np.float32).reshape(2, 4)
    for name in ("int32", "uint8", "float64", "int16"):
        found, expected = (m.tensor(values).view(getattr(m, name)) for m in (rushlight, torch))
        assert found.dtype == getattr(rushlight, name)
        np.testing.assert_array_equal(plain(found), plain(expected))


def test_clone_keeps_the_order_of_dimensions():
    for make in (
        lambda m: m.zeros(3, 4).t(),
        lambda m: m.zeros(2, 3, 4).permute(2, 0, 1),
        lambda m: m.zeros(1, 4).expand(3, 4),
        lambda m: m.zeros(4, 6)[:, ::2],
    ):
        assert make(rushlight).clone().stride() == make(torch).clone().stride()


def test_contiguous_and_flatten_return_the_tensor_itself():
    for m in (torch, rushlight):
        x = m.zeros(3)
        assert x.contiguous() is x
        assert x.flatten() is x
        assert m.atleast_1d(x) is x
        assert x.sum_to_size(3) is x


def test_sizes():
    for m in (torch, rushlight):
        x = m.zeros(2, 3, 4)
        assert (x.size(), x.size(-1), x.dim(), x.ndimension(), x.numel(), x.nelement()) == ((2, 3, 4), 4, 3, 3, 24, 24)
        assert (x.stride(), x.stride(1), x.element_size()) == ((12, 4, 1), 4, 4)
        assert x.is_same_size(m.ones(2, 3, 4))
        assert m.broadcast_shapes((2, 1), (3,), 1) == (2, 3)
        assert tuple(map(tuple, m.tril_indices(2, 3, 1).tolist())) == ((0, 0, 1, 1, 1), (0, 1, 0, 1, 2))


def test_storage_and_axis():
    for m in (torch, rushlight):
        x = m.zeros(2, 1, 3)
        assert x[1].untyped_storage().data_ptr() == x.untyped_storage().data_ptr() == x.data_ptr()
        assert x[1].untyped_storage().nbytes() == 24
        assert x.clone().untyped_storage().data_ptr() != x.data_ptr()
        assert m.cat([x, x], axis=1).shape == (2, 2, 3)
        assert m.stack([x, x], axis=-1).shape == (2, 1, 3, 2)
        assert x.squeeze(axis=1).shape == (2, 3)
        assert len(x.unbind(axis=2)) == len(x.chunk(3, axis=2)) == 3


@pytest.mark.parametrize("mode", ["constant", "reflect", "replicate", "circular"])
def test_pad(mode):
    def pad(m, x):
        function = torch.nn.functional.pad if m is torch else rushlight.ops.padding.pad
        return function(x, (1, 2, 2, 0), mode)

    check(torch, rushlight, pad, IMAGE)
    if mode != "circular":
        assert second_backward(rushlight, pad, IMAGE) == second_backward(torch, pad, IMAGE)
        assert node_name(pad(rushlight, leaf(rushlight, IMAGE))) == node_name(pad(torch, leaf(torch, IMAGE)))


INPLACE_SIZES = {
    "unsqueeze_": lambda x: x.unsqueeze_(1),
    "squeeze_": lambda x: x.squeeze_(0),
    "transpose_": lambda x: x.transpose_(0, 1),
    "swapaxes_": lambda x: x.swapaxes_(0, 1),
    "t_": lambda x: x.t_(),
    "as_strided_": lambda x: x.as_strided_((2, 2), (1, 2)),
}


@pytest.mark.parametrize("name", sorted(INPLACE_SIZES))
def test_changing_sizes_in_place(name):
    def expression(m, x):
        y = x * 1
        assert INPLACE_SIZES[name](y) is y
        assert y._version == 1
        return y * y

    check(torch, rushlight, expression, MATRIX[:1])
    for m in (torch, rushlight):
        x = leaf(m, MATRIX)
        with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
            INPLACE_SIZES[name](x)
        with m.no_grad():
            INPLACE_SIZES[name](x)
        assert x.requires_grad
        assert x.is_leaf


def test_resize():
    for m in (torch, rushlight):
        x = m.arange(6.0)
        assert x.resize_(2, 2).tolist() == [[0.0, 1.0], [2.0, 3.0]]
        assert x.resize_as_(m.zeros(8)).tolist()[:4] == [0.0, 1.0, 2.0, 3.0]


ERRORS = {
    "view": lambda m: m.zeros(2, 3).view(5),
    "view, two unknown": lambda m: m.zeros(2, 3).view(-1, -1),
    "view, ambiguous": lambda m: m.zeros(0).view(-1, 0),
    "reshape": lambda m: m.zeros(2, 3).reshape(4, 2),
    "expand": lambda m: m.zeros(2, 3).expand(2, 4),
    "expand, fewer": lambda m: m.zeros(2, 3).expand(3),
    "permute": lambda m: m.zeros(2, 3).permute(0, 0),
    "permute, count": lambda m: m.zeros(2, 3).permute(0),
    "transpose": lambda m: m.zeros(2, 3).transpose(0, 2),
    "t": lambda m: m.zeros(2, 3, 4).t(),
    "mT": lambda m: m.zeros(2).mT,
    "flatten": lambda m: m.zeros(2, 3).flatten(1, 0),
    "unflatten": lambda m: m.zeros(2, 3).unflatten(1, (2, 2)),
    "squeeze": lambda m: m.zeros(2, 3).squeeze(2),
    "unsqueeze": lambda m: m.zeros(2, 3).unsqueeze(4),
    "narrow": lambda m: m.zeros(2, 3).narrow(0, 1, 2),
    "select": lambda m: m.zeros(2, 3).select(1, 3),
    "diagonal": lambda m: m.zeros(2, 3).diagonal(0, 1, 1),
    "unfold": lambda m: m.zeros(4).unfold(0, 5, 1),
    "as_strided": lambda m: m.zeros(4).as_strided((3, 2), (2, 1)),
    "unbind": lambda m: m.zeros(()).unbind(),
    "split": lambda m: m.zeros(4).split([1, 2]),
    "chunk": lambda m: m.zeros(4).chunk(0),
    "hsplit": lambda m: m.zeros(4, 3).hsplit(2),
    "cat, none": lambda m: m.cat([]),
    "cat, sizes": lambda m: m.cat([m.zeros(2, 3), m.zeros(2, 4)]),
    "cat, dimensions": lambda m: m.cat([m.zeros(2, 3), m.zeros(3)]),
    "cat, scalars": lambda m: m.cat([m.zeros(()), m.zeros(())]),
    "stack": lambda m: m.stack([m.zeros(2), m.zeros(3)]),
    "flip": lambda m: m.zeros(2, 3).flip(0, 0),
    "roll": lambda m: m.zeros(2, 3).roll((1, 2), 0),
    "repeat": lambda m: m.zeros(2, 3).repeat(2),
    "tril": lambda m: m.zeros(3).tril(),
    "trace": lambda m: m.zeros(3).trace(),
    "diag": lambda m: m.zeros(2, 2, 2).diag(),
    "sum_to_size": lambda m: m.zeros(2, 3).sum_to_size(2, 2),
    "repeat_interleave": lambda m: m.zeros(3).repeat_interleave(m.tensor([1, 2])),
    "resize_": lambda m: m.zeros(3, requires_grad=True).resize_(2),
}


@pytest.mark.parametrize("name", sorted(ERRORS))
def test_errors(name, same_error):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        same_error(ERRORS[name], words=3)
