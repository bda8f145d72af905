"""Making tensors: tensor() and its relatives, old constructors, factories, new_* and *_like, and what they refuse."""

from __future__ import annotations

import warnings
from array import array
from collections import UserList

import numpy as np
import pytest

import rushlight
from tests.tensor.comparing import assert_same, texts, torch


class Sequence:
    """Neither a list nor a tuple, but it has a length and items."""

    def __init__(self, items):
        self.items = items

    def __len__(self):
        return len(self.items)

    def __getitem__(self, index):
        return self.items[index]


class ArrayLike:
    """Something NumPy can read."""

    def __array__(self, dtype=None, copy=None):
        return np.array([1, 2, 3], dtype=np.int16)


NAMES = {"Sequence": Sequence, "ArrayLike": ArrayLike, "array": array, "UserList": UserList}


@texts(
    """
m.tensor(1)
m.tensor(1.5)
m.tensor(True)
m.tensor(1 + 2j)
m.tensor([])
m.tensor([[]])
m.tensor([[], []])
m.tensor(())
m.tensor([1, 2, 3])
m.tensor((1, 2, 3))
m.tensor(range(4))
m.tensor([1, 2.5])
m.tensor([True, 2])
m.tensor([True, 2.5])
m.tensor([1, 2j])
m.tensor([True, False])
m.tensor([[1, 2], [3, 4]])
m.tensor([(1, 2), [3, 4]])
m.tensor([[1.0], [2]])
m.tensor([float('nan'), float('inf'), -float('inf')])
m.tensor(2**62)
m.tensor(-2**63)
m.tensor([1e300])
m.tensor(1e300, dtype=m.float32)
m.tensor(np.float32(1.5))
m.tensor(np.int16(3))
m.tensor(np.bool_(True))
m.tensor(np.complex64(1j))
m.tensor([np.float32(1.5), np.float32(2)])
m.tensor([np.float64(1.5), 2])
m.tensor([np.int8(1), np.int8(2)])
m.tensor([np.float32(1), np.int64(2)])
m.tensor(np.arange(6).reshape(2, 3))
m.tensor(np.arange(6, dtype=np.uint8))
m.tensor(np.arange(6.0)[::2])
m.tensor(np.arange(6.0)[::-1])
m.tensor(np.zeros((2, 0)))
m.tensor(np.array(3.5))
m.tensor([np.array([1, 2]), np.array([3, 4])])
m.tensor([np.array(1.5), np.array(2.5)])
m.tensor(np.array([True, False]))
m.tensor([m.tensor(1), m.tensor(2)])
m.tensor([m.tensor(1.5), 2])
m.tensor([m.tensor([1.0]), m.tensor([2.0])])
m.tensor([[m.tensor(1.0), 2.0], [3.0, m.tensor(4.0)]])
m.tensor(m.tensor([1, 2]))
m.tensor(m.tensor([1.0], requires_grad=True))
m.tensor(m.tensor([1.0]), requires_grad=True)
m.tensor(Sequence([1, 2, 3]))
m.tensor([Sequence([1, 2]), Sequence([3, 4])])
m.tensor(ArrayLike())
m.tensor(array('f', [1.0, 2.0]))
m.tensor(UserList([1, 2]))
m.tensor(memoryview(b'abc'))
m.tensor(bytearray(b'abc'))
m.tensor([1, 2], dtype=m.float64)
m.tensor([1.9, -1.9], dtype=m.int64)
m.tensor([0.0, 0.5, -1], dtype=m.bool)
m.tensor([1, 0], dtype=m.bool)
m.tensor([1, 2], dtype=m.float16)
m.tensor([1, 2], dtype=m.complex64)
m.tensor([255], dtype=m.uint8)
m.tensor([1, 2], dtype=m.uint16)
m.tensor([1.5], requires_grad=True)
m.tensor([1j], requires_grad=True)
m.tensor([1.5], device='cpu')
m.tensor([1.5], device=m.device('cpu'))
m.tensor([1.5], dtype=float)
m.tensor([1.5], dtype=int)
m.tensor([1.5], dtype=bool)
m.tensor([[[1, 2], [3, 4]], [[5, 6], [7, 8]]]).shape
m.tensor(1).shape
m.tensor(0.1).item() == 0.1
m.tensor(0.1, dtype=m.float64).item() == 0.1
""",
    NAMES,
)
def test_tensor(code, words):
    assert_same(code, words)


