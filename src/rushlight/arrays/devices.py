"""Where a tensor lives: the `device` value type, and the check that it is one Rushlight can use (the CPU)."""

from __future__ import annotations

import operator
import re
from typing import Any, NoReturn

DEVICE_TYPES = (
    "cpu", "cuda", "ipu", "xpu", "mkldnn", "opengl", "opencl", "ideep", "hip", "ve", "fpga", "maia", "xla", "lazy",
    "vulkan", "mps", "meta", "hpu", "mtia", "privateuseone",
)  # fmt: skip
LARGEST_INDEX = 127  # PyTorch keeps the index in a signed byte and wraps beyond it; here beyond it is an error

_DEVICE_STRING = re.compile(r"([a-zA-Z_]+)(?::(0|[1-9][0-9]*))?")


def _parse(text: str) -> tuple[str, int | None]:
    if not text:
        raise RuntimeError("Device string must not be empty")
    match = _DEVICE_STRING.fullmatch(text)
    if match is None:
        raise RuntimeError(f"Invalid device string: '{text}'")
    name, index = match.groups()
    if name not in DEVICE_TYPES:
        raise RuntimeError(
            f"Expected one of {', '.join(DEVICE_TYPES)} device type at start of device string: {text}"
        )
    if index is None:
        return name, None
    if len(index) > 3 or int(index) > LARGEST_INDEX:
        raise RuntimeError(
            f"Could not parse device index '{index}' in device string '{text}': the largest is {LARGEST_INDEX}"
        )
    return name, int(index)


def _is_integer(value: object) -> bool:
    # PyTorch takes Python and NumPy integers as an index, and refuses bool
    return hasattr(value, "__index__") and not isinstance(value, bool)


def _checked_index(value: Any) -> int:
    if not _is_integer(value):
        _refuse_type("device(): argument 'index' (position 2) must be int, not ", value)
    index = operator.index(value)
    if index < 0:
        raise RuntimeError("Device index must not be negative")
    if index > LARGEST_INDEX:
        raise RuntimeError(f"Device index must not exceed {LARGEST_INDEX}, got {index}")
    return index


def _refuse_type(opening: str, value: object) -> NoReturn:
    raise TypeError(opening + type(value).__name__)


class device:
    """A device type with an optional index: device("cpu"), device("cuda:0"), device("cuda", 1). Immutable.

    Any device PyTorch can name can be named; only the CPU can be used (see require_cpu). As a context manager it
    sets the default device, which for the CPU changes nothing.
    """

    __slots__ = ("_type", "_index")
    _type: str
    _index: int | None

    def __init__(self, type: str | device | int | None = None, index: int | None = None, *, device: Any = None) -> None:
        source = type if device is None else device
        if index is not None:
            if not isinstance(source, str):
                _refuse_type("device(): argument 'type' (position 1) must be str, not ", source)
            self._type, own_index = _parse(source)
            if own_index is not None:
                raise RuntimeError(
                    f"type (string) must not include an index because index was passed explicitly: {source}"
                )
            self._index = _checked_index(index)
        elif isinstance(source, str):
            self._type, self._index = _parse(source)
        elif isinstance(source, _device_class):
            self._type, self._index = source._type, source._index
        elif _is_integer(source):
            _checked_index(source)
            raise RuntimeError(
                "Cannot access accelerator device when none is available. A bare index means an accelerator, and "
                "Rushlight runs on the CPU only: write device('cpu')."
            )
        else:
            _refuse_type("device() received an invalid combination of arguments: expected str or device, got ", source)

    def __init_subclass__(cls) -> None:
        raise TypeError("type 'device' is not an acceptable base type")

    @property
    def index(self) -> int | None:
        return self._index

    @property
    def type(self) -> str:
        return self._type

    def __repr__(self) -> str:
        index = "" if self._index is None else f", index={self._index}"
        return f"device(type='{self._type}'{index})"

    def __str__(self) -> str:
        return self._type if self._index is None else f"{self._type}:{self._index}"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, device):
            return NotImplemented
        return self._type == other._type and self._index == other._index

    def __hash__(self) -> int:
        return hash((self._type, self._index))

    def __reduce__(self) -> tuple[Any, ...]:
        return device, (self._type,) if self._index is None else (self._type, self._index)

    def __enter__(self) -> device:
        require_cpu(self)
        return self

    def __exit__(self, *exception: object) -> None:
        return None


_device_class = device  # the class under a name that device's own parameter `device` does not hide

CPU = device("cpu")


def require_cpu(device_like: Any) -> device:
    """The device a tensor gets from a `device=` argument: always the CPU, else an error that says so.

    None means the default device. As in PyTorch an index on the CPU is dropped, and the exception is an
    AssertionError for CUDA and a NotImplementedError (which is a RuntimeError) for the rest.
    """
    if device_like is None or device_like is CPU:
        return CPU
    if isinstance(device_like, device):
        asked = device_like
    elif isinstance(device_like, str) or _is_integer(device_like):
        asked = device(device_like)
    else:
        _refuse_type("argument 'device' must be torch.device, not ", device_like)
    if asked.type == "cpu":
        return CPU
    message = f"Rushlight runs on the CPU only, and was asked for device '{asked}': use device='cpu' or leave it out."
    if asked.type == "cuda":
        raise AssertionError(message)
    raise NotImplementedError(message)
