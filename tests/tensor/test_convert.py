"""Tensors into other things and back: dtypes, NumPy, DLPack, pickle, copies, Python numbers and containers."""

from __future__ import annotations

import copy
import io
import operator
import pickle

import numpy as np
import pytest

import rushlight
from tests.tensor.comparing import assert_same, texts, torch

ENGINES = pytest.mark.parametrize("m", [torch, rushlight], ids=["torch", "rushlight"])
NAMES = {"operator": operator, "copy": copy, "pickle": pickle}


@texts(
    """
m.tensor([1.7, -1.7, 0.0]).int()
m.tensor([1.7, -1.7]).long()
m.tensor([1.7, -1.7]).short()
m.tensor([1.7, -1.7]).char()
m.tensor([1.7, 200.0]).byte()
m.tensor([1, 0, 2]).bool()
m.tensor([0.5, 0.0]).bool()
m.tensor([1, 2]).float()
m.tensor([1, 2]).double()
m.tensor([1, 2]).half()
m.tensor([1, 2]).cfloat()
m.tensor([1, 2]).cdouble()
m.tensor([1 + 2j]).to(m.float32)
m.tensor([1.0]).to(m.float64)
m.tensor([1.0]).to('cpu')
m.tensor([1.0]).to(m.device('cpu'), m.float64)
m.tensor([1.0]).to('cpu', m.float64, True)
m.tensor([1.0]).to(m.zeros(1, dtype=m.int64))
m.tensor([1.0]).to(other=m.zeros(1, dtype=m.int64))  # 0
m.tensor([1.0]).to(dtype=m.float16)
m.tensor([1.0]).to(device='cpu', dtype=m.float16)
m.tensor([1.0]).to(m.float64, copy=True)
m.tensor([1.0]).to(m.float64, non_blocking=True)
m.tensor([1.0]).to(memory_format=m.contiguous_format)
m.tensor([1.0]).to(int)
m.tensor([1.0]).to(float)
m.tensor([1.0], requires_grad=True).to(m.float64)
m.tensor([1.0], requires_grad=True).double()
m.tensor([1.0], requires_grad=True).long()
m.tensor([1.0], requires_grad=True).to(m.float64).grad_fn.name()
m.tensor([1.0]).type()
m.tensor([1]).type()
m.tensor([True]).type()
m.tensor([1j]).type()
m.tensor([1.0], dtype=m.float16).type()
m.tensor([1, 2]).type(m.float32)
m.tensor([1, 2]).type('torch.DoubleTensor')
m.tensor([1, 2]).type(m.FloatTensor)
m.tensor([1, 2]).type(dtype=m.int8)
m.tensor([1.0]).type_as(m.tensor([1]))
m.tensor([1.0]).cpu()
m.tensor([1.0]).is_floating_point()
m.tensor([1]).is_complex()
m.tensor([1]).is_signed()
m.tensor([1], dtype=m.uint8).is_signed()
m.tensor([1.0]).get_device()
m.tensor([1.0]).to('nonsense')
m.tensor([1.0]).to([1])  # 0
m.tensor([1.0]).type('nonsense')
m.tensor([1.0]).type(3)  # 0
m.tensor([1.0]).type_as(3)  # 0
m.tensor([1e10, -1e10, float('inf'), float('nan')]).bool()
m.tensor([300, -1]).byte()
m.tensor([300, -1]).char()
""",
    NAMES,
)
def test_dtype_conversions(code, words):
    assert_same(code, words)


