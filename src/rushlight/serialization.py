"""torch.save and torch.load, in PyTorch's own file format: a file saved here loads there, and the other way round.

The file is a zip archive: `data.pkl` holds everything but the numbers of the tensors, which lie beside it as raw bytes,
one entry per memory. Tensors that share memory share an entry, and share memory again when loaded. As in PyTorch a view
therefore brings the whole memory it looks into along: save view.clone() to save only the view.
"""
from __future__ import annotations

import io
import math
import os
import pickle
import sys
import zipfile
import zlib
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import numpy as np

from .arrays import dtypes
from .arrays.devices import device as Device
from .graph.node import LEAF
from .tensor import Parameter, Size, Tensor, wrap

_STORAGES = {"float16": "HalfStorage", "bfloat16": "BFloat16Storage", "float32": "FloatStorage", "float64": "DoubleStorage",
             "complex64": "ComplexFloatStorage", "complex128": "ComplexDoubleStorage", "int8": "CharStorage",
             "int16": "ShortStorage", "int32": "IntStorage", "int64": "LongStorage", "uint8": "ByteStorage",
             "bool": "BoolStorage"}  # fmt: skip
_LEGACY_MAGIC = b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19."  # how files of before PyTorch 1.6 begin
_SAFE: dict[str, Any] = {}  # what add_safe_globals() allowed, by its full name


# Python's own pickle in Python: the C one insists that names can be imported, and cannot be kept from setting attributes.
_PythonPickler: Any = pickle._Pickler  # type: ignore[attr-defined]
_PythonUnpickler: Any = pickle._Unpickler  # type: ignore[attr-defined]


# -- saving ---------------------------------------------------------------------------------------------------------
class _Global:
    """A name of PyTorch's that a pickle refers to. It need not be importable here."""

    def __init__(self, module: str, name: str) -> None:
        self.module, self.name = module, name

    def __call__(self, *args: Any) -> NoReturn:  # pickle insists that what rebuilds an object can be called
        raise TypeError(f"{self.module}.{self.name} only stands for a name in a file")


_TENSOR_2 = _Global("torch._utils", "_rebuild_tensor_v2")
_TENSOR_3 = _Global("torch._utils", "_rebuild_tensor_v3")
_PARAMETER = _Global("torch._utils", "_rebuild_parameter")
_PARAMETER_WITH_STATE = _Global("torch._utils", "_rebuild_parameter_with_state")
_WITH_STATE = _Global("torch._tensor", "_rebuild_from_type_v2")
_TENSOR = _Global("torch", "Tensor")
_UNTYPED = _Global("torch.storage", "UntypedStorage")
_SIZE = _Global("torch", "Size")
_DEVICE = _Global("torch", "device")
_TYPED = {name: _Global("torch", storage) for name, storage in _STORAGES.items()}


class _Memory:
    """The memory of one or more tensors, as an entry of the archive."""

    def __init__(self, key: str, owner: np.ndarray, dtype: dtypes.dtype) -> None:
        self.key, self.owner, self.dtype = key, owner, dtype


