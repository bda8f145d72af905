"""Runs the entries of PyTorch's own op database on real torch and on rushlight, and compares what comes out.

The database (torch.testing._internal.common_methods_invocations.op_db) gives each operation sample inputs, error inputs
and, for some, a Python function to call instead of the operation itself. Such functions name `torch` among their
globals; `Engine.ported` gives them the engine under test in its place.
"""

from __future__ import annotations

import functools
import itertools
import os
import time
import types
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch.testing._internal import common_utils
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.opinfo import core as opinfo_core

import rushlight

# Importing the database forbids setting torch's global flags, in the whole process; other tests set them as programs do.
torch.backends.flags_frozen.__globals__["__allow_nonbracketed_mutation_flag"] = True


def seed_quickly(seed: int | None = None) -> None:
    """Seed the CPU's generators only: torch.manual_seed notes its caller's stack for each kind of device."""
    torch.default_generator.manual_seed(common_utils.SEED if seed is None else seed)
    np.random.seed(common_utils.SEED if seed is None else seed)


# The database does both for every sample it makes, which was three quarters of this file's time.
common_utils.set_rng_seed = seed_quickly
common_utils.extract_test_fn = lambda: None

# RUSHLIGHT_OPINFO_SAMPLES=20 hunts with that many samples of an operation instead of a few.
SAMPLES = int(os.environ.get("RUSHLIGHT_OPINFO_SAMPLES", "5"))
SMALL = 600  # elements of all the tensors in a sample
LOOKED_AT = 8  # times as many samples are looked at as are taken
LOOKING = 0.03 * SAMPLES  # seconds after which the choice is made from what has come
SEED = 7
# Relative and absolute tolerance by dtype; the absolute one grows with the size of the values.
TOLERANCE = {"float64": (1e-6, 1e-8), "complex128": (1e-6, 1e-8), "float32": (1e-4, 1e-5), "complex64": (1e-4, 1e-5)}
# Names of op_db that are PyTorch's insides, CUDA's, or other storage layouts: no public name that a program could use.
INTERNAL = (
    "jiterator_",
    "torch.ops.",
    "torch._",
    "_",
    "sparse.",
    "native_",
    "slice",
    "max_pool2d_with_indices_backward",
    "to_sparse",
    "grid_sampler_",
    "bmm.triton",
    "nn.functional.batch_norm.without_cudnn",
)
PYTHON_OPERATORS = (
    "__radd__",
    "__rsub__",
    "__rmul__",
    "__rdiv__",
    "__rmod__",
    "__rpow__",
    "__rmatmul__",
    "__rand__",
    "__ror__",
    "__rxor__",
    "__getitem__",
)


class NotPortable(Exception):
    """The sample or its function belongs to torch alone (another layout, a dtype NumPy lacks, a torch-only name)."""


def full_name(op: Any) -> str:
    return f"{op.name}.{op.variant_test_name}" if op.variant_test_name else op.name


def is_public(op: Any) -> bool:
    return op.name in PYTHON_OPERATORS or not full_name(op).startswith(INTERNAL)


def attribute(root: Any, path: str) -> Any:
    for part in path.split("."):
        root = getattr(root, part)
    return root


def has(root: Any, path: str) -> bool:
    try:
        attribute(root, path)
    except (AttributeError, ImportError):
        return False
    return True