@texts(
    """
m.tensor('abc')
m.tensor(None)
m.tensor({})
m.tensor({1, 2})
m.tensor(['a', 'b'])
m.tensor([None])
m.tensor([1, None])
m.tensor([1, 'a'])
m.tensor(object())
m.tensor([object()])
m.tensor([[1, 2], [3]])  # 8
m.tensor([[1], [2, 3]])  # 8
m.tensor([1, [2]])  # 2
m.tensor([[1], 2])  # 1
m.tensor([[[1], [2]], [[3]]])  # 8
m.tensor([1], requires_grad=True)  # 8
m.tensor([True], requires_grad=True)  # 8
m.tensor(2**64)
m.tensor([2**64])
m.tensor(-1, dtype=m.uint8)  # 0
m.tensor(300, dtype=m.uint8)  # 0
m.tensor(300, dtype=m.int8)
m.tensor([-1], dtype=m.uint8)
m.tensor([-256], dtype=m.uint8)
m.tensor([-1.5], dtype=m.uint8)
m.tensor([1.5, 300.7], dtype=m.uint8)
m.tensor(1e10, dtype=m.int32)
m.tensor([1, 2**40], dtype=m.int32)
m.tensor(2**63, dtype=m.uint64)
m.tensor(2**63)
m.tensor(2**63, dtype=m.float32)
m.tensor([2**70], dtype=m.float64)
m.tensor(1e300, dtype=m.float16)
m.tensor([None], dtype=m.float32)
m.tensor([None], dtype=m.int64)
m.tensor([1.0, [2]])
m.tensor([[1, 2], ['a', 'b']])
m.tensor(b'ab')
m.tensor([{1: 2}])
m.asarray([1], copy=False)  # 2
m.tensor(np.array(['a']))
m.tensor(np.array([object()]))
m.tensor(np.array(['2020-01-01'], dtype='datetime64[D]'))
m.tensor(np.array([1, 2], dtype='>i4'))
m.tensor([1.0], dtype='float32')  # 3
m.tensor([1.0], dtype=np.float32)  # 3
m.tensor([1.0], unknown=3)  # 0
m.tensor()  # 0
m.tensor(1, 2)  # 0
m.tensor([1j], dtype=m.float32)  # 0
m.tensor(1j, dtype=m.float32)  # 0
m.tensor([float('nan')], dtype=m.int64)  # 0
m.tensor(float('nan'), dtype=m.int64)  # 0
m.tensor([1.0], device='nonsense')  # 4
m.tensor([m.tensor([1.0, 2.0]), 3.0])  # 0
m.tensor([3.0, m.tensor([1.0, 2.0])])  # 0
m.as_tensor('abc')
m.as_tensor(None)
m.from_numpy([1, 2])
m.from_numpy(3)
m.from_numpy(np.arange(3)[::-1])
m.from_numpy(np.array(['a']))
m.from_numpy(np.array([1, 2], dtype='>i4'))
m.frombuffer(b'', dtype=m.float32)
m.frombuffer(b'abc', dtype=m.float32)
m.frombuffer(b'abcd', dtype=m.float32, offset=8)
m.frombuffer(b'abcd', dtype=m.float32, count=2)
""",
    NAMES,
)
def test_refused_data(code, words):
    assert_same(code, words)