class _Pickler(_PythonPickler):
    def __init__(self, file: Any, protocol: int) -> None:
        super().__init__(file, protocol)
        self.memories: dict[tuple[int, str], _Memory] = {}
        from .nn.module_state import _StateDict
        self.state_dict_class = _StateDict

    def persistent_id(self, obj: Any) -> Any:
        if obj.__class__ is not _Memory:
            return None
        typed = _TYPED.get(obj.dtype.name)
        return "storage", typed or _UNTYPED, obj.key, "cpu", obj.owner.size if typed else obj.owner.nbytes

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, Tensor) and obj.__class__ in (Tensor, Parameter):
            return self._reduce_tensor(obj)
        kind = obj.__class__
        if kind is _Global or kind is dtypes.dtype:
            return obj.name
        if kind is Size:
            return _SIZE, (tuple(obj),)
        if kind is Device:
            return _DEVICE, obj.__reduce__()[1]
        if kind is self.state_dict_class:  # in the file, the OrderedDict that PyTorch knows
            return OrderedDict, (), obj.__dict__, None, iter(obj.items())
        return NotImplemented

    def save_global(self, obj: Any, name: str | None = None) -> None:
        if obj.__class__ is _Global or obj.__class__ is dtypes.dtype:
            module = obj.module if obj.__class__ is _Global else "torch"
            self.write(pickle.GLOBAL + f"{module}\n{obj.name}\n".encode())
            self.memoize(obj)
        else:
            super().save_global(obj, name)

    def _reduce_tensor(self, tensor: Tensor) -> tuple:
        dtype, array = tensor.dtype, tensor._array
        owner, offset = _memory_of(array)
        if owner is None:
            owner = array = np.array(array, order="C")
        memory = self.memories.setdefault((id(owner), dtype.name), _Memory(str(len(self.memories)), owner, dtype))
        strides = tuple(step // array.itemsize for step in array.strides)
        if not array.size:  # NumPy has zeros there; PyTorch goes on counting as if no dimension were empty
            strides = tuple(math.prod(max(1, size) for size in array.shape[dim + 1:]) for dim in range(array.ndim))
        is_parameter = tensor.__class__ is Parameter
        args: tuple = (memory, offset // array.itemsize, tuple(array.shape), strides,
                       tensor._node is not None and not is_parameter, OrderedDict())
        function, args = (_TENSOR_2, args) if dtype.name in _TYPED else (_TENSOR_3, (*args, dtype))
        state = {name: value for name, value in tensor.__dict__.items() if not name.startswith("_")}
        if is_parameter:
            args = _Reduced((function, args)), tensor.requires_grad, OrderedDict()
            return (_PARAMETER_WITH_STATE, (*args, state)) if state else (_PARAMETER, args)
        return (_WITH_STATE, (function, _TENSOR, args, state)) if state else (function, args)


class _Reduced:
    """Something that is pickled as the call that makes it."""

    def __init__(self, call: tuple) -> None:
        self.call = call

    def __reduce__(self) -> tuple:
        return self.call


def _memory_of(array: np.ndarray) -> tuple[np.ndarray | None, int]:
    """The array that owns the memory, and the offset into it in bytes; None if it cannot be written as one block."""
    owner = array
    while isinstance(owner.base, np.ndarray):
        owner = owner.base
    if (owner.dtype != array.dtype or not array.size or any(step < 0 or step % array.itemsize for step in array.strides)
            or not (owner.flags.c_contiguous or owner.flags.f_contiguous)):
        return None, 0
    offset = array.__array_interface__["data"][0] - owner.__array_interface__["data"][0]
    return (None, 0) if offset % array.itemsize else (owner, offset)


def save(obj: Any, f: Any, pickle_module: Any = pickle, pickle_protocol: int = 2,
         _use_new_zipfile_serialization: bool = True) -> None:
    """Write an object to a path or a file object. A path keeps its old content until the new one is complete."""
    if pickle_module is not pickle:
        raise NotImplementedError("save(pickle_module=...) is not supported: leave it out, or pickle the object with that "
                                  "module yourself.")
    if not _use_new_zipfile_serialization:
        raise NotImplementedError("the file format of before PyTorch 1.6 is not supported: leave out "
                                  "_use_new_zipfile_serialization=False.")
    if not isinstance(f, (str, os.PathLike)):
        if not hasattr(f, "write"):
            raise AttributeError(f"expected 'f' to be string, path, or a file-like object with a 'write' attribute, "
                                 f"not {type(f).__name__}")
        if isinstance(f, io.TextIOBase):
            raise TypeError("save() writes bytes: open the file in binary mode, open(path, 'wb')")
        _write(obj, f, pickle_protocol, "archive")
        return
    path = os.path.realpath(os.fspath(f))  # a link stays a link: what it leads to is replaced
    folder, name = os.path.split(path)
    if not os.path.isdir(folder):
        raise RuntimeError(f"Parent directory {folder} does not exist.")
    root = os.path.splitext(name)[0] or "archive"
    if os.path.exists(path) and not os.path.isfile(path):  # a pipe or a device: nothing there to replace
        with open(path, "wb") as file:
            _write(obj, file, pickle_protocol, root)
        return
    partial = os.path.join(folder, f".{name}.{os.getpid()}.partial")
    try:
        with open(partial, "wb") as file:
            _write(obj, file, pickle_protocol, root)
        if os.path.exists(path):
            os.chmod(partial, os.stat(path).st_mode & 0o7777)
        os.replace(partial, path)
    except BaseException:
        if os.path.exists(partial):
            os.unlink(partial)
        raise


def _write(obj: Any, file: Any, protocol: int, root: str) -> None:
    text = io.BytesIO()
    pickler = _Pickler(text, protocol)
    pickler.dump(obj)
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
        def put(name: str, data: Any) -> None:
            archive.writestr(zipfile.ZipInfo(f"{root}/{name}", (1980, 1, 1, 0, 0, 0)), data)

        put("data.pkl", text.getbuffer())
        put("byteorder", sys.byteorder.encode())
        for memory in pickler.memories.values():
            put(f"data/{memory.key}", memory.owner.ravel(order="K").view(np.uint8).data)
        put("version", b"3\n")


# -- loading --------------------------------------------------------------------------------------------------------
class _Storage:
    """The bytes of one memory as loaded. The dtype is None for an untyped one."""

    def __init__(self, data: np.ndarray, dtype: dtypes.dtype | None) -> None:
        self.data, self.dtype = data, dtype


def _rebuild_tensor(storage: _Storage, offset: int, size: Any, stride: Any, requires_grad: bool = False,
                    hooks: Any = None, metadata: Any = None, *, dtype: dtypes.dtype | None = None) -> Tensor:
    if storage.__class__ is not _Storage or (kind := dtype or storage.dtype) is None:
        raise pickle.UnpicklingError("corrupt file: a tensor without memory of its own dtype")
    if metadata:
        raise pickle.UnpicklingError("the file holds a lazily conjugated or negated tensor: save tensor.resolve_conj() or "
                                     "tensor.resolve_neg() in PyTorch")
    itemsize = kind.numpy.itemsize
    try:
        array = np.ndarray(tuple(size), kind.numpy, storage.data, int(offset) * itemsize, [int(s) * itemsize for s in stride])
    except (TypeError, ValueError) as error:
        raise RuntimeError(f"corrupt file: a tensor of size {size} and stride {stride} at offset {offset} does not lie within "
                           f"its memory of {storage.data.nbytes} bytes") from error
    made = wrap(array)
    if requires_grad:
        made._node = LEAF
    return made


def _rebuild_tensor_of_dtype(storage: _Storage, offset: int, size: Any, stride: Any, requires_grad: bool, hooks: Any,
                             dtype: dtypes.dtype, metadata: Any = None) -> Tensor:
    if dtype.__class__ is not dtypes.dtype:
        raise pickle.UnpicklingError(f"corrupt file: {dtype!r} is not a dtype")
    return _rebuild_tensor(storage, offset, size, stride, requires_grad, hooks, metadata, dtype=dtype)


def _rebuild_parameter(data: Tensor, requires_grad: bool, hooks: Any, state: Any = None) -> Parameter:
    return _with_attributes(Parameter(data, bool(requires_grad)), state)


def _rebuild_with_state(function: Any, kind: Any, args: Any, state: Any) -> Any:
    if kind is not _TENSOR or not isinstance(made := function(*args), Tensor):
        raise pickle.UnpicklingError("the file holds a subclass of PyTorch's Tensor, which Rushlight cannot rebuild")
    return _with_attributes(made, state)


def _with_attributes(made: Any, state: Any) -> Any:
    """Give a tensor the attributes its program had set; names that begin with an underscore are its own."""
    if isinstance(state, tuple):
        state = state[0]
    made.__dict__.update({name: value for name, value in (state or {}).items() if not name.startswith("_")})
    return made


def _encode(text: str, encoding: str) -> bytes:
    if encoding != "latin1":  # the one way in which pickle writes bytes in protocol 2
        raise pickle.UnpicklingError(f"bytes encoded as {encoding!r}")
    return text.encode("latin1")


_ALLOWED: dict[str, Any] = {
    "torch._utils._rebuild_tensor": _rebuild_tensor, "torch._utils._rebuild_tensor_v2": _rebuild_tensor,
    "torch._utils._rebuild_tensor_v3": _rebuild_tensor_of_dtype, "torch._utils._rebuild_parameter": _rebuild_parameter,
    "torch._utils._rebuild_parameter_with_state": _rebuild_parameter, "torch._tensor._rebuild_from_type_v2": _rebuild_with_state,
    "torch.Size": Size, "torch.device": Device, "torch.storage.UntypedStorage": _UNTYPED, "torch.Tensor": _TENSOR,
    "_codecs.encode": _encode, "collections.OrderedDict": OrderedDict, "collections.Counter": Counter,
    "builtins.set": set, "builtins.complex": complex, "builtins.bytearray": bytearray,
    **{f"torch.{one.name}": one for one in dtypes.ALL},
    **{f"torch.{one.name}": one for one in _TYPED.values()},
}
_DTYPE_OF = {_TYPED[name]: dtypes.by_name(name) for name in _TYPED}


class _Unpickler(_PythonUnpickler):
    dispatch = dict(_PythonUnpickler.dispatch)

    def __init__(self, file: Any, read_storage: Callable[..., _Storage], weights_only: bool) -> None:
        super().__init__(file, encoding="utf-8")
        self.read_storage, self.weights_only = read_storage, weights_only

    def find_class(self, module: str, name: str) -> Any:
        full = f"{'builtins' if module == '__builtin__' else module}.{name}"
        found = _ALLOWED.get(full) or _SAFE.get(full)
        if found is not None:
            return found
        if module.partition(".")[0] == "torch":
            raise pickle.UnpicklingError(
                f"the file holds {full}, an object of PyTorch's that Rushlight cannot rebuild. Save a state_dict() of plain "
                "tensors there, and load that.")
        if self.weights_only:
            raise pickle.UnpicklingError(
                f"Weights only load failed. The file holds {full}, which could run any code when loaded. If you trust the "
                f"file, load(..., weights_only=False), or allow that name with serialization.add_safe_globals([...]). "
                "Files with only tensors, numbers, text and containers of them (a state_dict) need neither.")
        return super().find_class(module, name)

    def persistent_load(self, pid: Any) -> _Storage:
        if not isinstance(pid, tuple) or len(pid) != 5 or pid[0] != "storage" or pid[1].__class__ is not _Global:
            raise pickle.UnpicklingError("corrupt file: not the description of a tensor's memory")
        return self.read_storage(*pid[1:])

    def load_build(self) -> None:
        """Give an object its state. Restricted, since a dtype or a function must not take any from a file."""
        made = self.stack[-2]
        if self.weights_only and made.__class__ not in (OrderedDict, Counter) and made.__class__ not in _SAFE.values():
            raise pickle.UnpicklingError(f"Weights only load failed. The file sets attributes of a {type(made).__name__}. "
                                         "If you trust the file, load(..., weights_only=False).")
        super().load_build()

    dispatch[pickle.BUILD[0]] = load_build


def load(f: Any, map_location: Any = None, pickle_module: Any = None, *, weights_only: bool | None = None,
         mmap: bool | None = None, **pickle_load_args: Any) -> Any:
    """Read what save() wrote, here or in PyTorch. Without weights_only=False only tensors, numbers, text and containers.

    mmap is accepted and makes no difference: the file is read.
    """
    if pickle_module is not None and pickle_module is not pickle:
        raise NotImplementedError("load(pickle_module=...) is not supported: leave it out.")
    if pickle_load_args:
        raise NotImplementedError(f"load({next(iter(pickle_load_args))}=...) is not supported: leave it out.")
    if not isinstance(f, (str, os.PathLike)):
        if not hasattr(f, "read"):
            raise AttributeError(f"expected 'f' to be string, path, or a file-like object with a 'read' attribute, "
                                 f"not {type(f).__name__}")
        if isinstance(f, io.TextIOBase):
            raise TypeError("load() reads bytes: open the file in binary mode, open(path, 'rb')")
        return _read(io.BytesIO(f.read()), map_location, weights_only is not False)
    with open(f, "rb") as file:
        return _read(file, map_location, weights_only is not False)


def _read(file: Any, map_location: Any, weights_only: bool) -> Any:
    opening = file.read(len(_LEGACY_MAGIC))
    file.seek(0)
    if not opening:
        raise EOFError("Ran out of input: the file is empty")
    if not opening.startswith(b"PK"):
        raise pickle.UnpicklingError(
            "Invalid magic number; corrupt file? " + (
                "It is in the format of before PyTorch 1.6: load it with PyTorch and save it again." if opening == _LEGACY_MAGIC
                else "It does not begin as a file of save() does. For a bare pickle use pickle.load."))
    with _naming_damage():
        archive = zipfile.ZipFile(file)
    with archive:
        return _read_archive(archive, map_location, weights_only)


@contextmanager
def _naming_damage() -> Iterator[None]:
    """zipfile has many words for a damaged archive: here they become PyTorch's."""
    try:
        yield
    except (zipfile.BadZipFile, EOFError, ValueError, OSError, RuntimeError, zlib.error) as error:
        raise RuntimeError("PytorchStreamReader failed reading zip archive: failed finding its content. The file is damaged "
                           f"or was not written to its end ({error}).") from error


def _entry(archive: zipfile.ZipFile, name: str) -> bytes:
    if name not in archive.NameToInfo:
        raise RuntimeError(f"corrupt file: there is no entry {name!r} in the archive")
    with _naming_damage():
        return archive.read(name)  # which compares the checksum


def _read_archive(archive: zipfile.ZipFile, map_location: Any, weights_only: bool) -> Any:
    names = set(archive.namelist())
    roots = [name[:-len("data.pkl")] for name in names if name.count("/") == 1 and name.endswith("/data.pkl")]
    if len(roots) != 1:
        raise RuntimeError("this zip archive is not a file of save(): it has no data.pkl")
    root = roots[0]
    if root + "constants.pkl" in names:
        raise RuntimeError("this is a TorchScript archive, which holds a program: load it with PyTorch and save its "
                           "state_dict().")
    order = _entry(archive, root + "byteorder").decode() if root + "byteorder" in names else "little"
    storages: dict[str, _Storage] = {}

    def read_storage(kind: _Global, key: str, location: str, count: int) -> _Storage:
        if key not in storages:
            dtype = _DTYPE_OF.get(kind)
            size = count * (1 if dtype is None else dtype.itemsize)
            data = np.frombuffer(bytearray(_entry(archive, f"{root}data/{key}")), np.uint8)
            if data.size < size:
                raise RuntimeError(f"corrupt file: memory {key} has {data.size} bytes where there must be {size}")
            if order != sys.byteorder and dtype is not None:
                data = data.view(dtype.numpy).byteswap().view(np.uint8)
            elif order != sys.byteorder:
                raise RuntimeError(f"untyped memory in {order}-endian order: load the file on a machine of that order")
            storages[key] = _Storage(data, dtype)
            _check_location(storages[key], location, map_location)
        return storages[key]

    text = io.BytesIO(_entry(archive, root + "data.pkl"))
    unpickler = _Unpickler(text, read_storage, weights_only)
    try:
        return unpickler.load()
    except (pickle.UnpicklingError, RuntimeError, MemoryError):
        raise
    except Exception as error:
        if not weights_only:
            raise
        raise pickle.UnpicklingError(f"Weights only load failed. The file's data.pkl is damaged or not of this kind: "
                                     f"{type(error).__name__}: {error}") from error


def _check_location(storage: _Storage, location: str, map_location: Any) -> None:
    """Raise unless this memory, saved from `location`, is to come to the CPU."""
    if isinstance(map_location, dict):
        location = str(map_location.get(location, location))
    elif isinstance(map_location, (str, Device)):
        location = str(Device(map_location))
    elif map_location is not None:
        mapped = map_location(storage, location)
        if mapped is not None and mapped is not storage:
            raise NotImplementedError("load(map_location=function): the function has to give back the storage as it is, which "
                                      "means the CPU, or None")
        location = "cpu" if mapped is storage else location
    if location.partition(":")[0] != "cpu":
        raise RuntimeError(f"Attempting to deserialize object on a {location.partition(':')[0].upper()} device but Rushlight "
                           "runs on the CPU only. Pass map_location='cpu' to load the tensors to the CPU.")


# -- what else may be in a file that is loaded with weights_only ----------------------------------------------------
def _full_name(item: Any) -> tuple[str, Any]:
    if isinstance(item, tuple):
        return item[1], item[0]
    return f"{item.__module__}.{item.__qualname__}", item


def add_safe_globals(safe_globals: list[Any]) -> None:
    """Allow these classes and functions, or pairs of one and its full name, in files loaded with weights_only."""
    _SAFE.update(_full_name(item) for item in safe_globals)


def get_safe_globals() -> list[Any]:
    return list(_SAFE.values())


def clear_safe_globals() -> None:
    _SAFE.clear()


@contextmanager
def safe_globals(safe_globals: list[Any]) -> Iterator[None]:
    """Allow these for the length of the block."""
    before = dict(_SAFE)
    add_safe_globals(safe_globals)
    try:
        yield
    finally:
        _SAFE.clear()
        _SAFE.update(before)


__all__ = ["add_safe_globals", "clear_safe_globals", "get_safe_globals", "load", "safe_globals", "save"]
