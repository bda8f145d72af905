"""Padding: constant, reflected, replicated and circular."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..tensor import Tensor
from .dimensions import sizes_of
from .scattering import add_at
from .table import TENSORS, operation

_PRIVATE = {"public": False, "method": False}


@operation(input=lambda F, g, pad: F.constant_pad_nd(g, tuple(-p for p in pad), 0), method=False)
def constant_pad_nd(input, pad, value=0):
    if len(pad) % 2:
        raise RuntimeError(f"Length of pad must be even but instead it equals {len(pad)}")
    if len(pad) // 2 > input.ndim:
        raise RuntimeError(
            "Length of pad should be no more than twice the number of dimensions of the input. Pad length is "
            f"{len(pad)} while the input has {input.ndim} dimensions."
        )
    shape, source, target = list(input.shape), [slice(None)] * input.ndim, [slice(None)] * input.ndim
    for i in range(len(pad) // 2):
        d = input.ndim - 1 - i
        before, after = pad[2 * i], pad[2 * i + 1]
        shape[d] += before + after
        if shape[d] < 0:
            raise RuntimeError(
                f"The input size {input.shape[d]}, plus negative padding {before} and {after}, resulted in a negative "
                "output size, which is invalid. Check dimension "
                f"{d} of your input."
            )
        source[d] = slice(max(-before, 0), input.shape[d] - max(-after, 0))
        target[d] = slice(max(before, 0), shape[d] - max(after, 0))
    made = np.full(shape, value, input.dtype)
    if made.size:
        made[tuple(target)] = input[tuple(source)]
    return made


def _sources(length: int, before: int, after: int, mode: str) -> np.ndarray:
    """For each place of a padded dimension, the place it is a copy of."""
    places = np.arange(-before, length + after)
    if mode == "replicate":
        return places.clip(0, max(length - 1, 0))
    if mode == "circular":  # where the padding is negative, what it leaves goes round
        left = places[(places >= 0) & (places < length)]
        return left[(places - max(-before, 0)) % len(left)]
    places = np.abs(places)
    return np.where(places >= length, 2 * (length - 1) - places, places)


def _pad_array(input: np.ndarray, pad: tuple, mode: str) -> np.ndarray:
    for i in range(len(pad) // 2):
        d = input.ndim - 1 - i
        if pad[2 * i] or pad[2 * i + 1]:
            input = input.take(_sources(input.shape[d], pad[2 * i], pad[2 * i + 1], mode), d)
    return input


_NAMES = {"reflect": "ReflectionPad", "replicate": "ReplicationPad", "circular": "CircularPad"}


def _node_name(kept: dict) -> str:
    return f"{_NAMES[kept['mode']]}{len(kept['pad']) // 2}DBackward0"


# PyTorch saves the input, though only its sizes are needed, so that backward cannot be run twice.
@operation(input="_pad_backward(g, input, pad, mode)", jvp="linear", name="_pad", node=_node_name, **_PRIVATE)
def pad_from_edge(input, pad, mode):
    return _pad_array(input, pad, mode)


@operation(
    tensors="input", grad_output="_pad(g, pad, mode)", jvp="linear",
    node=lambda kept: f"{_node_name(kept)[:-1]}Backward0", **_PRIVATE,
)  # fmt: skip
def _pad_backward(grad_output, input, pad, mode):
    shape = input.shape
    places = _pad_array(np.arange(input.size).reshape(shape), pad, mode)
    made = np.zeros(shape, grad_output.dtype)
    add_at(made.reshape(-1), places.reshape(-1), grad_output.reshape(-1))
    return made


def pad(input: Tensor, pad: Any, mode: str = "constant", value: Any = None) -> Tensor:
    """nn.functional.pad: sizes are given from the last dimension on, before and after each."""
    sizes = sizes_of((pad,))
    if len(sizes) % 2:
        raise RuntimeError("Padding length must be divisible by 2")
    if mode == "constant":
        return TENSORS.constant_pad_nd(input, sizes, 0 if value is None else value)
    if value is not None and value != 0:
        raise RuntimeError(f'Padding mode "{mode}" doesn\'t take in value argument')
    if mode not in ("reflect", "replicate", "circular"):
        raise NotImplementedError(f"Unrecognised padding mode {mode}")
    shape = input._shape
    count = len(sizes) // 2
    if count > 3 or len(shape) not in (count + 1, count + 2):
        raise NotImplementedError(f"Padding size {len(sizes)} is not supported for {len(shape)}D input tensor.")
    for i in range(count):
        d = len(shape) - 1 - i
        before, after, length = sizes[2 * i], sizes[2 * i + 1], shape[d]
        if mode == "reflect" and (before >= length or after >= length):
            raise RuntimeError(
                "Argument #4: Padding size should be less than the corresponding input dimension, but got: padding "
                f"({before}, {after}) at dimension {d} of input {list(shape)}"
            )
        if mode == "circular" and (before > length or after > length):
            raise RuntimeError("Padding value causes wrapping around more than once.")
        if length + before + after < 1:
            raise RuntimeError(f"input size {list(shape)} is too small for padding {list(sizes)}")
    return TENSORS._pad(input, sizes, mode)


vars(TENSORS)["pad"] = pad  # nn.functional has it; the package itself does not
