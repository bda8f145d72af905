"""Activations as modules."""

from __future__ import annotations

from typing import Any

import rushlight

from ..ops.table import TENSORS
from ..tensor import Tensor
from . import functional as F
from .module import Module
from .parameter import Parameter


class _Activation(Module):
    """An activation without options, or whose options are listed in ``_options`` in the order of its signature."""

    _options: tuple[tuple[str, Any], ...] = ()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()
        if len(args) > len(self._options) or kwargs.keys() - {name for name, _ in self._options}:
            raise TypeError(
                f"{type(self).__name__}.__init__() got unexpected arguments; "
                f"it takes ({', '.join(name for name, _ in self._options)})"
            )
        for place, (name, default) in enumerate(self._options):
            if place < len(args) and name in kwargs:
                raise TypeError(f"{type(self).__name__}.__init__() got multiple values for argument '{name}'")
            setattr(self, name, args[place] if place < len(args) else kwargs.get(name, default))


class _InPlace(_Activation):
    """An activation that prints its other options, and ``inplace`` only when it is on."""

    inplace: bool

    def extra_repr(self) -> str:
        shown = [f"{name}={getattr(self, name)}" for name, _ in self._options if name != "inplace"]
        return ", ".join([*shown, "inplace=True"] if self.inplace else shown)


class ReLU(Module):
    """``max(0, x)``."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return TENSORS.relu_(input) if self.inplace else TENSORS.relu(input)

    def extra_repr(self) -> str:
        return "inplace=True" if self.inplace else ""


class LeakyReLU(_InPlace):
    """``x`` above zero, ``negative_slope * x`` below."""

    negative_slope: float
    _options = (("negative_slope", 0.01), ("inplace", False))

    def forward(self, input: Tensor) -> Tensor:
        return F.leaky_relu(input, self.negative_slope, self.inplace)


class RReLU(_InPlace):
    """Leaky relu whose slope is drawn anew in training."""

    lower: float
    upper: float
    _options = (("lower", 1.0 / 8), ("upper", 1.0 / 3), ("inplace", False))

    def forward(self, input: Tensor) -> Tensor:
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)


class ELU(_InPlace):
    """``x`` above zero, ``alpha * (exp(x) - 1)`` below."""

    alpha: float
    _options = (("alpha", 1.0), ("inplace", False))

    def forward(self, input: Tensor) -> Tensor:
        return F.elu(input, self.alpha, self.inplace)


class CELU(ELU):
    """ELU made smooth for every ``alpha``."""

    def forward(self, input: Tensor) -> Tensor:
        return F.celu(input, self.alpha, self.inplace)


class SELU(_InPlace):
    """ELU scaled so that activations keep mean 0 and variance 1."""

    _options = (("inplace", False),)

    def forward(self, input: Tensor) -> Tensor:
        return F.selu(input, self.inplace)


class SiLU(_InPlace):
    """``x * sigmoid(x)``."""

    _options = (("inplace", False),)

    def forward(self, input: Tensor) -> Tensor:
        return F.silu(input, self.inplace)


class Mish(_InPlace):
    """``x * tanh(softplus(x))``."""

    _options = (("inplace", False),)

    def forward(self, input: Tensor) -> Tensor:
        return F.mish(input, self.inplace)


class Hardswish(_InPlace):
    """``x * relu6(x + 3) / 6``."""

    _options = (("inplace", False),)

    def extra_repr(self) -> str:
        return ""

    def forward(self, input: Tensor) -> Tensor:
        return F.hardswish(input, self.inplace)


class Hardsigmoid(Hardswish):
    """``relu6(x + 3) / 6``."""

    def forward(self, input: Tensor) -> Tensor:
        return F.hardsigmoid(input, self.inplace)


class Hardtanh(_InPlace):
    """Clamped to ``[min_val, max_val]``."""

    min_val: float
    max_val: float
    _options = (("min_val", -1.0), ("max_val", 1.0), ("inplace", False))

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        for old, new in (("min_value", "min_val"), ("max_value", "max_val")):
            value = kwargs.pop(old, None)
            if value is not None:
                kwargs[new] = value
        super().__init__(*args, **kwargs)
        if not self.max_val > self.min_val:
            raise AssertionError("max_val must be larger than min_val")

    def forward(self, input: Tensor) -> Tensor:
        return F.hardtanh(input, self.min_val, self.max_val, self.inplace)


class ReLU6(Hardtanh):
    """``min(max(0, x), 6)``."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(0.0, 6.0, inplace)

    def extra_repr(self) -> str:
        return "inplace=True" if self.inplace else ""


