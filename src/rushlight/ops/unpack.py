"""Takes saved values out of a node again, with the checks that keep a gradient from being silently wrong."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..graph.errors import detached_error, freed_error, modified_error
from ..graph.node import EXTRA, LEAF, ORDER, SAVED, SPEC, BackwardCall, Output
from ..tensor import Tensor, wrap

_TYPE_NAMES = {"float32": "Float", "float64": "Double", "float16": "Half", "bfloat16": "BFloat16", "int64": "Long",
               "int32": "Int", "int16": "Short", "int8": "Char", "uint8": "Byte", "bool": "Bool",
               "complex64": "ComplexFloat", "complex128": "ComplexDouble"}


def type_name(dtype_name: str) -> str:
    """PyTorch's name for a dtype in messages: Float, Long, ..."""
    return _TYPE_NAMES.get(dtype_name, dtype_name)


def describe(tensor: Tensor, node: Any) -> str:
    """The tensor as the in-place error names it."""
    text = f"[torch.{type_name(tensor.dtype.name)}Tensor {list(tensor._shape)}]"
    if node is not None and node is not LEAF:
        number = node.number if node.__class__ is Output else 0
        owner = node.node if node.__class__ is Output else node
        name = owner[SPEC].node_name(owner)
        short = name.rsplit("Backward", 1)[0]
        text += f", which is output {number} of {short},"
    return text


def check_saved(node: list, tensor: Tensor) -> Tensor:
    """The saved tensor, or the error that says it was written over or detached since."""
    family = tensor._family
    if family is not None and family.written < node[ORDER]:
        if tensor._detached < node[ORDER]:
            raise detached_error(node)
        expected = family.version_at(node[ORDER])
        if expected != family.version:
            raise modified_error(node, describe(tensor, tensor._node), family.version, expected)
    return tensor


class Packed:
    """A saved value that went through saved_tensors_hooks."""

    __slots__ = ("history", "output", "unpack", "value")

    def __init__(self, value: Any, unpack: Callable, output: int | None, history: Any = None) -> None:
        self.value = value
        self.unpack = unpack
        self.output = output  # the number of the output it is, if it is one
        self.history = history  # otherwise where its gradient goes: what hooks give back has it again

    def restore(self) -> Tensor:
        """What the unpack hook gives, in its place of the graph; an output's place is for the caller to give."""
        unpacked = self.unpack(self.value)
        if not isinstance(unpacked, Tensor):
            raise TypeError("Output of saved tensor unpack_hook expected to be a Tensor but got result of type "
                            f"{type(unpacked).__name__}")
        history = self.history
        if history is None or unpacked is history or unpacked._node is history or self.output is not None:
            return unpacked
        tensor = wrap(unpacked._array)
        if isinstance(history, Tensor):  # a leaf: what arrives goes on to it
            from .inplace import alias_node
            tensor._node = alias_node(history)
        else:
            tensor._node = history
        return tensor


def output_tensor(node: list, array: np.ndarray, number: int) -> Tensor:
    """A saved output as a tensor with its history again."""
    tensor = wrap(array)
    tensor._node = node if node[SPEC].op.outputs == 1 else Output(node, number)
    extra = node[EXTRA]
    if extra is not None and extra.tangents is not None and number in extra.tangents:
        tensor._tangent = extra.tangents[number]
    return tensor


def unpack_tensor(node: list, index: int) -> Any:
    """Saved value number `index` as a tensor (or the list or number that it is), unless it was freed."""
    saved = node[SAVED]
    if saved.__class__ is BackwardCall:
        raise freed_error(node)
    return unpack_value(node, saved, index)


def unpack_value(node: list, saved: Any, index: int) -> Any:
    """The same, from `saved`, which the caller has taken out of the node."""
    value = saved[index] if saved.__class__ is tuple else saved
    if value.__class__ is Packed:
        return _unpack_hooked(node, value)
    if isinstance(value, Tensor):
        return check_saved(node, value)
    if value.__class__ is list:
        return [_unpack_hooked(node, one) if one.__class__ is Packed else check_saved(node, one) if isinstance(one, Tensor)
                else wrap(one) for one in value]
    if value.__class__ is np.ndarray:
        name = node[SPEC].saved_names[index]
        if name.startswith("result"):
            check_output(node)
            return output_tensor(node, value, int(name[6:] or 0))
        return wrap(value)
    return value


def _unpack_hooked(node: list, packed: Packed) -> Tensor:
    unpacked = packed.restore()
    return unpacked if packed.output is None else output_tensor(node, unpacked._array, packed.output)


def check_output(node: list) -> None:
    """Raise if the node's saved output was written over."""
    extra = node[EXTRA]
    if extra is not None and extra.outdated is not None and not getattr(node[SPEC], "packed", False):  # hooks keep their own
        family, expected, array = extra.outdated
        raise modified_error(node, describe(wrap(array), node), family.version, expected)