@texts(
    """
m.as_tensor([1, 2])
m.as_tensor([1, 2], dtype=m.float32)
m.as_tensor(3)
m.as_tensor(np.arange(3))
m.as_tensor(np.float32(3))
m.as_tensor(np.arange(3), dtype=m.float32)
m.as_tensor(m.tensor([1.0], requires_grad=True))
m.as_tensor(m.tensor([1.0], requires_grad=True), dtype=m.float64)
m.asarray([1, 2])
m.asarray(np.arange(3))
m.asarray(np.arange(3), dtype=m.float32)
m.asarray(m.tensor([1.0], requires_grad=True))
m.asarray([1.0, 2.0], requires_grad=True)
m.asarray(3.5)
m.asarray(m.ones(2), copy=True)
m.asarray(np.arange(2.0), copy=True, dtype=m.float32)
m.from_numpy(np.arange(4, dtype=np.float32).reshape(2, 2))
m.from_numpy(np.array(2.5))
m.from_numpy(np.arange(6).reshape(2, 3).T)
m.from_numpy(np.arange(6)[::2])
m.from_numpy(np.array([1 + 1j]))
m.from_numpy(np.array([True]))
m.from_numpy(np.zeros(2, np.float16))
m.frombuffer(bytearray(b'abcdefgh'), dtype=m.uint8)
m.frombuffer(bytearray(b'abcdefgh'), dtype=m.int16, count=2, offset=2)
m.frombuffer(array('d', [1.0, 2.0]), dtype=m.float64)
m.scalar_tensor(3)
m.scalar_tensor(3, dtype=m.int64)
m.scalar_tensor(2.5, requires_grad=True)
""",
    NAMES,
)
def test_relatives(code, words):
    assert_same(code, words)


@texts(
    """
m.Tensor()
m.Tensor([1, 2])
m.Tensor([[1, 2], [3, 4]])
m.Tensor([True, False])
m.Tensor((1.5, 2))
m.Tensor(2, 3).shape
m.Tensor(2).shape
m.Tensor(m.Size([2, 3])).shape
m.Tensor(2, 0)
m.Tensor(2, 3).dtype
m.Tensor(np.arange(3, dtype=np.float32))
m.Tensor(m.tensor([1.0, 2.0]))
m.Tensor(m.tensor([1, 2]))
m.Tensor(1.5)  # 0
m.Tensor('abc')  # 0
m.Tensor([1.0], dtype=m.float32)  # 0
m.Tensor([1.0], requires_grad=True)  # 0
m.FloatTensor([1, 2])
m.FloatTensor(2, 3).shape
m.FloatTensor()
m.DoubleTensor([1, 2])
m.LongTensor([1, 2])
m.LongTensor([1.9, 2.9])
m.LongTensor(3).dtype
m.LongTensor([[1, 2], [3, 4]])
m.IntTensor([1])
m.ShortTensor([1])
m.CharTensor([1])
m.ByteTensor([1, 255])
m.BoolTensor([0, 1])
m.HalfTensor([1.5])
m.LongTensor(np.arange(3))
m.LongTensor(m.tensor([1, 2]))
m.LongTensor(m.tensor([1.0]))  # 0
isinstance(m.tensor([1]), m.LongTensor)
isinstance(m.tensor([1.0]), m.LongTensor)
isinstance(m.tensor([1.0]), m.FloatTensor)
isinstance(m.tensor([1.0]), m.Tensor)
m.tensor([1.0]).new([1, 2])
m.tensor([1]).new([1.5, 2])
m.tensor([1]).new(2, 3).shape
m.tensor([1]).new().shape
m.nn.Parameter(m.tensor([1.0, 2.0]))
m.nn.Parameter(m.tensor([1.0]), requires_grad=False)
m.nn.Parameter(m.tensor([1]), requires_grad=False)
m.nn.Parameter(m.tensor([1]))  # 0
m.nn.Parameter(m.tensor([1.0], requires_grad=True) * 2)
""",
    NAMES,
)
def test_old_constructors(code, words):
    assert_same(code, words)


SIZED = """
FACTORY(3)
FACTORY(2, 3)
FACTORY((2, 3))
FACTORY([2, 3])
FACTORY(m.Size([2, 3]))
FACTORY(())
FACTORY([])
FACTORY(size=(2, 3))
FACTORY(0)
FACTORY(2, 0)
FACTORY(np.int64(2), 3)
FACTORY(m.tensor(2), 3)
FACTORY(2, dtype=m.float64)
FACTORY(2, dtype=m.complex64)
FACTORY(2, requires_grad=True)
FACTORY(2, device='cpu')
FACTORY(2, layout=m.strided)
FACTORY(2, out=m.zeros(2))
FACTORY(2, out=m.zeros(2, dtype=m.float64))
FACTORY(2, out=m.zeros(2, dtype=m.float64), dtype=m.float32)  # 0
FACTORY(-1)  # 5
FACTORY(2, -1)  # 5
FACTORY(2.5)  # 0
FACTORY('a')  # 0
FACTORY(2, unknown=1)  # 0
FACTORY(None)  # 0
FACTORY(2, dtype='float')  # 0
FACTORY(2, dtype=m.int64, requires_grad=True)  # 0
FACTORY(2, device='nonsense')
"""


