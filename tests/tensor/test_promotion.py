"""Which dtype a mixed operation gives: all pairs of dtypes as tensors, 0-dim tensors and numbers, against torch."""

from __future__ import annotations

import importlib.util
import itertools
import operator
import warnings

import pytest

import rushlight
from tests.tensor.comparing import assert_same, texts, torch

DTYPES = [
    "bool",
    "uint8",
    "int8",
    "int16",
    "int32",
    "int64",
    "float16",
    "float32",
    "float64",
    "complex64",
    "complex128",
]
if importlib.util.find_spec("ml_dtypes"):
    DTYPES.append("bfloat16")
NUMBERS = [True, 2, 2.0, 2j]
OPERATIONS = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": operator.truediv,
    "pow": operator.pow,
    "floor_divide": operator.floordiv,
    "remainder": operator.mod,
    "eq": operator.eq,
    "lt": operator.lt,
    "and": operator.and_,
    "where": None,
    "maximum": None,
    "result_type": None,
}


def is_comparable(*kinds) -> bool:
    """Rushlight has complex64 where torch has complex32."""
    names = [kind if isinstance(kind, str) else type(kind).__name__ for kind in kinds]
    return "float16" not in names or not any(one.startswith("complex") for one in names)


def apply(module, name, first, second):
    if name == "where":
        return module.where(module.tensor([True]), first, second)
    if OPERATIONS[name] is None:
        return getattr(module, name)(first, second)
    return OPERATIONS[name](first, second)


def outcome(module, name, first, second):
    """The result's dtype, or the type of the error."""
    try:
        result = apply(module, name, first, second)
    except Exception as error:
        return type(error).__name__
    return str(getattr(result, "dtype", result))


def agree(expected: str, found: str) -> bool:
    """The same dtype or error. A NotImplementedError is a RuntimeError."""
    return found == expected or (expected, found) == ("RuntimeError", "NotImplementedError")


def operands(module, dtype):
    """A tensor and a 0-dim tensor of the dtype."""
    kind = getattr(module, dtype)
    return {"tensor": module.ones(1, dtype=kind), "0-dim": module.ones((), dtype=kind)}


@pytest.fixture(scope="module", autouse=True)
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.mark.parametrize("name", OPERATIONS)
def test_tensors(name) -> None:
    """Each pair of dtypes, each as tensor and as 0-dim tensor."""
    wrong = []
    known = {(module, dtype): operands(module, dtype) for module in (torch, rushlight) for dtype in DTYPES}
    for first, second in itertools.product(DTYPES, DTYPES):
        if not is_comparable(first, second):
            continue
        for one, other in itertools.product(("tensor", "0-dim"), repeat=2):
            expected, found = (
                outcome(module, name, known[module, first][one], known[module, second][other])
                for module in (torch, rushlight)
            )
            if not agree(expected, found):
                wrong.append(f"{one} {first} with {other} {second}: {found}, torch {expected}")
    assert not wrong, f"{len(wrong)} differ:\n" + "\n".join(wrong[:20])


@pytest.mark.parametrize("name", OPERATIONS)
def test_numbers(name) -> None:
    """Each dtype, as tensor and as 0-dim tensor, with Python numbers on either side."""
    wrong = []
    known = {(module, dtype): operands(module, dtype) for module in (torch, rushlight) for dtype in DTYPES}
    for dtype, number, kind in itertools.product(DTYPES, NUMBERS, ("tensor", "0-dim")):
        if not is_comparable(dtype, number):
            continue
        for swapped in (False, True):
            results = []
            for module in (torch, rushlight):
                pair = (known[module, dtype][kind], number)
                results.append(outcome(module, name, *(pair[::-1] if swapped else pair)))
            if not agree(*results):
                wrong.append(
                    f"{kind} {dtype} with {number!r}{' before it' if swapped else ''}: {results[1]}, torch {results[0]}"
                )
    assert not wrong, f"{len(wrong)} differ:\n" + "\n".join(wrong[:20])


def test_in_place() -> None:
    """An in-place result must fit the tensor's dtype: which pairs torch refuses."""
    wrong = []
    for name in ("add_", "mul_", "div_", "pow_"):
        for first, second in itertools.product(DTYPES, [*DTYPES, *NUMBERS]):
            results = []
            for module in (torch, rushlight):
                target = module.ones(2, dtype=getattr(module, first))
                other = module.ones(2, dtype=getattr(module, second)) if isinstance(second, str) else second
                try:
                    getattr(target, name)(other)
                    results.append(str(target.dtype))
                except Exception as error:
                    results.append(type(error).__name__)
            if not agree(*results):
                wrong.append(f"{first} {name} {second}: {results[1]}, torch {results[0]}")
    assert not wrong, f"{len(wrong)} differ:\n" + "\n".join(wrong[:20])


