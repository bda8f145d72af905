"""Recurrent networks: RNN, LSTM and GRU over sequences, and their single cells."""

from __future__ import annotations

import math
import warnings
from typing import Any

import rushlight

from ..ops.table import TENSORS
from ..tensor import Tensor
from . import functional as F
from . import init
from .linear import empty_parameter
from .module import Module


def _rnn_step(activation: Any, gates: Tensor, state: tuple[Tensor, ...], weight: Tensor, bias: Any) -> tuple[Tensor]:
    return (activation(gates + F.linear(state[0], weight, bias)),)


def _lstm_step(gates: Tensor, state: tuple[Tensor, ...], weight: Tensor, bias: Any) -> tuple[Tensor, Tensor]:
    return TENSORS.lstm_step(gates + F.linear(state[0], weight, bias), state[1])


def _gru_step(gates: Tensor, state: tuple[Tensor, ...], weight: Tensor, bias: Any) -> tuple[Tensor]:
    return (TENSORS.gru_step(gates, F.linear(state[0], weight, bias), state[0]),)


def _step_function(mode: str) -> Any:
    """One step of time: (gates of the input, state, weight, bias of the hidden side) -> state."""
    if mode == "LSTM":
        return _lstm_step
    if mode == "GRU":
        return _gru_step
    activation = rushlight.tanh if mode == "RNN_TANH" else rushlight.relu
    return lambda *args: _rnn_step(activation, *args)


_GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}


def _reset_uniformly(module: Any) -> None:
    bound = 1.0 / math.sqrt(module.hidden_size) if module.hidden_size > 0 else 0
    for weight in module.parameters():
        init.uniform_(weight, -bound, bound)