class Engine:
    """Real torch or rushlight, and op_db's own Python functions made to run on it."""

    def __init__(self, module: types.ModuleType) -> None:
        self.module = module
        self.memory: dict[Any, Any] = {}

    def function_of(self, op: Any) -> Callable:
        """What the database calls, on this engine."""
        if self.module is torch:
            return op.op
        if isinstance(op.op, types.FunctionType) and op.op.__module__.startswith("torch.testing"):
            return self.ported(op.op)
        is_function = has(torch, op.name) and not isinstance(attribute(torch, op.name), torch.dtype)  # torch.cfloat
        return attribute(self.module if is_function else self.module.Tensor, op.name)

    def with_seed(self, function: Callable, *args: Any, **kwargs: Any) -> Any:
        """For torch.testing's wrapper of the same purpose."""
        self.module.manual_seed(42)
        return self.ported(function)(*args, **kwargs)

    def ported(self, value: Any) -> Any:
        """The same thing in terms of this engine."""
        if self.module is torch:
            return value
        if isinstance(value, functools.partial):
            return functools.partial(
                self.ported(value.func),
                *map(self.ported, value.args),
                **{key: self.ported(one) for key, one in value.keywords.items()},
            )
        if isinstance(value, types.FunctionType) and (value.__module__ or "").startswith("torch.testing"):
            return self.with_seed if value.__name__ == "wrapper_set_seed" else self.copied(value)
        if isinstance(value, types.ModuleType) and value.__name__.partition(".")[0] == "torch":
            return self.named(value.__name__.partition(".")[2])
        if isinstance(value, (torch.dtype, torch.layout, torch.memory_format)):
            return self.named(str(value).removeprefix("torch."))
        if isinstance(value, torch.device):
            return self.module.device(str(value))
        if isinstance(value, torch.nn.Module):
            if list(value.parameters()):
                raise NotPortable(type(value).__name__)
            return self.named(f"nn.{type(value).__name__}")()
        if hasattr(value, "__name__") and (getattr(value, "__module__", None) or "").startswith("torch"):
            return self.named(self.public_path(value))
        return value

    def named(self, path: str) -> Any:
        if path and not has(self.module, path):
            raise NotPortable(f"no {path}")
        return attribute(self.module, path) if path else self.module

    @staticmethod
    def public_path(value: Any) -> str:
        for prefix in ("", "nn.functional.", "linalg.", "special.", "Tensor."):
            if has(torch, prefix + value.__name__) and attribute(torch, prefix + value.__name__) is value:
                return prefix + value.__name__
        raise NotPortable(f"{value.__module__}.{value.__name__}")

    def copied(self, function: types.FunctionType) -> Any:
        """The function with other globals, defaults and closure. A name that cannot be ported is left out."""
        if function in self.memory:
            return self.memory[function]
        space: dict[str, Any] = {"__builtins__": __builtins__}
        cells = tuple(types.CellType() for _ in function.__closure__ or ())
        made = types.FunctionType(function.__code__, space, function.__name__, None, cells or None)
        self.memory[function] = made
        for name in names_in(function.__code__):
            if name in function.__globals__:
                try:
                    space[name] = self.ported(function.__globals__[name])
                except NotPortable:
                    continue
        made.__defaults__ = tuple(map(self.ported, function.__defaults__ or ())) or None
        made.__kwdefaults__ = {key: self.ported(one) for key, one in (function.__kwdefaults__ or {}).items()}
        for cell, original in zip(cells, function.__closure__ or (), strict=True):
            cell.cell_contents = self.ported(original.cell_contents)
        return made


def names_in(code: types.CodeType) -> set[str]:
    inner = [constant for constant in code.co_consts if isinstance(constant, types.CodeType)]
    return set(code.co_names).union(*map(names_in, inner))


TORCH, OURS = Engine(torch), Engine(rushlight)


def is_present(op: Any) -> bool:
    """Whether rushlight has the operation under its public name."""
    name = op.name
    if not has(torch, name) and not has(torch.Tensor, name):
        name += "_"  # Tensor.cauchy_ and its like have no other form
    if not has(rushlight, name) and not has(rushlight.Tensor, name):
        return False
    try:
        OURS.function_of(op)
    except (NotPortable, AttributeError):
        return False
    return True