@texts(
    """
m.tensor(1.5).item()
m.tensor([[2]]).item()
m.tensor(True).item()
m.tensor(1j).item()
m.tensor([1, 2]).item()  # 0
m.tensor([]).item()  # 0
m.tensor([1, 2]).tolist()
m.tensor([[1.5], [2.5]]).tolist()
m.tensor(3).tolist()
m.tensor([]).tolist()
m.tensor([True]).tolist()
m.zeros(2, 0).tolist()
len(m.zeros(3, 2))
len(m.tensor(1))
len(m.zeros(0, 3))
bool(m.tensor(0.0))
bool(m.tensor([[1]]))
bool(m.tensor([1, 2]))  # 8
bool(m.tensor([]))  # 8
float(m.tensor(2))
float(m.tensor([1.5]))
float(m.tensor([1.0, 2.0]))  # 0
int(m.tensor(2.9))
int(m.tensor(True))
int(m.tensor(float('nan')))  # 0
complex(m.tensor(1.5))
complex(m.tensor(1 + 2j))
float(m.tensor(1j))  # 0
operator.index(m.tensor(3))
operator.index(m.tensor(True))
operator.index(m.tensor([3]))
operator.index(m.tensor(3.0))  # 4
operator.index(m.tensor([1, 2]))  # 4
[10, 20, 30][m.tensor(1)]
list(range(m.tensor(3)))
'abc' * m.tensor(2)  # 0
3 in m.tensor([1, 2, 3])
5 in m.tensor([1, 2, 3])
m.tensor(2) in m.tensor([1, 2])
1.0 in m.tensor([1, 2])
'a' in m.tensor([1])  # 3
None in m.tensor([1])  # 3
m.tensor([1, 2]) in [m.tensor([1, 2])]  # 4
[int(x) for x in m.tensor([1, 2, 3])]
[x.shape for x in m.zeros(2, 3)]
list(m.zeros(0))
list(m.tensor(1))  # 0
a + b if (a := m.tensor([1, 2])[0]) is not (b := m.tensor(1)) else 0
[x.requires_grad for x in m.tensor([1.0, 2.0], requires_grad=True)]
list(reversed(m.tensor([1, 2, 3])))[0]
f'{m.tensor(1.5)}'
f'{m.tensor(1.23456):.2f}'
f'{m.tensor(3):d}'
f'{m.tensor(3):05d}'
f'{m.tensor(True)}'
f'{m.tensor(1.5, requires_grad=True)}'
f'{m.tensor(1.5, requires_grad=True):.1f}'
f'{m.tensor([1.5])}'
f'{m.tensor([1.5]):.2f}'  # 0
f'{m.tensor([1, 2])}'
'%.2f' % m.tensor(1.5)
'%d' % m.tensor(3)
'{:>8.3f}|'.format(m.tensor(2.5))
round(m.tensor(1.7))
round(m.tensor([1.234]), decimals=1)  # 0
str(m.tensor(7))
len({m.tensor(1), m.tensor(1)})
divmod(m.tensor(7), 2)  # 0
abs(m.tensor(-1))
-m.tensor([1, 2])
+m.tensor([1, 2])
~m.tensor([True])
m.tensor([1, 2]).data
m.tensor([1.0], requires_grad=True).data
m.tensor([1.0], requires_grad=True).detach()
m.tensor([[1, 2], [3, 4]]).T.tolist()
m.Size([2, 3]).numel()
m.Size([2, 3])[0]
m.Size([2, 3])[:1]
m.Size([2, 3]) == (2, 3)
tuple(m.zeros(2, 3).shape)
repr(m.Size([2, 3]))
m.zeros(2, 3).size(0)
m.zeros(2, 3).size(-1)
m.zeros(2, 3).size(2)  # 4
m.zeros(2, 3).numel()
m.zeros(2, 3).nelement()
m.zeros(2, 3).dim()
m.zeros(2, 3).ndimension()
m.zeros(2, 3).element_size()
m.zeros(2, 3).nbytes
m.zeros(2, 3).itemsize
m.zeros(2, 3).stride()
m.zeros(2, 3).stride(1)
m.zeros(2, 3).storage_offset()
m.zeros(2, 3)[1].storage_offset()
m.zeros(2, 3).t().is_contiguous()
m.zeros(2, 3).is_contiguous()
m.is_tensor(m.zeros(1))
m.is_tensor(1)
m.numel(m.zeros(2, 3))
m.is_floating_point(m.zeros(1))
m.is_complex(m.zeros(1))
m.typename(m.zeros(1))
m.typename(3)
m.is_nonzero(m.tensor(3.0))
m.is_nonzero(m.tensor([1, 2]))  # 0
m.zeros(2).is_nonzero()  # 0
""",
    NAMES,
)
def test_python_protocols(code, words):
    assert_same(code, words)


