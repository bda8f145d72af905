"""Weight normalisation: a weight as a direction times a length."""

from __future__ import annotations

import warnings
from typing import Any

from ...tensor import Tensor
from ..parameter import Parameter


def _length(direction: Tensor, dim: int | None) -> Tensor:
    """The norm over all dimensions but ``dim``, kept for broadcasting; over all where ``dim`` is None."""
    if dim is None:
        return (direction * direction).sum().sqrt()
    others = [other for other in range(direction.dim()) if other != dim % direction.dim()]
    return (direction * direction).sum(others, keepdim=True).sqrt()


class WeightNorm:
    """The hook that computes the weight from its two parts before every forward pass."""

    def __init__(self, name: str, dim: int | None) -> None:
        self.name = name
        self.dim = dim

    def compute_weight(self, module: Any) -> Tensor:
        direction = getattr(module, self.name + "_v")
        return direction * (getattr(module, self.name + "_g") / _length(direction, self.dim))

    def __call__(self, module: Any, inputs: Any) -> None:
        setattr(module, self.name, self.compute_weight(module))


def weight_norm(module: Any, name: str = "weight", dim: int | None = 0) -> Any:
    """Replace the parameter ``name`` by ``name_g`` (length) and ``name_v`` (direction)."""
    warnings.warn("`torch.nn.utils.weight_norm` is deprecated.", FutureWarning, stacklevel=2)
    for hook in module._forward_pre_hooks.values():
        if isinstance(hook, WeightNorm) and hook.name == name:
            raise RuntimeError(f"Cannot register two weight_norm hooks on the same parameter {name}")
    hook = WeightNorm(name, dim)
    weight = getattr(module, name)
    del module._parameters[name]
    module.register_parameter(name + "_g", Parameter(_length(weight.detach(), dim)))
    module.register_parameter(name + "_v", Parameter(weight.detach()))
    setattr(module, name, hook.compute_weight(module))
    module.register_forward_pre_hook(hook)
    return module


def remove_weight_norm(module: Any, name: str = "weight") -> Any:
    """Make the weight one parameter again."""
    for number, hook in module._forward_pre_hooks.items():
        if isinstance(hook, WeightNorm) and hook.name == name:
            weight = hook.compute_weight(module).detach()
            delattr(module, name)
            del module._parameters[name + "_g"], module._parameters[name + "_v"]
            setattr(module, name, Parameter(weight))
            del module._forward_pre_hooks[number]
            return module
    raise ValueError(f"weight_norm of '{name}' not found in {module}")
