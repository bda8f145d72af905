"""PyTorch's dtypes over NumPy's, and PyTorch's rules for which dtype a mixed operation gives."""
from __future__ import annotations

import numpy as np

BOOLEAN, INTEGER, FLOATING, COMPLEX = range(4)


class dtype:
    """A PyTorch dtype. Each is made once, here; compare with `is` or `==`."""

    __slots__ = ("_numpy", "category", "itemsize", "name")

    def __init__(self, name: str, category: int, itemsize: int) -> None:
        self.name = name
        self.category = category
        self.itemsize = itemsize
        self._numpy: np.dtype | None = None if name == "bfloat16" else np.dtype(name)

    @property
    def numpy(self) -> np.dtype:
        """The NumPy dtype; bfloat16's comes from ml_dtypes, which is optional."""
        if self._numpy is None:
            try:
                import ml_dtypes
            except ImportError:
                raise RuntimeError(
                    "bfloat16 needs the package ml_dtypes, which is not installed: pip install ml_dtypes"
                ) from None
            self._numpy = np.dtype(ml_dtypes.bfloat16)
            FROM_NUMPY[self._numpy] = self
        return self._numpy

    @property
    def is_floating_point(self) -> bool:
        return self.category == FLOATING

    @property
    def is_complex(self) -> bool:
        return self.category == COMPLEX

    @property
    def is_signed(self) -> bool:
        return self.category >= FLOATING or self.name.startswith("int")

    def to_real(self) -> dtype:
        return {"complex64": float32, "complex128": float64}.get(self.name, self)

    def to_complex(self) -> dtype:
        return {"float32": complex64, "float64": complex128, "float16": complex64}.get(self.name, self)

    def __repr__(self) -> str:
        return f"rushlight.{self.name}"

    def __str__(self) -> str:
        # Programs print and parse "torch.float32"; the name users know is the one they see.
        return f"torch.{self.name}"

    def __reduce__(self) -> tuple:
        return by_name, (self.name,)


float16 = half = dtype("float16", FLOATING, 2)
bfloat16 = dtype("bfloat16", FLOATING, 2)
float32 = dtype("float32", FLOATING, 4)
float64 = double = dtype("float64", FLOATING, 8)
complex64 = cfloat = dtype("complex64", COMPLEX, 8)
complex128 = cdouble = dtype("complex128", COMPLEX, 16)
int8 = dtype("int8", INTEGER, 1)
int16 = short = dtype("int16", INTEGER, 2)
int32 = dtype("int32", INTEGER, 4)
int64 = long = dtype("int64", INTEGER, 8)
uint8 = dtype("uint8", INTEGER, 1)
uint16 = dtype("uint16", INTEGER, 2)
uint32 = dtype("uint32", INTEGER, 4)
uint64 = dtype("uint64", INTEGER, 8)
bool_ = dtype("bool", BOOLEAN, 1)

ALL = (float16, bfloat16, float32, float64, complex64, complex128, int8, int16, int32, int64, uint8, uint16, uint32,
       uint64, bool_)
FROM_NUMPY: dict[np.dtype, dtype] = {d._numpy: d for d in ALL if d._numpy is not None}
# Python's own types stand for dtypes where PyTorch accepts them.
_FROM_PYTHON = {float: float64, int: int64, bool: bool_, complex: complex128}
# The dtypes that take the short path through an operation: see Tensor._real.
REAL: dict[np.dtype, np.dtype] = {d.numpy: d.numpy for d in (float32, float64, float16)}

_default = float32


def by_name(name: str) -> dtype:
    return next(d for d in ALL if d.name == name)


def from_numpy(numpy_dtype: np.dtype) -> dtype:
    """The dtype for a NumPy dtype, or TypeError for those PyTorch has no counterpart of."""
    found = FROM_NUMPY.get(numpy_dtype)
    if found is not None:
        return found
    if numpy_dtype.name == "bfloat16":
        return FROM_NUMPY.get(bfloat16.numpy, bfloat16)
    swapped = FROM_NUMPY.get(numpy_dtype.newbyteorder("="))
    if swapped is not None:
        raise ValueError("given numpy array has byte order different from the native byte order. "
                         "Conversion between byte orders is currently not supported.")
    raise TypeError(
        f"can't convert np.ndarray of type numpy.{numpy_dtype.name}. The only supported types are: float64, float32, "
        "float16, complex64, complex128, int64, int32, int16, int8, uint64, uint32, uint16, uint8, and bool.")


def to_numpy(value: object) -> np.dtype:
    """The NumPy dtype for anything a `dtype=` argument accepts."""
    if value.__class__ is dtype:
        return value.numpy  # type: ignore[attr-defined]
    if isinstance(value, type) and value in _FROM_PYTHON:
        return _FROM_PYTHON[value].numpy
    if isinstance(value, np.dtype):
        return value
    raise TypeError(f"dtype must be a rushlight.dtype such as rushlight.float32, not {type(value).__name__}: {value!r}")


def category(numpy_dtype: np.dtype) -> int:
    """BOOLEAN, INTEGER, FLOATING or COMPLEX."""
    kind = numpy_dtype.kind
    if kind == "f" or kind == "V":  # ml_dtypes' bfloat16 has kind V
        return FLOATING
    if kind == "i" or kind == "u":
        return INTEGER
    return COMPLEX if kind == "c" else BOOLEAN