@texts(
    """
m.arange(4).numpy()
m.tensor([1.5]).numpy()
m.tensor(2.5).numpy()
m.tensor([True]).numpy()
m.tensor([1j]).numpy()
m.tensor([1.0], requires_grad=True).numpy()  # 7
m.tensor([1.0], requires_grad=True).detach().numpy()
m.tensor([1.0], requires_grad=True).numpy(force=True)
(m.tensor([1.0], requires_grad=True) * 2).numpy()  # 7
np.asarray(m.tensor([1, 2]))
np.array(m.tensor([1, 2]), dtype=np.float32)
np.asarray(m.tensor([1.0], requires_grad=True))  # 7
np.array([m.tensor(1), m.tensor(2)])
np.stack([m.tensor([1.0]), m.tensor([2.0])])
np.add(np.ones(2), m.ones(2, dtype=m.float64)).sum().item()
np.sum(np.asarray(m.ones(3)))
np.float64(2.0) * m.tensor([1.0, 2.0])
m.tensor([1.0, 2.0]) * np.float64(2.0)
m.tensor([1, 2]) + np.int64(3)
m.tensor([1.0]) + np.array([2.0])
m.tensor([1.0]) == np.array([1.0])  # 0
np.exp(m.tensor([0.0]).numpy())
np.ones(2)[m.tensor([0, 1]).numpy()]
m.tensor([1.0]).__array__().dtype.name
m.tensor([1.0]).__array__(np.float64).dtype.name
""",
    NAMES,
)
def test_numpy(code, words):
    assert_same(code, words)


@ENGINES
def test_numpy_shares_memory(m) -> None:
    tensor = m.zeros(3)
    array = tensor.numpy()
    array[0] = 5
    tensor[1] = 7
    assert tensor.tolist() == array.tolist() == [5, 7, 0]
    assert np.asarray(tensor)[0] == 5 and np.shares_memory(np.asarray(tensor), array)
    assert not np.shares_memory(np.array(tensor), array)
    assert np.shares_memory(tensor.detach().numpy(), array)
    view = tensor.view(3, 1).numpy()
    view[2, 0] = 9
    assert tensor[2] == 9
    assert tensor._version == 1  # NumPy's writes are not counted, tensor[1] = 7 was


@ENGINES
def test_to_returns_the_tensor_itself_where_nothing_changes(m) -> None:
    tensor = m.ones(2)
    for same in (
        tensor.to(m.float32),
        tensor.to("cpu"),
        tensor.float(),
        tensor.cpu(),
        tensor.type(m.float32),
        tensor.contiguous(),
        tensor.type_as(m.zeros(1)),
        tensor.to(m.zeros(1)),
    ):
        assert same is tensor
    assert tensor.to(m.float32, copy=True) is not tensor
    assert tensor.to("cpu", m.float32, False, True) is not tensor


@ENGINES
def test_gradients_pass_through_conversions(m) -> None:
    leaf = m.tensor([1.0, 2.0], requires_grad=True)
    (leaf.double() * 3).sum().backward()
    assert leaf.grad.dtype == m.float32 and leaf.grad.tolist() == [3, 3]
    complex_leaf = m.tensor([1.0], requires_grad=True)
    complex_leaf.to(m.complex64).real.sum().backward()
    assert complex_leaf.grad.tolist() == [1]
    copied = m.tensor([1.0], requires_grad=True)
    assert copied.to(m.float32, copy=True).grad_fn.name() in ("CloneBackward0", "ToCopyBackward0")


DTYPES = (
    "float16",
    "float32",
    "float64",
    "complex64",
    "complex128",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "bool",
)


@pytest.mark.parametrize("name", DTYPES)
def test_dlpack_shares_memory_both_ways(name) -> None:
    """With NumPy and with real torch."""
    mine = rushlight.tensor([[1, 0], [1, 1]], dtype=getattr(rushlight, name))
    theirs = torch.from_dlpack(mine)
    assert theirs.dtype == getattr(torch, name) and theirs.tolist() == mine.tolist()
    theirs[0, 1] = 1
    assert mine.tolist() == theirs.tolist()
    back = rushlight.from_dlpack(theirs)
    theirs[1, 0] = 0
    assert back.dtype == getattr(rushlight, name) and back.tolist() == mine.tolist() == theirs.tolist()
    array = np.from_dlpack(mine)
    assert array.dtype.name == name and array.tolist() == mine.tolist()
    source = np.array([1, 0, 1], dtype=name)
    assert rushlight.from_dlpack(source).tolist() == source.tolist()
    assert (
        rushlight.from_dlpack(torch.tensor([1, 0], dtype=getattr(torch, name))).tolist()
        == torch.tensor([1, 0], dtype=getattr(torch, name)).tolist()
    )


def test_dlpack_of_views_and_refusals() -> None:
    base = rushlight.arange(6.0).reshape(2, 3)
    assert torch.from_dlpack(base.t()).tolist() == base.t().tolist()
    assert torch.from_dlpack(base[:, ::2]).stride() == (3, 2)
    assert base.__dlpack_device__() == tuple(torch.ones(1).__dlpack_device__())
    for module in (torch, rushlight):
        with pytest.raises(BufferError, match="Can't export tensors that require gradient"):
            module.ones(1, requires_grad=True).__dlpack__()
    with pytest.raises(TypeError):
        rushlight.from_dlpack(3)