@texts("\n".join(SIZED.replace("FACTORY", f"m.{name}") for name in ("zeros", "ones", "rand", "randn")))
def test_sized_factories(code, words):
    assert_same(code, words)


@texts(SIZED.replace("FACTORY", "m.empty"))
def test_empty(code, words):
    assert_same(lambda module: _without_values(code(module)), words)


def _without_values(tensor):
    return tensor.shape, tensor.dtype, tensor.requires_grad


@texts("""
m.zeros(2, dtype=m.int64)
m.ones(2, dtype=m.bool)
m.ones(2, dtype=int)
m.full((2, 2), 3)
m.full((2,), 3.5)
m.full((2,), True)
m.full((2,), 1j)
m.full((2,), 3, dtype=m.float32)
m.full((), 3)
m.full((2,), m.tensor(3.5))
m.full((2,), 3.7, dtype=m.int64)
m.full((2,), 3.0, requires_grad=True)
m.full((2,), 3, out=m.zeros(2))
m.full(2, 3)  # 0
m.full((2,), 'a')  # 0
m.full((-1,), 1)  # 0
m.full((2,), -1, dtype=m.uint8)
m.full((2,), 300, dtype=m.uint8)
m.full((2,), -300, dtype=m.uint8)
m.full((2,), 1e300)
m.full((2,), float('inf'))
m.full((2,), float('nan'), dtype=m.int64)
m.full((2,), 1j, dtype=m.float32)  # 0
m.full((2,), 1.5, dtype=m.bool)
m.full((2,), m.tensor([1.0]))
m.full(size=(2,), fill_value=1.0)
m.eye(3)
m.eye(2, 3)
m.eye(3, 2, dtype=m.int64)
m.eye(0)
m.eye(2, dtype=m.bool)
m.eye(2, requires_grad=True)
m.eye(-1)  # 0
m.eye(2, -1)  # 0
m.eye(2.5)  # 0
m.arange(5)
m.arange(1, 5)
m.arange(5, 1, -1)
m.arange(0, 1, 0.25)
m.arange(0.5, 3)
m.arange(2.5)
m.arange(0)
m.arange(3, 3)
m.arange(1, 2, 0.1)
m.arange(5, dtype=m.float64)
m.arange(0, 5, 2, dtype=m.int32)
m.arange(start=1, end=4, step=2)
m.arange(end=3)
m.arange(3.0, requires_grad=True)
m.arange(m.tensor(4))
m.arange(0, 5, out=m.zeros(5))
m.arange(-0.5, 2, 0.5, dtype=m.int64)  # 3
m.arange(0.5, 7, 1.6, dtype=m.int64)
m.arange(0.5, 7, 1.6, dtype=m.int32)
m.arange(0, 2, 0.5, dtype=m.uint8)
m.arange(0, 10**6, 3).sum()
m.arange(0, 1, 0)  # 3
m.arange(5, 1)  # 4
m.arange(0, 3, -1)  # 4
m.arange(0, float('inf'))  # 2
m.arange(float('nan'))  # 0
m.arange()  # 0
m.arange('a')  # 0
m.range(1, 4)
m.range(0, 1, 0.25)
m.range(4, 1, -1)
m.linspace(0, 1, 5)
m.linspace(0, 1, 1)
m.linspace(0, 1, 0)
m.linspace(1, 0, 3)
m.linspace(-10, 10, 8, dtype=m.float64)
m.linspace(0, 10, 4, dtype=m.int64)
m.linspace(1j, 2, 3)
m.linspace(m.tensor(0.0), m.tensor(1.0), 3)
m.linspace(0, 1, steps=3)
m.linspace(start=0, end=1, steps=3, requires_grad=True)
m.linspace(0, 1, -1)  # 4
m.linspace(0, 1, 2.5)  # 0
m.linspace(0, 1)  # 0
m.linspace(m.tensor([0.0]), 1, 3)  # 0
m.logspace(0, 2, 3)
m.logspace(0, 2, 3, base=2)
m.logspace(0, 2, 3, dtype=m.int64)
m.logspace(-1, 1, 4, dtype=m.float64)
m.logspace(0, 1, -1)  # 4
m.logspace(0, 1, 2.5)  # 0
m.empty_strided((2, 3), (1, 2)).stride()
m.empty_strided((2, 3), (1,))  # 0
m.empty_permuted((2, 3, 4), (0, 2, 1)).stride()
m.empty_permuted((2, 3), (0, 0))  # 0
m.randint(3, (4,))
m.randint(2, 5, (2, 2))
m.randint(10, (2,), dtype=m.float32)
m.randint(low=0, high=4, size=(3,))
m.randint(5, size=(2,))
m.randint(3, 3, (2,))  # 2
m.randint(5)  # 0
m.randint(0, 5)  # 0
m.randint_like(m.zeros(3), 5)
m.randint_like(m.zeros(3), 2, 5)
m.randperm(6)
m.randperm(0)
m.randperm(5, dtype=m.int32)
m.randperm(-1)  # 0
m.randperm(2.5)  # 0
m.rand_like(m.zeros(2, 2))
m.randn_like(m.zeros(2, 2, dtype=m.float64))
m.rand_like(m.zeros(2, dtype=m.int64))  # 0
m.randn(2, dtype=m.int64)  # 0
m.normal(0.0, 1.0, (3,))
m.normal(m.zeros(3), m.ones(3))
m.normal(m.zeros(3), 2.0)
m.normal(1.0, m.ones(3))
m.normal(m.zeros(3), -1.0)  # 0
m.normal(m.zeros(2), m.ones(3))  # 4
m.bernoulli(m.full((4,), 0.5))
m.bernoulli(m.full((4,), 1.5))  # 0
m.bernoulli(m.zeros(4), 0.5)
m.multinomial(m.tensor([0.2, 0.3, 0.5]), 2)
m.multinomial(m.ones(2, 3), 2)
m.multinomial(m.ones(3), 5, replacement=True)
m.multinomial(m.ones(3), 5)  # 4
m.multinomial(m.tensor([-1.0, 2.0]), 1)  # 0
m.multinomial(m.zeros(3), 1)  # 0
m.poisson(m.tensor([1.0, 2.0]))
m.zeros(3).uniform_()
m.zeros(3).uniform_(1, 2)
m.zeros(3).uniform_(2, 1)  # 0
m.zeros(3).normal_()
m.zeros(3).normal_(1, 2)
m.zeros(3).normal_(mean=1, std=2)
m.zeros(3).normal_(0, -1)  # 0
m.zeros(3).random_(5)
m.zeros(3).random_(2, 5)
m.zeros(3, dtype=m.int64).random_(0, 7)
m.zeros(3).bernoulli_()
m.zeros(3).bernoulli_(0.3)
m.zeros(3).bernoulli_(2)  # 0
m.zeros(3).exponential_()
m.zeros(3).exponential_(2.0)
m.zeros(3).exponential_(-1)  # 0
m.zeros(3).geometric_(0.3)
m.zeros(3).geometric_(2)  # 0
m.zeros(3).cauchy_()
m.zeros(3).log_normal_()
m.zeros(3, dtype=m.int64).normal_()  # 0
m.zeros(3, dtype=m.int64).uniform_()  # 0
m.zeros(3, requires_grad=True).uniform_()  # 4
m.randn(2, generator=m.Generator().manual_seed(3))
m.rand(2, generator=m.Generator().manual_seed(3))
m.randperm(4, generator=m.Generator().manual_seed(3))
(m.manual_seed(5), m.rand(2))[1]
(m.set_rng_state(m.get_rng_state()), m.rand(2))[1]
m.initial_seed()
""")
def test_factories(code, words):
    assert_same(code, words)


