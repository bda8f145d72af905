"""Printing: the text must be real torch's, character for character."""

from __future__ import annotations

import contextlib
import math
import subprocess
import sys

import numpy as np
import pytest

from rushlight.tensor import printing

torch = pytest.importorskip("torch", reason="the expected text is real torch's")

FLOATS = ["float16", "float32", "float64", "bfloat16"]
COMPLEXES = ["complex64", "complex128"]
INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
SMALL_SHAPES = [(), (1,), (7,), (40,), (3, 4), (1, 1), (5, 1), (2, 3, 4), (2, 1, 30), (2, 2, 2, 3)]
SHAPES = [*SMALL_SHAPES, (1000,), (1001,), (40, 60), (4, 11, 30)]


@pytest.fixture(autouse=True)
def restored_options():
    """Both printers begin and end with their defaults."""
    yield
    printing.set_printoptions(profile="default")
    torch.set_printoptions(profile="default")
    torch.set_default_dtype(torch.float32)


@contextlib.contextmanager
def both_options(**options):
    printing.set_printoptions(**options)
    torch.set_printoptions(**options)
    yield
    printing.set_printoptions(profile="default")
    torch.set_printoptions(profile="default")


def name_of(tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def array_of(tensor) -> np.ndarray:
    """The tensor's values; bfloat16, which NumPy lacks, as the float32 array of the same values."""
    tensor = tensor.detach()
    return (tensor.float() if tensor.dtype == torch.bfloat16 else tensor).numpy()


def ours(tensor, **arguments) -> str:
    return printing.format_tensor(array_of(tensor), dtype_name=name_of(tensor), **arguments)


def assert_same(tensor, **arguments) -> None:
    assert ours(tensor, **arguments) == repr(tensor)


def random_tensor(generator: np.random.Generator, dtype_name: str, shape: tuple[int, ...]):
    """Values whose style is itself random: whole or not, of one magnitude or many, with zeros, nan and inf."""
    if dtype_name == "bool":
        return torch.from_numpy(np.asarray(generator.random(shape) < 0.5))
    if dtype_name in INTEGERS:
        limits = np.iinfo(dtype_name)
        scale = float(generator.choice([10, 1000, 2.0**62]))
        low, high = max(limits.min, -int(scale)), min(limits.max, int(scale))
        return torch.from_numpy(np.asarray(generator.integers(low, high, shape, dtype=dtype_name, endpoint=True)))
    if dtype_name in COMPLEXES:
        part = "float32" if dtype_name == "complex64" else "float64"
        real, imaginary = (random_tensor(generator, part, shape) for _ in range(2))
        return torch.complex(real, imaginary)
    values = generator.normal(size=shape) * 10.0 ** generator.integers(-6, 10)
    style = generator.integers(6)
    if style == 0:
        values = np.round(values)
    elif style == 1:
        values = values * 10.0 ** generator.uniform(-4, 4, shape)
    elif style == 2:
        values = np.round(generator.normal(size=shape) * 20) / 4
    elif style == 3:
        values = np.round(generator.normal(size=shape) * 3)
    if generator.random() < 0.4:
        special = np.array([0.0, -0.0, math.nan, math.inf, -math.inf])
        values = np.where(generator.random(shape) < 0.2, generator.choice(special, shape), values)
    with np.errstate(over="ignore"):
        return torch.from_numpy(np.asarray(values, dtype=np.float64)).to(getattr(torch, dtype_name))


@pytest.mark.parametrize("dtype_name", [*FLOATS, *COMPLEXES, *INTEGERS, "bool"])
def test_random_arrays(dtype_name):
    generator = np.random.default_rng(sum(map(ord, dtype_name)))
    for _ in range(6):
        for shape in SHAPES:
            assert_same(random_tensor(generator, dtype_name, shape))


SPECIAL_VALUES = [
    0.0,
    -0.0,
    1.0,
    -3.0,
    math.nan,
    math.inf,
    -math.inf,
    1e-4,
    9.9e-5,
    1e8,
    1.0001e8,
    0.5,
    1e300,
    5e-324,
    [0.0, -0.0],
    [-0.0, 1.0],
    [-0.0, 0.5],
    [math.nan, math.nan],
    [0.0, math.inf],
    [1.0, math.nan, -math.inf],
    [0.5, math.nan, -math.inf],
    [1e-5, math.nan, math.inf, 0.0],
    [1.0, 1000.0],
    [1.0, 1001.0],
    [0.001, 1.0],
    [0.00099, 1.0],
    [1e8, 1e6],
    [1.1e8, 1e6],
    [123456.0, -7.0],
    [0.1, -100.25],
    [1e-310, 1e308],
    [0.99999, 1.99996],
]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("value", SPECIAL_VALUES, ids=str)
def test_special_floats(value, dtype):
    assert_same(torch.tensor(value, dtype=dtype))


@pytest.mark.parametrize("sci_mode", [None, True, False])
@pytest.mark.parametrize(
    "value",
    [0j, 1 + 2j, -1.5 - 0.25j, complex(0.0, -0.0), complex(-0.0, math.nan), complex(math.inf, -math.inf)],
    ids=str,
)
def test_special_complexes(value, sci_mode):
    with both_options(sci_mode=sci_mode):
        assert_same(torch.tensor(value))
        assert_same(torch.tensor([value, 1e-6 + 1j, 3.0 - 1e9j]))
        assert_same(torch.tensor([[value], [2 + 10j]], dtype=torch.complex128))


@pytest.mark.parametrize("default", [torch.float16, torch.float32, torch.float64])
@pytest.mark.parametrize("dtype_name", [*FLOATS, *COMPLEXES, *INTEGERS, "bool"])
def test_dtype_is_named_only_where_needed(dtype_name, default):
    torch.set_default_dtype(default)
    default_name = str(default).removeprefix("torch.")
    for shape in [(), (2,), (0,), (0, 3)]:
        assert_same(torch.ones(shape, dtype=getattr(torch, dtype_name)), default_float_name=default_name)


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0), (0, 0), (2, 0, 4), (1, 0)])
def test_empty(shape):
    assert_same(torch.empty(shape))
    assert_same(torch.empty(shape, requires_grad=True), requires_grad=True)
    with both_options(edgeitems=0):
        assert_same(torch.empty(shape))