@pytest.mark.parametrize(
    "name",
    [
        "exp",
        "sqrt",
        "sin",
        "neg",
        "abs",
        "sum",
        "mean",
        "prod",
        "cumsum",
        "sigmoid",
        "relu",
        "floor",
        "reciprocal",
        "square",
        "sign",
        "var",
        "max",
        "argmax",
        "softmax",
        "isnan",
        "logical_not",
    ],
)
def test_one_argument(name) -> None:
    """The dtype of functions of one tensor, and which dtypes they refuse."""
    wrong = []
    for dtype in DTYPES:
        results = []
        for module in (torch, rushlight):
            tensor = module.ones(3, dtype=getattr(module, dtype))
            try:
                arguments = (0,) if name in ("cumsum", "softmax") else ()
                results.append(str(getattr(module, name)(tensor, *arguments).dtype))
            except Exception as error:
                results.append(type(error).__name__)
        if not agree(*results):
            wrong.append(f"{name} of {dtype}: {results[1]}, torch {results[0]}")
    assert not wrong, "\n".join(wrong)


def test_promote_types_and_can_cast() -> None:
    for first, second in itertools.product(DTYPES, DTYPES):
        for function in ("promote_types", "can_cast"):
            expected, found = (
                str(getattr(module, function)(getattr(module, first), getattr(module, second)))
                for module in (torch, rushlight)
            )
            assert found == expected, f"{function}({first}, {second})"


@texts("""
m.tensor([1, 2]) + 1.5
m.tensor([1, 2], dtype=m.uint8) + 300  # 0
m.tensor([200], dtype=m.uint8) + 100
m.tensor([100], dtype=m.int8) * 2
m.tensor([True]) + True
m.tensor([True, False]) * 2
m.tensor([True]) - True  # 4
-m.tensor([True])  # 4
m.tensor([7]) / 2
m.tensor([7]) // 2
m.tensor([-7]) // 2
m.tensor([-7]) % 3
m.tensor([7]) // 0  # 0
m.tensor([7.0]) // 0
m.tensor([7.0]) % 0
m.tensor([1]) / 0
m.tensor([2]) ** -1  # 0
m.tensor([2.0]) ** -1
m.tensor([2]) ** m.tensor([-1])
2 ** m.tensor([1, 2])
2.5 ** m.tensor([1, 2])
m.tensor([1.0]) + m.tensor(1, dtype=m.float64)
m.tensor(1.0) + m.tensor(1, dtype=m.float64)
m.tensor([1]) + m.tensor(1.5)
m.tensor([1.0], dtype=m.float16) + 1e6
m.tensor([1.0]) * 1j
m.tensor([1]) * 1j
m.tensor([1.0]) < m.tensor([2])
m.tensor([1j]) < m.tensor([2])  # 0
m.tensor([1]) == 1.0
m.tensor([1]) == 'a'
m.tensor([1]) != None
m.tensor([1]) & 3
m.tensor([1.0]) & 3  # 0
m.tensor([1]) << 2
m.result_type(m.tensor([1]), 1.0)
m.result_type(m.tensor(1.0), m.tensor([1]))
m.result_type(1, 2.0)
m.zeros(2, dtype=m.int64).add_(1.5)  # 3
m.zeros(2, dtype=m.int64).div_(2)  # 3
m.add(m.tensor([1]), m.tensor([2]), alpha=1.5)  # 0
m.add(m.tensor([1]), m.tensor([2]), alpha=2)
m.add(m.tensor([True]), m.tensor([True]), alpha=2)  # 0
m.sum(m.tensor([1, 2], dtype=m.int8))
m.sum(m.tensor([True, True]))
m.mean(m.tensor([1, 2]))  # 0
m.tensor([1, 2]).sum(dtype=m.float64)
m.cat([m.tensor([1]), m.tensor([1.5])])
m.stack([m.tensor(1), m.tensor(1.5)])
m.where(m.tensor([True, False]), 1, 2.5)
m.where(m.tensor([True, False]), m.tensor([1, 2]), 2.5)
m.clamp(m.tensor([1, 5]), 2.5)
m.full((2,), 3) * m.tensor(2.5)
""")
def test_values(code, words) -> None:
    assert_same(code, words)