@texts("""
m.zeros_like(m.ones(2, 3))
m.ones_like(m.zeros(2, dtype=m.int64))
m.zeros_like(m.ones(2), dtype=m.float64)
m.ones_like(m.ones(2), requires_grad=True)
m.zeros_like(m.ones(2, requires_grad=True))
m.full_like(m.ones(2), 7)
m.full_like(m.ones(2, dtype=m.int64), 7.9)
m.full_like(m.ones(2), 7, dtype=m.int64)
m.full_like(m.ones(2), m.tensor(3.0))
m.empty_like(m.ones(2, 3)).shape
m.zeros_like(m.ones(2, 3).t()).stride()
m.zeros_like(m.ones(3).expand(2, 3)).stride()
m.zeros_like(m.ones(2), memory_format=m.preserve_format)
m.zeros_like(m.tensor(3.0))
m.zeros_like(m.ones(2), device='cpu')
m.zeros_like([1, 2])
m.ones_like(3)
m.full_like(m.ones(2))  # 0
m.zeros_like(m.ones(2, dtype=m.int64), requires_grad=True)  # 0
m.ones(2).new_zeros(3)
m.ones(2).new_zeros(2, 3)
m.ones(2).new_zeros((2, 3))
m.ones(2, dtype=m.int64).new_zeros(2)
m.ones(2).new_zeros(2, dtype=m.int64)
m.ones(2).new_zeros(size=(2,))
m.ones(2).new_ones(2, requires_grad=True)
m.ones(2).new_empty(2, 3).shape
m.ones(2).new_empty_strided((2, 3), (1, 2)).stride()
m.ones(2).new_full((2,), 5)
m.ones(2, dtype=m.int64).new_full((2,), 5.5)
m.ones(2).new_full((2,), 5, dtype=m.int64)
m.ones(2).new_tensor([1, 2])
m.ones(2, dtype=m.int64).new_tensor([1.5, 2])
m.ones(2).new_tensor([1.0], requires_grad=True)
m.ones(2).new_tensor(m.tensor([1.0]))
m.ones(2).new_tensor(np.arange(2))
m.ones(2).new_tensor(3)
m.ones(2).new_zeros(-1)  # 7
m.ones(2).new_zeros('a')  # 0
m.ones(2).new_full(2, 5)  # 0
m.ones(2).new_zeros(2, unknown=3)  # 0
""")
def test_like_and_new(code, words):
    assert_same(code, words)