@ENGINES
def test_copy(m) -> None:
    tensor = m.tensor([1.0, 2.0], requires_grad=True)
    (tensor * tensor).sum().backward()
    shallow = copy.copy(tensor)
    assert shallow is not tensor and shallow.requires_grad and shallow.tolist() == [1, 2]
    assert shallow.data_ptr() == tensor.data_ptr()
    deep = copy.deepcopy(tensor)
    assert deep.requires_grad and deep.is_leaf and deep.data_ptr() != tensor.data_ptr()
    assert deep.grad.tolist() == [2, 4] and deep.grad.data_ptr() != tensor.grad.data_ptr()
    deep.grad.zero_()
    assert tensor.grad.tolist() == [2, 4]


@ENGINES
def test_deepcopy_keeps_what_is_shared(m) -> None:
    tensor = m.ones(2)
    pair = copy.deepcopy([tensor, tensor, {"again": tensor}])
    assert pair[0] is pair[1] is pair[2]["again"] and pair[0] is not tensor
    tensor.note = {"key": [1]}
    copied = copy.deepcopy(tensor)
    assert copied.note == {"key": [1]} and copied.note is not tensor.note
    parameter = m.nn.Parameter(m.ones(2), requires_grad=False)
    assert type(copy.deepcopy(parameter)) is m.nn.Parameter and not copy.deepcopy(parameter).requires_grad
    transposed = copy.deepcopy(m.arange(6.0).reshape(2, 3).t())
    assert transposed.stride() == (1, 3)
    with pytest.raises(RuntimeError, match="Only Tensors created explicitly by the user"):
        copy.deepcopy(m.ones(1, requires_grad=True) * 2)


@ENGINES
def test_deepcopy_of_views_of_one_memory(m) -> None:
    base = m.zeros(4)
    first, second = copy.deepcopy([base[:2], base[1:3]])
    first[1] = 5
    assert second[0] == 5


@ENGINES
@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_pickle(m, protocol) -> None:
    for name in DTYPES:
        tensor = m.tensor([[1, 0], [0, 1]], dtype=getattr(m, name))
        again = pickle.loads(pickle.dumps(tensor, protocol))
        assert again.dtype == tensor.dtype and again.tolist() == tensor.tolist() and not again.requires_grad
    leaf = m.tensor([1.0], requires_grad=True)
    assert pickle.loads(pickle.dumps(leaf, protocol)).requires_grad
    parameter = pickle.loads(pickle.dumps(m.nn.Parameter(m.ones(2)), protocol))
    assert type(parameter) is m.nn.Parameter and parameter.requires_grad
    scalar = pickle.loads(pickle.dumps(m.tensor(2.5), protocol))
    assert tuple(scalar.shape) == () and scalar.item() == 2.5
    transposed = pickle.loads(pickle.dumps(m.arange(6).reshape(2, 3).t(), protocol))
    assert transposed.tolist() == [[0, 3], [1, 4], [2, 5]]
    assert pickle.loads(pickle.dumps(m.Size([1, 2]), protocol)) == (1, 2)
    assert pickle.loads(pickle.dumps(m.device("cpu"), protocol)) == m.device("cpu")


@ENGINES
def test_pickle_keeps_identity_and_refuses_history(m) -> None:
    tensor = m.ones(2)
    first, second = pickle.loads(pickle.dumps([tensor, tensor]))
    assert first is second
    stream = io.BytesIO()
    pickle.dump(tensor, stream)
    assert stream.getvalue()


def test_a_computed_tensor_is_not_pickled() -> None:
    with pytest.raises(RuntimeError, match="detach"):
        pickle.dumps(rushlight.ones(1, requires_grad=True) * 2)


@ENGINES
def test_iteration_is_part_of_the_graph(m) -> None:
    tensor = m.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    first, second = tensor
    (first * 2 + second * 3).sum().backward()
    assert tensor.grad.tolist() == [[2, 2], [3, 3]]


@ENGINES
def test_data_and_detach_share_memory_but_only_one_the_version(m) -> None:
    tensor = m.zeros(2)
    tensor.data.add_(1)
    assert tensor.tolist() == [1, 1] and tensor._version == 0
    tensor.detach().add_(1)
    assert tensor.tolist() == [2, 2] and tensor._version == 1
    tensor.data = m.ones(3, dtype=m.float64)
    assert tuple(tensor.shape) == (3,) and tensor.dtype == m.float64