class Threshold(_InPlace):
    """``x`` above the threshold, ``value`` elsewhere."""

    threshold: float
    value: float

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        super().__init__(threshold, value, inplace)

    _options = (("threshold", None), ("value", None), ("inplace", False))

    def forward(self, input: Tensor) -> Tensor:
        return F.threshold(input, self.threshold, self.value, self.inplace)


class Tanh(_Activation):
    """The hyperbolic tangent."""

    def forward(self, input: Tensor) -> Tensor:
        return TENSORS.tanh(input)


class Sigmoid(_Activation):
    """``1 / (1 + exp(-x))``."""

    def forward(self, input: Tensor) -> Tensor:
        return TENSORS.sigmoid(input)


class LogSigmoid(_Activation):
    """The logarithm of the sigmoid."""

    def forward(self, input: Tensor) -> Tensor:
        return F.logsigmoid(input)


class Tanhshrink(_Activation):
    """``x - tanh(x)``."""

    def forward(self, input: Tensor) -> Tensor:
        return F.tanhshrink(input)


class Softsign(_Activation):
    """``x / (1 + |x|)``."""

    def forward(self, input: Tensor) -> Tensor:
        return F.softsign(input)


class GELU(_Activation):
    """``x`` times the normal distribution function of ``x``."""

    approximate: str
    _options = (("approximate", "none"),)

    def forward(self, input: Tensor) -> Tensor:
        return F.gelu(input, approximate=self.approximate)

    def extra_repr(self) -> str:
        return f"approximate={self.approximate!r}"


class Softplus(_Activation):
    """``log(1 + exp(beta * x)) / beta``."""

    beta: float
    threshold: float
    _options = (("beta", 1.0), ("threshold", 20.0))

    def forward(self, input: Tensor) -> Tensor:
        return F.softplus(input, self.beta, self.threshold)

    def extra_repr(self) -> str:
        return f"beta={self.beta}, threshold={self.threshold}"


class Hardshrink(_Activation):
    """Zero between ``-lambd`` and ``lambd``."""

    lambd: float
    _options = (("lambd", 0.5),)

    def forward(self, input: Tensor) -> Tensor:
        return F.hardshrink(input, self.lambd)

    def extra_repr(self) -> str:
        return f"{self.lambd}"


class Softshrink(Hardshrink):
    """Moved towards zero by ``lambd``."""

    def forward(self, input: Tensor) -> Tensor:
        return F.softshrink(input, self.lambd)


class GLU(_Activation):
    """The first half times the sigmoid of the second."""

    dim: int
    _options = (("dim", -1),)

    def forward(self, input: Tensor) -> Tensor:
        return F.glu(input, self.dim)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class Softmax(_Activation):
    """Exponentials that sum to one along ``dim``."""

    dim: int | None
    _options = (("dim", None),)

    def forward(self, input: Tensor) -> Tensor:
        return F.softmax(input, self.dim)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class Softmin(Softmax):
    """The softmax of ``-x``."""

    def forward(self, input: Tensor) -> Tensor:
        return F.softmin(input, self.dim)


class LogSoftmax(Softmax):
    """The logarithm of the softmax."""

    def forward(self, input: Tensor) -> Tensor:
        return F.log_softmax(input, self.dim)


class Softmax2d(_Activation):
    """The softmax over the channels of images."""

    def forward(self, input: Tensor) -> Tensor:
        if input.dim() not in (3, 4):
            raise ValueError(f"Softmax2d: expected input to be 3D or 4D, got {input.dim()}D instead")
        return F.softmax(input, -3)


class PReLU(Module):
    """Leaky relu whose slope is learnt, one or one per channel."""

    def __init__(self, num_parameters: int = 1, init: float = 0.25, device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        self.num_parameters = num_parameters
        self.init = init
        self.weight = Parameter(rushlight.full((num_parameters,), float(init), device=device, dtype=dtype))

    def reset_parameters(self) -> None:
        with rushlight.no_grad():
            self.weight.fill_(self.init)

    def forward(self, input: Tensor) -> Tensor:
        return F.prelu(input, self.weight)

    def extra_repr(self) -> str:
        return f"num_parameters={self.num_parameters}"