def test_sharing() -> None:
    """What shares memory with its source and what copies it, on both engines."""
    for module in (torch, rushlight):
        source = np.arange(4.0)
        shared = [module.from_numpy(source), module.as_tensor(source), module.asarray(source)]
        copied = [
            module.tensor(source),
            module.as_tensor(source, dtype=module.float32),
            module.asarray(source, copy=True),
        ]
        source[0] = 9
        assert [one[0].item() for one in shared] == [9, 9, 9]
        assert [one[0].item() for one in copied] == [0, 0, 0]
        made = module.ones(2)
        assert module.as_tensor(made) is made
        assert module.tensor(made).data_ptr() != made.data_ptr()
        buffer = bytearray(8)
        view = module.frombuffer(buffer, dtype=module.uint8)
        buffer[3] = 7
        assert view[3] == 7


def test_a_copy_lies_in_memory_as_its_source_does() -> None:
    source = np.arange(6.0).reshape(2, 3)
    for given in (source, source.T, source[:, ::2]):
        assert rushlight.tensor(given).stride() == torch.tensor(given).stride()


@pytest.mark.parametrize("module", [torch, rushlight], ids=["torch", "rushlight"])
def test_warnings(module) -> None:
    """Copying a tensor with tensor() warns, and so does a tensor over read-only memory."""
    with pytest.warns(UserWarning, match="To copy construct from a tensor"):
        module.tensor(module.ones(2))
    frozen = np.arange(3.0)
    frozen.flags.writeable = False
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        module.from_numpy(frozen)
    if module is rushlight:  # torch warns of this once per process
        assert "not writable" in str(caught[0].message)