@pytest.mark.parametrize("length", range(1, 24))
def test_suffixes_break_lines_where_torch_does(length):
    leaf = torch.arange(length, dtype=torch.float64).requires_grad_()
    assert_same(leaf, requires_grad=True)
    assert_same(leaf * 2, requires_grad=True, grad_fn_name="MulBackward0")
    assert_same((leaf * 2).reshape(1, -1), requires_grad=True, grad_fn_name=type(leaf.reshape(1, -1).grad_fn).__name__)


@pytest.mark.parametrize("linewidth", range(10, 60))
def test_each_suffix_starts_a_line_when_it_does_not_fit(linewidth):
    result = torch.ones(6, dtype=torch.float64, requires_grad=True) * 2
    with both_options(linewidth=linewidth):
        assert_same(result, requires_grad=True, grad_fn_name="MulBackward0")


def test_tangent():
    from torch.autograd import forward_ad

    with forward_ad.dual_level():
        for shape in [(), (3,), (2, 2), (30,)]:
            primal, tangent = torch.randn(shape, dtype=torch.float64), torch.ones(shape, dtype=torch.float64)
            dual = forward_ad.make_dual(primal, tangent)
            assert ours(primal, extra_suffixes=[f"tangent={tangent}"]) == repr(dual)


def test_subclass_prefix_sets_the_indent():
    class ALongerName(torch.Tensor):
        pass

    for shape in [(), (50,), (2, 30), (2, 2, 2), (0, 2)]:
        tensor = torch.randn(shape).as_subclass(ALongerName)
        expected = repr(tensor)
        plain = tensor.as_subclass(torch.Tensor)
        assert ours(plain, class_prefix="ALongerName(") == expected