def get_default_dtype() -> dtype:
    return _default


def set_default_dtype(value: dtype) -> None:
    global _default
    if value.__class__ is not dtype or not value.is_floating_point:
        opening = "" if value.__class__ is dtype else "invalid dtype object: "
        raise TypeError(f"{opening}only floating-point types are supported as the default type")
    _default = value


def default_numpy() -> np.dtype:
    return _default.numpy


def default_complex() -> np.dtype:
    return complex128.numpy if _default is float64 else complex64.numpy


def promote(a: np.dtype, b: np.dtype) -> np.dtype:
    """The dtype that both convert to, as PyTorch has it: int64 with float32 is float32, unlike NumPy."""
    if a == b:
        return a
    first, second = category(a), category(b)
    if first > second:
        a, b, first, second = b, a, second, first
    if first < second and second >= FLOATING and first < FLOATING:
        return b
    if second == COMPLEX:
        return np.promote_types(a, b) if a.kind != "V" else b
    if second == FLOATING:
        if "V" in (a.kind, b.kind):  # bfloat16 with float16 meets at float32; with a wider float, the wider
            other = b if a.kind == "V" else a
            return float32.numpy if other.itemsize == 2 else other
        return np.promote_types(a, b)
    return np.promote_types(a, b)


def promote_types(a: dtype, b: dtype) -> dtype:
    return from_numpy(promote(a.numpy, b.numpy))


def number_dtype(value: object) -> np.dtype:
    """The dtype that a bare Python number stands for."""
    if isinstance(value, (bool, np.bool_)):
        return bool_.numpy
    if isinstance(value, (int, np.integer)):
        return int64.numpy
    if isinstance(value, (float, np.floating)):
        return default_numpy()
    return default_complex()


def check_number(value: object, target: np.dtype) -> None:
    """Raise PyTorch's error for a Python number that a dtype cannot hold."""
    kind = category(target)
    fits = True
    if kind < FLOATING and isinstance(value, complex):
        fits = kind == BOOLEAN or value.imag == 0
    elif isinstance(value, complex):
        fits = kind == COMPLEX or value.imag == 0
    elif kind == INTEGER:
        limits = np.iinfo(target)
        lowest = limits.min
        if not lowest and isinstance(value, int):
            lowest = -limits.max  # PyTorch lets -1 become 255
        fits = lowest <= value <= limits.max  # type: ignore[operator]
    elif kind == FLOATING and abs(value) != float("inf"):  # type: ignore[arg-type]
        fits = not abs(value) > finfo(from_numpy(target)).max  # type: ignore[arg-type]
    if not fits:
        raise RuntimeError(f"value cannot be converted to type {from_numpy(target).name} without overflow")


def number_category(value: object) -> int:
    """The category that a bare Python number stands for."""
    if isinstance(value, bool):
        return BOOLEAN
    if isinstance(value, int):
        return INTEGER
    return FLOATING if isinstance(value, float) else COMPLEX


def result_type(dimensioned: list[np.dtype], zero_dim: list[np.dtype], numbers: list[object]) -> np.dtype:
    """PyTorch's promotion: a 0-dim tensor or a number counts only where it is of a higher category."""
    result: np.dtype | None = None
    for one in dimensioned:
        result = one if result is None else promote(result, one)
    for group in (zero_dim, [number_dtype(n) for n in numbers]):
        joined: np.dtype | None = None
        for one in group:
            joined = one if joined is None else promote(joined, one)
        if joined is None:
            continue
        if result is None:
            result = joined
        elif category(joined) > category(result):
            # float32 tensor with a complex number is complex64: the width of the tensor is kept.
            result = promote(result, joined) if category(result) < FLOATING else promote(
                result, complex64.numpy)
    if result is None:
        raise ValueError("at least one tensor or number is needed")
    return result


def can_cast(source: dtype, target: dtype) -> bool:
    """Whether an in-place result of `source` may be written into `target`."""
    a, b = source.category, target.category
    return a <= b and not (a == INTEGER and b == BOOLEAN)


class finfo:
    """The limits of a floating dtype."""

    def __init__(self, type: dtype | None = None) -> None:
        kind = type or get_default_dtype()
        if kind.category < FLOATING:
            raise TypeError("torch.finfo() requires a floating point input type. Use iinfo for integers")
        if kind is bfloat16:
            import ml_dtypes
            info = ml_dtypes.finfo(kind.numpy)
        else:
            info = np.finfo(kind.numpy)
        self.bits = info.bits
        self.eps, self.max, self.min = float(info.eps), float(info.max), float(info.min)
        self.tiny = self.smallest_normal = float(info.tiny)
        self.resolution = float(info.resolution)
        self.dtype = kind.to_real().name

    def __repr__(self) -> str:
        return (f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, eps={self.eps:g}, "
                f"smallest_normal={self.smallest_normal:g}, tiny={self.tiny:g}, dtype={self.dtype})")


class iinfo:
    """The limits of an integer dtype."""

    def __init__(self, type: dtype) -> None:
        if type.category != INTEGER:
            raise TypeError("torch.iinfo() requires an integer input type. Use finfo for floats")
        info = np.iinfo(type.numpy)
        self.bits, self.max, self.min, self.dtype = info.bits, int(info.max), int(info.min), type.name

    def __repr__(self) -> str:
        return f"iinfo(min={self.min}, max={self.max}, dtype={self.dtype})"
