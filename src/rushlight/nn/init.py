"""Filling tensors with starting values: the same formulas and draws as torch.nn.init."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from ..arrays import random
from ..tensor import Tensor, wrap


def _without_grad() -> Any:
    import rushlight

    return rushlight.no_grad()


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """The recommended gain for a nonlinearity."""
    if nonlinearity in (
        "linear", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "sigmoid",
    ):  # fmt: skip
        return 1
    if nonlinearity == "tanh":
        return 5.0 / 3
    if nonlinearity == "relu":
        return math.sqrt(2.0)
    if nonlinearity == "leaky_relu":
        if param is None:
            slope = 0.01
        elif isinstance(param, (int, float)) and not isinstance(param, bool):
            slope = param
        else:
            raise ValueError(f"negative_slope {param} not a valid number")
        return math.sqrt(2.0 / (1 + slope**2))
    if nonlinearity == "selu":
        return 3.0 / 4
    raise ValueError(f"Unsupported nonlinearity {nonlinearity}")


def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Any = None) -> Tensor:
    with _without_grad():
        return tensor.uniform_(a, b, generator=generator)


def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Any = None) -> Tensor:
    with _without_grad():
        return tensor.normal_(mean, std, generator=generator)


def trunc_normal_(
    tensor: Tensor, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0, generator: Any = None
) -> Tensor:
    """Normal values cut to [a, b]: drawn for the whole tensor until every element has had one that is accepted."""
    if not a - 2 * std <= mean <= b + 2 * std:
        warnings.warn(
            f"mean is more than 2 std from [a, b] in nn.init.trunc_normal_: mean {mean}, std {std}, [{a}, {b}]. Hardly any "
            "normal value falls in there.",
            stacklevel=2,
        )
    values = np.empty(tensor.shape, tensor._array.dtype)
    refused = np.ones(tensor.shape, bool)
    accepted = math.erf((b - mean) / (std * math.sqrt(2))) - math.erf((a - mean) / (std * math.sqrt(2)))
    propose = _propose_normal if accepted > 0.6 else _propose_uniform
    while refused.any():
        proposed, bad = propose(generator, values, mean, std, a, b)
        np.copyto(values, proposed, where=refused)
        refused &= bad
    with _without_grad():
        return tensor.copy_(wrap(values))


def _propose_normal(generator: Any, like: np.ndarray, mean: float, std: float, a: float, b: float) -> tuple:
    """Normal values, refused outside of [a, b]; the bounds are compared as the dtype has them."""
    proposed = random.normal(generator, like.shape, like.dtype, mean, std)
    return proposed, (proposed < like.dtype.type(a)) | (proposed > like.dtype.type(b))


def _propose_uniform(generator: Any, like: np.ndarray, mean: float, std: float, a: float, b: float) -> tuple:
    """Uniform values, kept with a probability in proportion to the normal density: for a thin slice of it."""
    proposed = random.uniform(generator, like.shape, like.dtype, a, b)
    nearest = (min(max(mean, a), b) - mean) / std
    surplus = ((proposed - mean) / std) ** 2 * -0.5 + nearest**2 * 0.5
    with np.errstate(divide="ignore"):
        return proposed, np.log(random.uniform(generator, like.shape, like.dtype)) > surplus


def constant_(tensor: Tensor, val: float) -> Tensor:
    with _without_grad():
        return tensor.fill_(val)


def ones_(tensor: Tensor) -> Tensor:
    return constant_(tensor, 1.0)


def zeros_(tensor: Tensor) -> Tensor:
    with _without_grad():
        return tensor.zero_()


def eye_(tensor: Tensor) -> Tensor:
    """The identity matrix."""
    if tensor.ndimension() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    with _without_grad():
        tensor.zero_()
        for place in range(min(tensor.shape)):
            tensor[place, place] = 1
    return tensor


def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """A convolution kernel that passes its input channels through."""
    dimensions = tensor.ndimension()
    if dimensions not in (3, 4, 5):
        raise ValueError("Only tensors with 3, 4, or 5 dimensions are supported")
    sizes = tensor.size()
    if sizes[0] % groups != 0:
        raise ValueError("dim 0 must be divisible by groups")
    per_group = sizes[0] // groups
    middle = tuple(size // 2 for size in sizes[2:])
    with _without_grad():
        tensor.zero_()
        for group in range(groups):
            for channel in range(min(per_group, sizes[1])):
                tensor[(group * per_group + channel, channel, *middle)] = 1
    return tensor


def _calculate_fan_in_and_fan_out(tensor: Tensor) -> tuple[int, int]:
    if tensor.dim() < 2:
        raise ValueError("Fan in and fan out can not be computed for tensor with fewer than 2 dimensions")
    field = math.prod(tensor.shape[2:])
    return tensor.size(1) * field, tensor.size(0) * field


def _calculate_correct_fan(tensor: Tensor, mode: str) -> int:
    mode = mode.lower()
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f"Mode {mode} not supported, please use one of ['fan_in', 'fan_out']")
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    return fan_in if mode == "fan_in" else fan_out


def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    std = gain * math.sqrt(2.0 / float(fan_in + fan_out))
    bound = math.sqrt(3.0) * std
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    return normal_(tensor, 0.0, gain * math.sqrt(2.0 / float(fan_in + fan_out)), generator)


def kaiming_uniform_(
    tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", generator: Any = None
) -> Tensor:
    if 0 in tensor.shape:
        warnings.warn("Initializing zero-element tensors is a no-op", stacklevel=2)
        return tensor
    std = calculate_gain(nonlinearity, a) / math.sqrt(_calculate_correct_fan(tensor, mode))
    bound = math.sqrt(3.0) * std
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", generator: Any = None
) -> Tensor:
    if 0 in tensor.shape:
        warnings.warn("Initializing zero-element tensors is a no-op", stacklevel=2)
        return tensor
    std = calculate_gain(nonlinearity, a) / math.sqrt(_calculate_correct_fan(tensor, mode))
    return normal_(tensor, 0, std, generator)


def orthogonal_(tensor: Tensor, gain: float = 1, generator: Any = None) -> Tensor:
    """A (semi-)orthogonal matrix; dimensions after the first count as one."""
    import rushlight

    if tensor.ndimension() < 2:
        raise ValueError("Only tensors with 2 or more dimensions are supported")
    if tensor.numel() == 0:
        return tensor
    rows = tensor.size(0)
    columns = tensor.numel() // rows
    with _without_grad():
        flat = tensor.new_empty((rows, columns)).normal_(0, 1, generator=generator)
        if rows < columns:
            flat = flat.t()
        q, r = rushlight.linalg.qr(flat)
        # The signs of R's diagonal make the distribution uniform over the orthogonal group.
        q = q * rushlight.diag(r).sign()
        if rows < columns:
            q = q.t()
        tensor.view_as(q).copy_(q)
        tensor.mul_(gain)
    return tensor


def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01, generator: Any = None) -> Tensor:
    """Normal values of which a fraction in every column is zero."""
    import rushlight

    if tensor.ndimension() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    rows, columns = tensor.shape
    zeros = math.ceil(sparsity * rows)
    with _without_grad():
        tensor.normal_(0, std, generator=generator)
        for column in range(columns):
            order = rushlight.randperm(rows)
            tensor[order[:zeros], column] = 0
    return tensor


def _deprecated(current: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """The old name of an initialiser, without the underscore: warns and does the same."""
    new_name = current.__name__
    old_name = new_name[:-1]

    def old(*args: Any, **kwargs: Any) -> Tensor:
        warnings.warn(
            f"`nn.init.{old_name}` is now deprecated in favor of `nn.init.{new_name}`.", FutureWarning, stacklevel=2
        )
        return current(*args, **kwargs)

    old.__name__ = old_name
    return old


uniform = _deprecated(uniform_)
normal = _deprecated(normal_)
constant = _deprecated(constant_)
eye = _deprecated(eye_)
dirac = _deprecated(dirac_)
xavier_uniform = _deprecated(xavier_uniform_)
xavier_normal = _deprecated(xavier_normal_)
kaiming_uniform = _deprecated(kaiming_uniform_)
kaiming_normal = _deprecated(kaiming_normal_)
orthogonal = _deprecated(orthogonal_)
sparse = _deprecated(sparse_)
