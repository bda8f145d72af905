"""Rushlight: PyTorch's autograd in pure Python on NumPy, with the lifetime of every graph visible.

`import rushlight as torch` runs ordinary PyTorch programs. Parts that not every program needs are imported at their
first use, so that importing the package costs little more than importing NumPy.
"""
from __future__ import annotations

from typing import Any

from .arrays.devices import device
from .arrays.dtypes import (
    bfloat16,
    can_cast,
    cdouble,
    cfloat,
    complex64,
    complex128,
    double,
    dtype,
    finfo,
    float16,
    float32,
    float64,
    get_default_dtype,
    half,
    iinfo,
    int8,
    int16,
    int32,
    int64,
    long,
    promote_types,
    set_default_dtype,
    short,
    uint8,
    uint16,
    uint32,
    uint64,
)
from .graph.errors import FreedGraphError, ModifiedInplaceError
from .graph.modes import is_grad_enabled
from .ops import table

table.PUBLIC.append(globals())

from .ops.families import load_core

load_core()

from .arrays.dtypes import bool_ as bool
from .arrays.dtypes import float32 as float
from .arrays.dtypes import int32 as int
from .tensor import Size, Tensor
from .tensor.construct import (
    as_tensor,
    asarray,
    channels_last,
    channels_last_3d,
    contiguous_format,
    from_dlpack,
    from_numpy,
    frombuffer,
    layout,
    memory_format,
    preserve_format,
    scalar_tensor,
    strided,
    tensor,
)

__version__ = "0.1.0"
inf, nan, pi, e = 1e400, 1e400 - 1e400, 3.141592653589793, 2.718281828459045
newaxis = None

_MODULES = ("autograd", "nn", "optim", "linalg", "utils", "special", "random", "cuda", "backends", "overrides", "types",
            "distributions", "fft", "signal", "masked", "version", "accelerator", "amp", "serialization")
_ELSEWHERE = {
    "no_grad": "autograd.grad_mode", "enable_grad": "autograd.grad_mode", "inference_mode": "autograd.grad_mode",
    "set_grad_enabled": "autograd.grad_mode", "is_inference_mode_enabled": "autograd.grad_mode",
    "set_printoptions": "tensor.printing", "get_printoptions": "tensor.printing",
    "Generator": "arrays.random", "default_generator": "arrays.random",
    "save": "serialization", "load": "serialization",
    "autocast": "amp", "is_autocast_enabled": "amp",
}
_TYPED = {"FloatTensor": float32, "DoubleTensor": float64, "HalfTensor": float16, "LongTensor": int64, "IntTensor": int32,
          "ShortTensor": int16, "CharTensor": int8, "ByteTensor": uint8, "BoolTensor": bool, "BFloat16Tensor": bfloat16,
          "ComplexFloatTensor": complex64, "ComplexDoubleTensor": complex128}


def __getattr__(name: str) -> Any:
    import importlib
    if name in _ELSEWHERE:
        found = getattr(importlib.import_module(f"{__name__}.{_ELSEWHERE[name]}"), name)
    elif name in _MODULES:
        try:
            found = importlib.import_module(f"{__name__}.{name}")
        except ModuleNotFoundError as error:
            if error.name != f"{__name__}.{name}":
                raise
            raise AttributeError(f"rushlight has no {name!r} yet") from None
    elif name in _TYPED:
        from .tensor.construct import typed_constructor
        found = typed_constructor(name, _TYPED[name])
    elif name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    else:
        from .ops.families import load_until
        load_until(lambda: name in globals())
        if name not in globals():
            raise AttributeError(f"rushlight has no {name!r}. If it is a PyTorch name, it is not supported yet: "
                                 "compose it from operations that are, or compute it in NumPy inside an autograd.Function.")
        return globals()[name]
    globals()[name] = found
    return found


def is_tensor(obj: object) -> Any:
    return isinstance(obj, Tensor)


def is_floating_point(input: Tensor) -> Any:
    return input.is_floating_point()


def is_complex(input: Tensor) -> Any:
    return input.is_complex()


def numel(input: Tensor) -> Any:
    return input._array.size


def result_type(first: Any, second: Any) -> dtype:
    """The dtype that an operation on the two would give."""
    from .arrays import dtypes
    tensors = [t for t in (first, second) if isinstance(t, Tensor)]
    return dtypes.from_numpy(dtypes.result_type(
        [t._array.dtype for t in tensors if t._shape], [t._array.dtype for t in tensors if not t._shape],
        [t for t in (first, second) if not isinstance(t, Tensor)]))


def typename(obj: Any) -> str:
    if isinstance(obj, Tensor):
        return obj.type()
    kind = type(obj)
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"


def get_num_threads() -> Any:
    return 1


def set_num_threads(number: Any) -> None:
    """Accepted for compatibility: NumPy's BLAS takes its thread count from the environment (OMP_NUM_THREADS)."""


def is_anomaly_enabled() -> Any:
    from .graph.modes import state
    return state.anomaly


def is_anomaly_check_nan_enabled() -> Any:
    from .graph.modes import state
    return state.anomaly_check_nan


def set_default_device(device: Any) -> None:
    from .arrays.devices import require_cpu
    require_cpu(device)


def get_default_device() -> device:
    return device("cpu")


def set_default_tensor_type(kind: Any) -> None:
    set_default_dtype(kind.dtype)


def use_deterministic_algorithms(mode: Any, *, warn_only: Any = False) -> None:
    """Accepted for compatibility: every operation is deterministic."""
