"""Methods that scale each element by its own history: RMSprop, Adagrad, Adadelta, Rprop; and averaged SGD."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ..tensor import Tensor, wrap
from .adam import add_quotient, adjusted_gradient, average, average_square, check_options, new_step, zeros_like
from .elementwise import ElementwiseOptimizer
from .optimizer import refuse


class RMSprop(ElementwiseOptimizer):
    """Divides by the root of a running average of squared gradients."""

    def __init__(
        self,
        params: Iterable[Any],
        lr: Any = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_options(lr, 0, eps)
        if not 0.0 <= momentum:
            raise ValueError(f"Invalid momentum value: {momentum}")
        check_options(lr, weight_decay)
        if not 0.0 <= alpha:
            raise ValueError(f"Invalid alpha value: {alpha}")
        refuse("capturable", capturable)
        refuse("differentiable", differentiable)
        defaults = dict(
            lr=lr, momentum=momentum, alpha=alpha, eps=eps, centered=centered, weight_decay=weight_decay,
            capturable=capturable, foreach=foreach, maximize=maximize, differentiable=differentiable,
        )  # fmt: skip
        super().__init__(params, defaults)

    def _state_names(self, group: dict[str, Any]) -> tuple[str, ...]:
        names: tuple[str, ...] = ("square_avg",)
        if group["momentum"] > 0:
            names += ("momentum_buffer",)
        return (*names, "grad_avg") if group["centered"] else names

    def _new_state(self, group: dict[str, Any], param: Tensor) -> dict[str, Any]:
        return {"step": new_step(), **{name: zeros_like(param) for name in self._state_names(group)}}

    def _numbers(self, group: dict[str, Any], step: float, state: dict[str, Any]) -> tuple[float, ...]:
        alpha = group["alpha"]
        return alpha, 1 - alpha, group["eps"], -float(group["lr"]), group["momentum"], group["weight_decay"]

    def _update(self, group: dict[str, Any], numbers: Any, value: Any, grad: Any, states: Any, scratch: Any) -> None:
        alpha, share, eps, factor, momentum, decay = numbers
        first, second = scratch
        grad = adjusted_gradient(group, decay, value, grad, scratch)
        square = states[0]
        average_square(square, grad, alpha, share, second)
        if group["centered"]:
            mean = states[-1]
            average(mean, grad, share, second)
            np.multiply(mean, mean, second)
            np.subtract(square, second, second)
            np.sqrt(second, second)
        else:
            np.sqrt(square, second)
        np.add(second, eps, second)
        if group["momentum"] > 0:
            buffer = states[1]
            np.multiply(buffer, momentum, buffer)
            np.divide(grad, second, first)
            np.add(buffer, first, buffer)
            np.multiply(buffer, factor, first)
            np.add(value, first, value)
        else:
            add_quotient(value, grad, second, factor, first)


class Adagrad(ElementwiseOptimizer):
    """Divides by the root of the sum of all squared gradients."""

    def __init__(
        self,
        params: Iterable[Any],
        lr: Any = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        check_options(lr, 0)
        if not 0.0 <= lr_decay:
            raise ValueError(f"Invalid lr_decay value: {lr_decay}")
        check_options(lr, weight_decay)
        if not 0.0 <= initial_accumulator_value:
            raise ValueError(f"Invalid initial_accumulator_value value: {initial_accumulator_value}")
        check_options(lr, weight_decay, eps)
        refuse("differentiable", differentiable)
        defaults = dict(
            lr=lr, lr_decay=lr_decay, eps=eps, weight_decay=weight_decay,
            initial_accumulator_value=initial_accumulator_value, foreach=foreach, maximize=maximize,
            differentiable=differentiable, fused=fused,
        )  # fmt: skip
        super().__init__(params, defaults)
        # This method's state exists before the first step.
        for group in self.param_groups:
            for param in group["params"]:
                self.state[param] = self._new_state(group, param)

    def _state_names(self, group: dict[str, Any]) -> tuple[str, ...]:
        return ("sum",)

    def _new_state(self, group: dict[str, Any], param: Tensor) -> dict[str, Any]:
        start = group["initial_accumulator_value"]
        if param._array.dtype.kind == "c":
            start = complex(start, start)
        return {"step": new_step(), "sum": wrap(np.full_like(param._array, start))}

    def _numbers(self, group: dict[str, Any], step: float, state: dict[str, Any]) -> tuple[float, ...]:
        rate = float(group["lr"]) / (1 + (step - 1) * group["lr_decay"])
        return group["eps"], -rate, group["weight_decay"]

    def _update(self, group: dict[str, Any], numbers: Any, value: Any, grad: Any, states: Any, scratch: Any) -> None:
        eps, factor, decay = numbers
        first, second = scratch
        grad = adjusted_gradient(group, decay, value, grad, scratch)
        (total,) = states
        np.multiply(grad, grad, second)
        np.add(total, second, total)
        np.sqrt(total, second)
        np.add(second, eps, second)
        add_quotient(value, grad, second, factor, first)


class Adadelta(ElementwiseOptimizer):
    """Scales by the ratio of past steps to past gradients."""

    def __init__(
        self,
        params: Iterable[Any],
        lr: Any = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_options(lr, 0)
        if not 0.0 <= rho <= 1.0:
            raise ValueError(f"Invalid rho value: {rho}")
        check_options(lr, weight_decay, eps)
        refuse("capturable", capturable)
        refuse("differentiable", differentiable)
        defaults = dict(
            lr=lr, rho=rho, eps=eps, weight_decay=weight_decay, maximize=maximize, capturable=capturable,
            foreach=foreach, differentiable=differentiable,
        )  # fmt: skip
        super().__init__(params, defaults)

    def _state_names(self, group: dict[str, Any]) -> tuple[str, ...]:
        return ("square_avg", "acc_delta")

    def _new_state(self, group: dict[str, Any], param: Tensor) -> dict[str, Any]:
        return {"step": new_step(), "square_avg": zeros_like(param), "acc_delta": zeros_like(param)}

    def _numbers(self, group: dict[str, Any], step: float, state: dict[str, Any]) -> tuple[float, ...]:
        return group["rho"], 1 - group["rho"], group["eps"], -float(group["lr"]), group["weight_decay"]

    def _update(self, group: dict[str, Any], numbers: Any, value: Any, grad: Any, states: Any, scratch: Any) -> None:
        rho, share, eps, factor, decay = numbers
        second = scratch[1]
        grad = adjusted_gradient(group, decay, value, grad, scratch)
        square, past = states
        average_square(square, grad, rho, share, second)
        np.add(square, eps, second)
        np.sqrt(second, second)
        change = np.add(past, eps, np.empty_like(past))
        np.sqrt(change, change)
        np.divide(change, second, change)
        np.multiply(change, grad, change)
        average_square(past, change, rho, share, second)
        np.multiply(change, factor, second)
        np.add(value, second, value)


class Rprop(ElementwiseOptimizer):
    """Looks only at the sign of the gradient: steps grow while it holds and shrink when it turns."""

    def __init__(
        self,
        params: Iterable[Any],
        lr: Any = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50),
        *,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_options(lr, 0)
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ValueError(f"Invalid eta values: {etas[0]}, {etas[1]}")
        refuse("capturable", capturable)
        refuse("differentiable", differentiable)
        defaults = dict(
            lr=lr, etas=etas, step_sizes=step_sizes, foreach=foreach, maximize=maximize,
            differentiable=differentiable, capturable=capturable,
        )  # fmt: skip
        super().__init__(params, defaults)

    def _state_names(self, group: dict[str, Any]) -> tuple[str, ...]:
        return ("prev", "step_size")

    def _new_state(self, group: dict[str, Any], param: Tensor) -> dict[str, Any]:
        rate = float(group["lr"])
        start = complex(rate, rate) if param._array.dtype.kind == "c" else rate
        return {"step": new_step(), "prev": zeros_like(param), "step_size": wrap(np.full_like(param._array, start))}

    def _numbers(self, group: dict[str, Any], step: float, state: dict[str, Any]) -> tuple[float, ...]:
        return (*group["etas"], *group["step_sizes"])

    def _update(self, group: dict[str, Any], numbers: Any, value: Any, grad: Any, states: Any, scratch: Any) -> None:
        shrink, grow, least, most = numbers
        first, second = scratch
        previous, size = states
        grad = np.negative(grad, first) if group["maximize"] else grad
        turn = np.sign(np.multiply(grad, previous, second), second)
        np.multiply(size, np.where(turn > 0, grow, np.where(turn < 0, shrink, size.dtype.type(1))), size)
        np.clip(size, least, most, out=size)
        np.copyto(previous, grad)
        previous[turn < 0] = 0  # after a turn the element rests for one step
        np.multiply(np.sign(previous, second), size, second)
        np.subtract(value, second, value)


class ASGD(ElementwiseOptimizer):
    """SGD that also keeps the average of the values it passed through."""

    # eta and mu are kept per parameter.
    _bundles_allowed = False

    def __init__(
        self,
        params: Iterable[Any],
        lr: Any = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        check_options(lr, weight_decay)
        refuse("capturable", capturable)
        refuse("differentiable", differentiable)
        defaults = dict(
            lr=lr, lambd=lambd, alpha=alpha, t0=t0, weight_decay=weight_decay, foreach=foreach, maximize=maximize,
            differentiable=differentiable, capturable=capturable,
        )  # fmt: skip
        super().__init__(params, defaults)

    def _state_names(self, group: dict[str, Any]) -> tuple[str, ...]:
        return ("ax",)

    def _new_state(self, group: dict[str, Any], param: Tensor) -> dict[str, Any]:
        eta = wrap(np.array(float(group["lr"]), np.float32))
        return {"step": new_step(), "eta": eta, "mu": wrap(np.ones((), np.float32)), "ax": zeros_like(param)}

    def _numbers(self, group: dict[str, Any], step: float, state: dict[str, Any]) -> tuple[float, ...]:
        eta, mu = state["eta"]._array, state["mu"]._array
        used_eta, used_mu = eta.item(), mu.item()
        rate, lambd = float(group["lr"]), group["lambd"]
        eta[...] = rate / ((1 + lambd * rate * step) ** group["alpha"])
        mu[...] = 1 / max(1, step - group["t0"])
        return 1 - lambd * used_eta, -used_eta, used_mu, group["weight_decay"]

    def _update(self, group: dict[str, Any], numbers: Any, value: Any, grad: Any, states: Any, scratch: Any) -> None:
        shrink, factor, share, decay = numbers
        second = scratch[1]
        grad = adjusted_gradient(group, decay, value, grad, scratch)
        np.multiply(value, shrink, value)
        np.multiply(grad, factor, second)
        np.add(value, second, value)
        average(states[0], value, share, second)