OPTIONS = [
    {"precision": 0},
    {"precision": 2},
    {"precision": 10},
    {"threshold": 5},
    {"threshold": 0},
    {"threshold": math.inf},
    {"threshold": 5, "edgeitems": 1},
    {"threshold": 5, "edgeitems": 0},
    {"edgeitems": 0},
    {"threshold": 5, "edgeitems": 50},
    {"linewidth": 20},
    {"linewidth": 1},
    {"linewidth": 200},
    {"linewidth": 61.5},
    {"sci_mode": True},
    {"sci_mode": False},
    {"sci_mode": True, "precision": 1},
    {"profile": "short"},
    {"profile": "full"},
    {"profile": "short", "precision": 6, "sci_mode": True},
    {"profile": "default"},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_print_options(options):
    generator = np.random.default_rng(len(str(options)))
    with both_options(**options):
        assert printing.get_printoptions() == torch._tensor_str.get_printoptions()
        for dtype_name in ["float32", "float64", "complex64", "int64", "uint8", "bool"]:
            for shape in [(), (1,), (6,), (7,), (30,), (3, 4), (2, 9, 3), (10, 2, 2), (8, 130)]:
                assert_same(random_tensor(generator, dtype_name, shape))
        assert_same(torch.zeros(3))


def test_options_given_one_after_another():
    steps = [{"precision": 2, "sci_mode": True}, {"linewidth": 40}, {"profile": "full"}, {"sci_mode": False}, {}]
    tensor = torch.linspace(0.1, 900.0, 1200)
    for step in steps:
        printing.set_printoptions(**step)
        torch.set_printoptions(**step)
        assert printing.get_printoptions() == torch._tensor_str.get_printoptions()
        assert_same(tensor)


def test_printoptions_restores_after_an_error():
    printing.set_printoptions(precision=3, sci_mode=True)
    before = printing.get_printoptions()
    with pytest.raises(KeyError), printing.printoptions(precision=7, profile="short"):
        assert (printing.PRINT_OPTIONS.precision, printing.PRINT_OPTIONS.edgeitems) == (7, 2)
        raise KeyError
    assert printing.get_printoptions() == before


def test_unknown_profile_is_refused():
    before = printing.get_printoptions()
    with pytest.raises(ValueError, match="profile 'shrot'"):
        printing.set_printoptions(precision=9, profile="shrot")
    assert printing.get_printoptions() == before


@pytest.mark.parametrize("order", ["transposed", "strided", "broadcast"])
def test_arrays_that_are_not_contiguous(order):
    base = torch.arange(2400.0).reshape(40, 60)
    assert_same({"transposed": base.T, "strided": base[::3, ::2], "broadcast": base[0].expand(30, 60)}[order])


def test_summary_of_a_huge_array_reads_only_its_edges():
    # a broadcast view of 8 * 10**15 bytes: touching more than the edges would not fit in memory
    array = np.broadcast_to(np.arange(10.0, dtype=np.float32), (10**7, 10**7, 10))
    tensor = torch.arange(10.0).expand(10**7, 10**7, 10)
    assert printing.format_tensor(array, dtype_name="float32") == repr(tensor)


def test_bfloat16_extension_arrays():
    ml_dtypes = pytest.importorskip("ml_dtypes", reason="the extension type for bfloat16 arrays")
    generator = np.random.default_rng(16)
    for shape in SHAPES:
        tensor = random_tensor(generator, "bfloat16", shape)
        array = array_of(tensor).astype(ml_dtypes.bfloat16)
        assert printing.format_tensor(array, dtype_name="bfloat16") == repr(tensor)
    number = torch.tensor(0.1, dtype=torch.bfloat16)
    for spec in ["", ".3f", ">20", "e"]:
        assert printing.format_number(np.array(0.1, dtype=ml_dtypes.bfloat16), spec) == format(number, spec)


@pytest.mark.parametrize(
    ("tensor", "spec"),
    [
        (torch.tensor(value), spec)
        for value, specs in [
            (0.1, ["", ".4f", "10.2e", ">12", "+g", "%", "_^20.3f"]),
            (-math.inf, ["", ".3f"]),
            (12, ["", "5d", "x", "08b", ".2f", ","]),
            (True, ["", "d", ">6"]),
            (1.5 - 2j, ["", ".2f", ">30"]),
        ]
        for spec in specs
    ],
    ids=lambda parameter: str(parameter),
)
def test_format_number(tensor, spec):
    assert printing.format_number(tensor.numpy(), spec) == format(tensor, spec)
    assert printing.format_number(tensor.item(), spec) == format(tensor, spec)


def test_format_number_refuses_what_python_refuses():
    with pytest.raises(ValueError) as expected:
        format(torch.tensor(0.5), "d")
    with pytest.raises(ValueError) as raised:
        printing.format_number(np.float32(0.5), "d")
    assert str(raised.value) == str(expected.value)


def test_importing_the_package_does_not_load_printing():
    program = "import sys, rushlight; sys.exit('rushlight.tensor.printing' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], env={"PYTHONPATH": ":".join(sys.path)}).returncode == 0