class RNNBase(Module):
    """Layers of one kind of recurrence, in one or two directions."""

    def __init__(
        self, mode: str, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True,
        batch_first: bool = False, dropout: float = 0.0, bidirectional: bool = False, proj_size: int = 0,
        device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        if mode not in _GATES:
            raise ValueError("Unrecognized RNN mode: " + mode)
        if isinstance(dropout, bool) or not isinstance(dropout, (int, float)) or not 0 <= dropout <= 1:
            raise ValueError(
                "dropout should be a number in range [0, 1] representing the probability of an element being zeroed"
            )
        if dropout > 0 and num_layers == 1:
            warnings.warn(
                "dropout option adds dropout after all but last recurrent layer, so non-zero dropout expects "
                f"num_layers greater than 1, but got dropout={dropout} and num_layers={num_layers}",
                stacklevel=3,
            )
        if not isinstance(hidden_size, int):
            raise TypeError(f"hidden_size should be of type int, got: {type(hidden_size).__name__}")
        if hidden_size <= 0:
            raise ValueError("hidden_size must be greater than zero")
        if num_layers <= 0:
            raise ValueError("num_layers must be greater than zero")
        if proj_size < 0:
            raise ValueError(
                f"proj_size should be a positive integer or zero to disable projections, got {proj_size}"
            )
        if proj_size >= hidden_size:
            raise ValueError("proj_size has to be smaller than hidden_size")
        self.mode = mode
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = float(dropout)
        self.bidirectional = bidirectional
        self.proj_size = proj_size
        directions = 2 if bidirectional else 1
        rows = _GATES[mode] * hidden_size
        out_size = proj_size or hidden_size
        # The names of every layer and direction's weights, in torch's order.
        self._all_weights: list[list[str]] = []
        for layer in range(num_layers):
            for direction in range(directions):
                suffix = f"_l{layer}" + ("_reverse" if direction else "")
                columns = input_size if layer == 0 else out_size * directions
                shapes: dict[str, tuple[int, ...]] = {"weight_ih": (rows, columns), "weight_hh": (rows, out_size)}
                if bias:
                    shapes |= {"bias_ih": (rows,), "bias_hh": (rows,)}
                if proj_size:
                    shapes["weight_hr"] = (proj_size, hidden_size)
                for name, shape in shapes.items():
                    self.register_parameter(name + suffix, empty_parameter(shape, device, dtype))
                self._all_weights.append([name + suffix for name in shapes])
        self.reset_parameters()

    def reset_parameters(self) -> None:
        _reset_uniformly(self)

    def flatten_parameters(self) -> None:
        """Only matters to cuDNN; here so that programs may call it."""

    @property
    def all_weights(self) -> list[list[Tensor]]:
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        if self.proj_size != 0:
            text += f", proj_size={self.proj_size}"
        if self.num_layers != 1:
            text += f", num_layers={self.num_layers}"
        if self.bias is not True:
            text += f", bias={self.bias}"
        if self.batch_first is not False:
            text += f", batch_first={self.batch_first}"
        if self.dropout != 0:
            text += f", dropout={self.dropout}"
        if self.bidirectional is not False:
            text += f", bidirectional={self.bidirectional}"
        return text

    def _check_input(self, input: Any) -> None:
        if not isinstance(input, Tensor):
            raise NotImplementedError(
                f"{type(self).__name__}: {type(input).__name__} input (such as PackedSequence) is not supported; "
                "pad the sequences to one length and give a tensor."
            )
        if input.dim() not in (2, 3):
            kind = " tensor" if self.mode.startswith("RNN") else ""
            raise ValueError(
                f"{type(self).__name__}: Expected input to be 2D or 3D, got {input.dim()}D{kind} instead"
            )
        weight = getattr(self, self._all_weights[0][0])
        if input.dtype != weight.dtype:
            raise ValueError(
                f"RNN input dtype ({input.dtype}) does not match weight dtype ({weight.dtype}). "
                f"Convert input: input.to({weight.dtype}), or convert model: model.to({input.dtype})"
            )
        if input.size(-1) != self.input_size:
            raise RuntimeError(
                f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got {input.size(-1)}"
            )

    def _start(self, hx: Any, batch: int, batched: bool, like: Tensor) -> list[Tensor]:
        """The starting states, checked: [h] or, for an LSTM, [h, c]."""
        rows = self.num_layers * (2 if self.bidirectional else 1)
        sizes = [self.proj_size or self.hidden_size] + ([self.hidden_size] if self.mode == "LSTM" else [])
        if hx is None:
            return [like.new_zeros((rows, batch, size)) for size in sizes]
        states = [hx[0], hx[1]] if self.mode == "LSTM" else [hx]
        wanted = 3 if batched else 2
        if any(state.dim() != wanted for state in states):
            found = ", ".join(f"{state.dim()}-D" for state in states)
            if self.mode == "LSTM":
                which, found = "hx and cx", f"({found}) tensors"
            else:
                which, found = "hx", f"{found} tensor"
            kind = "batched 3-D" if batched else "unbatched 2-D"
            raise RuntimeError(f"For {kind} input, {which} should also be {wanted}-D but got {found}")
        if not batched:
            states = [state.unsqueeze(1) for state in states]
        for place, (state, size) in enumerate(zip(states, sizes, strict=True)):
            if tuple(state.shape) != (rows, batch, size):
                name = f"hidden[{place}]" if self.mode == "LSTM" else "hidden"
                raise RuntimeError(f"Expected {name} size {(rows, batch, size)}, got {list(state.shape)}")
        return states

    def forward(self, input: Tensor, hx: Any = None) -> tuple[Tensor, Any]:
        self._check_input(input)
        batched = input.dim() == 3
        sequence = input if batched else input.unsqueeze(1)
        if batched and self.batch_first:
            sequence = sequence.transpose(0, 1)
        starts = self._start(hx, sequence.size(1), batched, input)
        if sequence.size(0) == 0:
            raise RuntimeError("Expected sequence length to be larger than 0 in RNN")
        directions = 2 if self.bidirectional else 1
        ends: list[tuple[Tensor, ...]] = []
        for layer in range(self.num_layers):
            outputs = []
            for direction in range(directions):
                number = layer * directions + direction
                state = tuple(start[number] for start in starts)
                output, state = self._run(number, sequence, state, backwards=direction == 1)
                outputs.append(output)
                ends.append(state)
            sequence = outputs[0] if directions == 1 else rushlight.cat(outputs, -1)
            if self.dropout and self.training and layer + 1 < self.num_layers:
                sequence = F.dropout(sequence, self.dropout)
        finals = [rushlight.stack(states) for states in zip(*ends, strict=True)]
        if batched and self.batch_first:
            sequence = sequence.transpose(0, 1)
        if not batched:
            sequence = sequence.squeeze(1)
            finals = [final.squeeze(1) for final in finals]
        return sequence, tuple(finals) if self.mode == "LSTM" else finals[0]

    def _run(self, number: int, sequence: Tensor, state: Any, backwards: bool) -> tuple[Tensor, Any]:
        """One layer in one direction: all outputs and the last state."""
        weights = {name.split("_l")[0]: getattr(self, name) for name in self._all_weights[number]}
        # The input's side of all gates and all times at once; only the hidden side must go step by step.
        gates = F.linear(sequence, weights["weight_ih"], weights.get("bias_ih")).unbind(0)
        step = _step_function(self.mode)
        weight, bias, projection = weights["weight_hh"], weights.get("bias_hh"), weights.get("weight_hr")
        outputs = []
        for gate in reversed(gates) if backwards else gates:
            state = step(gate, state, weight, bias)
            if projection is not None:
                state = (F.linear(state[0], projection), *state[1:])
            outputs.append(state[0])
        if backwards:
            outputs.reverse()
        return rushlight.stack(outputs), state


class RNN(RNNBase):
    """``h' = tanh(W_ih x + b_ih + W_hh h + b_hh)``, or relu."""

    def __init__(self, *args: Any, nonlinearity: str = "tanh", **kwargs: Any) -> None:
        if kwargs.get("proj_size", 0) > 0:
            raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
        if len(args) > 3:  # positionally it comes after num_layers
            nonlinearity, args = args[3], args[:3] + args[4:]
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or 'relu'.")
        super().__init__("RNN_" + nonlinearity.upper(), *args, **kwargs)
        self.nonlinearity = nonlinearity


class LSTM(RNNBase):
    """Long short-term memory."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__("LSTM", *args, **kwargs)


class GRU(RNNBase):
    """Gated recurrent units."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if kwargs.get("proj_size", 0) > 0:
            raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
        super().__init__("GRU", *args, **kwargs)


class RNNCellBase(Module):
    """One step of a recurrence."""

    _mode = ""

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool, num_chunks: int, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        rows = num_chunks * hidden_size
        self.weight_ih = empty_parameter((rows, input_size), device, dtype)
        self.weight_hh = empty_parameter((rows, hidden_size), device, dtype)
        for name in ("bias_ih", "bias_hh"):
            self.register_parameter(name, empty_parameter((rows,), device, dtype) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        _reset_uniformly(self)

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        if self.bias is not True:
            text += f", bias={self.bias}"
        nonlinearity = getattr(self, "nonlinearity", "tanh")
        return text + (f", nonlinearity={nonlinearity}" if nonlinearity != "tanh" else "")

    def _advance(self, input: Tensor, hx: Any) -> tuple[Tensor, ...]:
        """The new states, (h,) or (h, c), for a batch or a single vector."""
        if input.dim() not in (1, 2):
            raise ValueError(f"{type(self).__name__}: Expected input to be 1D or 2D, got {input.dim()}D instead")
        states = [] if hx is None else [hx[0], hx[1]] if self._mode == "LSTM" else [hx]
        for state in states:
            if state.dim() not in (1, 2):
                raise ValueError(
                    f"{type(self).__name__}: Expected hidden to be 1D or 2D, got {state.dim()}D instead"
                )
        single = input.dim() == 1
        batch = input.unsqueeze(0) if single else input
        if batch.size(1) != self.input_size:
            raise RuntimeError(f"input has inconsistent input_size: got {batch.size(1)} expected {self.input_size}")
        if hx is None:
            zeros = batch.new_zeros((batch.size(0), self.hidden_size))
            states = [zeros, zeros]
        else:
            states = [state.unsqueeze(0) if single else state for state in states]
        for place, state in enumerate(states):
            if state.size(0) != batch.size(0):
                raise RuntimeError(
                    f"Input batch size {batch.size(0)} doesn't match hidden{place} batch size {state.size(0)}"
                )
            if state.size(1) != self.hidden_size:
                raise RuntimeError(
                    f"hidden{place} has inconsistent hidden_size: got {state.size(1)}, expected {self.hidden_size}"
                )
        gates = F.linear(batch, self.weight_ih, self.bias_ih)
        result = _step_function(self._mode)(gates, tuple(states), self.weight_hh, self.bias_hh)
        return tuple(state.squeeze(0) for state in result) if single else result


class RNNCell(RNNCellBase):
    """One step of a plain recurrence."""

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, nonlinearity: str = "tanh", device: Any = None,
        dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity = nonlinearity

    @property
    def _mode(self) -> str:  # type: ignore[override]
        if self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        return "RNN_" + self.nonlinearity.upper()

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        return self._advance(input, hx)[0]


class LSTMCell(RNNCellBase):
    """One step of an LSTM."""

    _mode = "LSTM"

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    def forward(self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, ...]:
        return self._advance(input, hx)


class GRUCell(RNNCellBase):
    """One step of a GRU."""

    _mode = "GRU"

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        return self._advance(input, hx)[0]
