"""From a list of samples to one batch: numbers and arrays become tensors, containers keep their form."""
from __future__ import annotations

import copy
from collections.abc import Mapping, MutableMapping, MutableSequence, Sequence
from typing import Any

import numpy as np

from ...arrays.dtypes import float64
from ...ops.joining import stack
from ...tensor import Tensor
from ...tensor.construct import as_tensor, tensor


def _rebuilt(sample: Any, parts: Any) -> Any:
    """A container like `sample` with other content, which is a dict for a mapping and a list for a sequence."""
    if isinstance(sample, tuple):
        return type(sample)(*parts) if hasattr(sample, "_fields") else parts  # PyTorch gives a list for a plain tuple
    try:
        if isinstance(sample, MutableMapping):
            clone: Any = copy.copy(sample)  # it may have attributes of its own
            clone.update(parts)
            return clone
        if isinstance(sample, MutableSequence):
            clone = copy.copy(sample)
            for place, part in enumerate(parts):
                clone[place] = part
            return clone
        return type(sample)(parts)  # type: ignore[call-arg]
    except TypeError:  # range, array.array and the like cannot hold the new content
        return parts


def _is_textual(array: np.ndarray) -> bool:
    return array.dtype.kind in "SUO"


def default_collate(batch: Sequence[Any]) -> Any:
    """One batch of a list of samples."""
    first = batch[0]
    if isinstance(first, Tensor):
        return stack(tuple(batch), 0)
    if isinstance(first, np.ndarray) and first.shape:
        if _is_textual(first):
            raise _not_collatable(first.dtype)
        return stack([as_tensor(array) for array in batch], 0)
    if isinstance(first, (str, bytes)):
        return batch
    if isinstance(first, float) and not isinstance(first, np.generic):
        return tensor(batch, dtype=float64)
    if isinstance(first, (int, np.ndarray, np.bool_, np.number)):
        return as_tensor(np.asarray(batch)) if isinstance(first, (np.ndarray, np.generic)) else tensor(batch)
    if isinstance(first, Mapping):
        return _rebuilt(first, {key: default_collate([sample[key] for sample in batch]) for key in first})
    if isinstance(first, Sequence):
        if not hasattr(first, "_fields") and any(len(sample) != len(first) for sample in batch):
            raise RuntimeError("each element in list of batch should be of equal size")
        return _rebuilt(first, [default_collate(column) for column in zip(*batch)])
    raise _not_collatable(type(first))


def _not_collatable(kind: object) -> TypeError:
    return TypeError(f"default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {kind}")


def default_convert(data: Any) -> Any:
    """NumPy arrays, wherever they are in a sample, as tensors."""
    if isinstance(data, (Tensor, str, bytes)):
        return data
    if isinstance(data, (np.ndarray, np.generic)):
        return data if isinstance(data, np.ndarray) and _is_textual(data) else as_tensor(np.asarray(data))
    if isinstance(data, Mapping):
        return _rebuilt(data, {key: default_convert(value) for key, value in data.items()})
    if isinstance(data, Sequence):
        return _rebuilt(data, [default_convert(value) for value in data])
    return data
