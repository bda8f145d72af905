"""Stochastic gradient descent, with momentum and Nesterov's variant."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ..graph.versions import bump
from ..tensor import Tensor, wrap
from .elementwise import BLOCK, ElementwiseOptimizer
from .optimizer import refuse


class SGD(ElementwiseOptimizer):
    """``p -= lr * g``, where g may carry weight decay and momentum."""

    def __init__(
        self,
        params: Iterable[Any],
        lr: Any = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        if lr < 0.0:
            raise ValueError(f"Invalid learning rate: {lr}")
        if momentum < 0.0:
            raise ValueError(f"Invalid momentum value: {momentum}")
        if weight_decay < 0.0:
            raise ValueError(f"Invalid weight_decay value: {weight_decay}")
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        refuse("differentiable", differentiable)
        defaults = dict(
            lr=lr, momentum=momentum, dampening=dampening, weight_decay=weight_decay, nesterov=nesterov,
            maximize=maximize, foreach=foreach, differentiable=differentiable, fused=fused,
        )  # fmt: skip
        super().__init__(params, defaults)

    def _step_group(self, number: int, group: dict[str, Any]) -> None:
        if not (group["momentum"] or group["weight_decay"] or group["maximize"]):
            self._descend(group)
        elif group["momentum"] and not group["dampening"]:
            super()._step_group(number, group)
        else:
            for param in group["params"]:
                if param._grad is not None:
                    self._step_one(group, param)

    def _descend(self, group: dict[str, Any]) -> None:
        """The plain step. It has no state, so it skips all that looks after state."""
        rate = float(group["lr"])
        known_dtype: Any = None
        lr: Any = None
        for param in group["params"]:
            gradient = param._grad
            if gradient is None:
                continue
            array = param._array
            if array.dtype is not known_dtype:
                known_dtype = array.dtype
                # As a 0-d array of the parameter's dtype: see Constants.
                lr = np.array(rate, known_dtype)
            if array.size > BLOCK or known_dtype.kind != "f":
                self._step_one(group, param)
            else:
                np.subtract(array, np.multiply(gradient._array, lr), array)
                bump(param)

    def _state_names(self, group: dict[str, Any]) -> tuple[str, ...]:
        return ("momentum_buffer",) if group["momentum"] else ()

    def _new_state(self, group: dict[str, Any], param: Tensor) -> dict[str, Any]:
        # The buffer starts as the first gradient, undampened. Zeros become that in the first update where there is
        # no dampening; where there is, the mark tells it to mix the gradient in whole.
        self._fresh = True
        return {"momentum_buffer": wrap(np.zeros_like(param._array))}

    _fresh = False

    def _numbers(self, group: dict[str, Any], step: float, state: dict[str, Any]) -> tuple[float, ...]:
        share = 1.0 if self._fresh else 1 - group["dampening"]
        self._fresh = False
        return (float(group["lr"]), group["momentum"], share, group["weight_decay"])

    def _update(self, group: dict[str, Any], numbers: Any, value: Any, grad: Any, states: Any, scratch: Any) -> None:
        lr, momentum, share, decay = numbers
        first, second = scratch
        if group["maximize"]:
            grad = np.negative(grad, first)
        if group["weight_decay"]:
            grad = np.add(grad, np.multiply(value, decay, second), first)
        if states:
            (buffer,) = states
            np.multiply(buffer, momentum, buffer)
            if group["dampening"]:
                np.add(buffer, np.multiply(grad, share, second), buffer)
            else:
                np.add(buffer, grad, buffer)
            grad = np.add(grad, np.multiply(buffer, momentum, second), first) if group["nesterov"] else buffer
        np.subtract(value, np.multiply(grad, lr, second), value)
