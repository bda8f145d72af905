"""dtypes: the default one, their limits and their names, against torch."""

from __future__ import annotations

import pytest

import rushlight
from tests.tensor.comparing import assert_same, texts, torch


@pytest.mark.parametrize("default", ["float64", "float16"])
@texts("""
m.tensor(1.5)
m.tensor([1, 2.5])
m.tensor(2)
m.zeros(2)
m.arange(0, 1, 0.5)
m.linspace(0, 1, 3)
m.full((2,), 1.5)
m.Tensor([1, 2])
m.tensor([1, 2]) / 2
m.tensor([1, 2]) * 1.5
m.as_tensor(np.ones(2, np.float32))
m.eye(2)
m.get_default_dtype()
""")
def test_default_dtype(default, code, words):
    for module in (torch, rushlight):
        module.set_default_dtype(getattr(module, default))
    try:
        assert_same(code, words)
    finally:
        for module in (torch, rushlight):
            module.set_default_dtype(module.float32)


@texts("""
m.set_default_dtype(m.int64)
m.set_default_dtype('float32')
m.set_default_dtype(None)
m.finfo(m.float32).eps
m.finfo(m.float64).max
m.finfo(m.float16).tiny
m.finfo(m.float16).smallest_normal
m.finfo().bits
m.finfo(m.complex64).bits
m.finfo(m.int32)
m.finfo(m.float32).dtype
repr(m.finfo(m.float32))
repr(m.finfo(m.float64))
m.iinfo(m.int8).min
m.iinfo(m.uint8).max
m.iinfo(m.int64).bits
m.iinfo(m.float32)
[m.float32.is_floating_point, m.complex64.is_complex, m.uint8.is_signed, m.int8.is_signed, m.bool.is_signed]
[m.float32.itemsize, m.complex128.itemsize, m.bool.itemsize, m.bfloat16.itemsize]
[m.float32.to_complex(), m.complex128.to_real(), m.float64.to_complex(), m.int8.to_real()]  # 0
[m.half is m.float16, m.float is m.float32, m.double is m.float64, m.long is m.int64, m.int is m.int32, m.short is m.int16]
[m.cfloat is m.complex64, m.cdouble is m.complex128]
{m.float32: 1}[m.float]
str(m.float32)
m.float32 == m.float
m.float32 == 'float32'
__import__('pickle').loads(__import__('pickle').dumps(m.float32)) is m.float32
__import__('copy').deepcopy(m.float32) is m.float32
""")
def test_dtypes(code, words):
    assert_same(code, words)