class Sample:
    """One sample, made anew for an engine: every use starts from fresh leaves with the same values."""

    def __init__(self, engine: Engine, sample: Any) -> None:
        self.engine = engine
        self.leaves: list[Any] = []
        self.known: dict[int, Any] = {}
        self.sample = sample
        self.input = self.converted(sample.input)
        self.args = [self.converted(one) for one in sample.args]
        self.kwargs = {key: self.converted(one) for key, one in sample.kwargs.items()}

    def converted(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            if id(value) not in self.known:
                self.known[id(value)] = self.tensor(value)
            return self.known[id(value)]
        if isinstance(value, torch.Size):
            return tuple(value)
        if isinstance(value, (list, tuple)):
            made = [self.converted(one) for one in value]
            return type(value)(*made) if hasattr(value, "_fields") else type(value)(made)
        if isinstance(value, dict):
            return {key: self.converted(one) for key, one in value.items()}
        if isinstance(value, slice):
            return slice(*(self.converted(one) for one in (value.start, value.stop, value.step)))
        if isinstance(value, (torch.Generator, torch.storage.TypedStorage)):
            raise NotPortable(type(value).__name__)
        return self.engine.ported(value)

    def tensor(self, value: torch.Tensor) -> Any:
        if value.layout is not torch.strided or value.is_quantized or value.is_meta:
            raise NotPortable(f"layout {value.layout}")
        try:
            array = value.detach().resolve_conj().resolve_neg().numpy()
        except (TypeError, ValueError):
            raise NotPortable(f"dtype {value.dtype} or {value.ndim} dimensions") from None
        made = self.engine.module.tensor(np.array(array), requires_grad=value.requires_grad)
        if value.requires_grad:
            self.leaves.append(made)
        return made

    def call(self, function: Callable) -> Any:
        self.engine.module.default_generator.manual_seed(SEED)
        return function(self.input, *self.args, **self.kwargs)

    def differentiable_outputs(self, op: Any) -> list[Any]:
        """The outputs a gradient can start from, after what the database does to make gradients well defined."""
        function = self.engine.function_of(op)
        if not is_default(op.gradcheck_wrapper):
            function = functools.partial(self.engine.ported(op.gradcheck_wrapper), function)
        return [one for one in flat(self.processed(self.call(function))) if is_tensor(one) and one.requires_grad]

    def processed(self, output: Any) -> Any:
        """The output as the database compares it: decompositions have a free phase or sign that this removes."""
        process = self.sample.output_process_fn_grad
        return output if is_default(process) else self.engine.ported(process)(output)

    def inplace(self, op: Any) -> Any:
        """The in-place variant on a clone of the input, with the clone."""
        clone = self.input.clone()
        self.engine.module.default_generator.manual_seed(SEED)
        name = op.name.rpartition(".")[2] + "_"
        return getattr(clone, name)(*self.args, **self.kwargs), clone


def is_default(function: Callable) -> bool:
    """Whether it is op_db's do-nothing default."""
    return function.__module__ == opinfo_core.__name__ and function.__name__ == "<lambda>"


def is_tensor(value: Any) -> bool:
    return isinstance(value, (torch.Tensor, rushlight.Tensor))


def flat(value: Any) -> list[Any]:
    if isinstance(value, (list, tuple)) and not isinstance(value, (torch.Size, rushlight.Size)):
        return [leaf for one in value for leaf in flat(one)]
    return [value]


def size_of(sample: Any) -> int:
    values = flat([sample.input, list(sample.args), list(sample.kwargs.values())])
    return sum(one.numel() for one in values if isinstance(one, torch.Tensor))


def dtypes_of(op: Any) -> list[torch.dtype]:
    """The dtype the operation is mostly tested with, then the others."""
    supported = op.supported_dtypes("cpu")
    wanted = (torch.float64, torch.float32, torch.int64, torch.complex128, torch.bool)
    return [dtype for dtype in wanted if dtype in supported]


@functools.lru_cache(maxsize=16)
def samples(op_index: int, dtype: torch.dtype, count: int = SAMPLES) -> list[Any]:
    """A few small samples that torch takes and that mean something on both engines: the first ones and the last."""
    op = op_db[op_index]
    seed_quickly(SEED)
    gradients = op.supports_autograd and dtype in op.supported_backward_dtypes("cpu")
    small, large = [], []
    end = time.perf_counter() + LOOKING
    for sample in itertools.islice(op.sample_inputs("cpu", dtype, requires_grad=gradients), LOOKED_AT * count):
        (small if size_of(sample) <= SMALL else large).append(sample)
        if time.perf_counter() > end:
            break
    chosen = small or sorted(large, key=size_of)
    # From the last ones on: there the database tries options.
    ordered = [*chosen[: count - 1], *reversed(chosen[count - 1 :])]
    return list(itertools.islice((sample for sample in ordered if is_portable(op, sample)), count))


def is_portable(op: Any, sample: Any) -> bool:
    try:
        Sample(OURS, sample)
        reference = Sample(TORCH, sample).call(TORCH.function_of(op))
    except Exception:  # the database has samples that torch refuses, and some that only torch can represent
        return False
    return all(one.layout is torch.strided for one in flat(reference) if is_tensor(one))


def dtype_name(tensor: Any) -> str:
    return str(tensor.dtype).rpartition(".")[2]


def array_of(tensor: Any) -> np.ndarray:
    tensor = tensor.detach()
    if isinstance(tensor, torch.Tensor):
        return (
            tensor.numpy(force=True)
            if tensor.dtype not in (torch.bfloat16, torch.complex32)
            else tensor.to(torch.complex64 if tensor.is_complex() else torch.float32).numpy(force=True)
        )
    return np.asarray(tensor.float().numpy() if dtype_name(tensor) == "bfloat16" else tensor.numpy())


def assert_same(expected: Any, found: Any, what: str, values: bool = True) -> None:
    """Same kind, dtype, shape and values."""
    if expected is None or found is None or not is_tensor(expected):
        assert is_tensor(found) == is_tensor(expected), f"{what}: torch gives {expected!r}, rushlight {found!r}"
        if values and isinstance(expected, (float, complex)):
            np.testing.assert_allclose(found, expected, rtol=1e-6, err_msg=what)
        elif values and isinstance(expected, (int, str, tuple, type(None))):
            assert found == expected, f"{what}: torch gives {expected!r}, rushlight {found!r}"
        return
    assert is_tensor(found), f"{what}: torch gives a tensor, rushlight {found!r}"
    assert tuple(found.shape) == tuple(expected.shape), (
        f"{what}: shape {tuple(found.shape)}, not {tuple(expected.shape)}"
    )
    assert dtype_name(found) == dtype_name(expected), f"{what}: {dtype_name(found)}, not {dtype_name(expected)}"
    if not values:
        return
    wanted, given = array_of(expected), array_of(found)
    if wanted.dtype.kind not in "fc":
        np.testing.assert_array_equal(given, wanted, err_msg=what)
        return
    finite = np.abs(wanted[np.isfinite(wanted)])
    relative, absolute = TOLERANCE.get(dtype_name(expected), (1e-2, 1e-3))
    scale = max(1.0, float(np.median(finite))) if finite.size else 1.0
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(given, wanted, rtol=relative, atol=absolute * scale, equal_nan=True, err_msg=what)


def assert_all_same(expected: list[Any], found: list[Any], what: str, values: bool = True) -> None:
    assert len(found) == len(expected), f"{what}: {len(found)} of them, not {len(expected)}"
    for number, (one, other) in enumerate(zip(expected, found, strict=True)):
        assert_same(one, other, f"{what} {number}", values)


def assert_same_gradients(expected: list[Any], found: list[Any], what: str) -> None:
    """As `assert_all_same`, but no gradient and a gradient of zeros are the same."""
    assert len(found) == len(expected), f"{what}: {len(found)} of them, not {len(expected)}"
    for number, (one, other) in enumerate(zip(expected, found, strict=True)):
        if (one is None) != (other is None):
            present = array_of(other if one is None else one)
            whose = "torch" if one is None else "rushlight"
            assert np.allclose(present, 0, rtol=0, atol=1e-10), f"{what} {number}: None for {whose} only"
        else:
            assert_same(one, other, f"{what} {number}")


def cotangents(engine: Engine, outputs: list[Any], key: str, requires_grad: bool = False) -> list[Any]:
    """The same random gradients for the outputs on either engine."""
    source = np.random.default_rng(zlib.crc32(key.encode()))
    made = []
    for output in outputs:
        values = source.standard_normal(tuple(output.shape))
        if dtype_name(output).startswith("complex"):
            values = values + 1j * source.standard_normal(tuple(output.shape))
        dtype = attribute(engine.module, dtype_name(output))
        made.append(engine.module.tensor(values, dtype=dtype, requires_grad=requires_grad))
    return made
