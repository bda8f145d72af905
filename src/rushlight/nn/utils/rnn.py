"""Sequences of different lengths as one tensor."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import rushlight

from ...tensor import Tensor


def pad_sequence(
    sequences: Any, batch_first: bool = False, padding_value: float = 0.0, padding_side: str = "right"
) -> Tensor:
    """Stack sequences along a new dimension, filled up to the longest."""
    if not isinstance(sequences, Iterable):
        raise RuntimeError(
            f"pad_sequence: Expected iterable for input sequences, but got arg of type: {type(sequences)}"
        )
    if padding_side not in ("left", "right"):
        raise RuntimeError(f"Expected padding_side to be one of left or right, but got {padding_side}.")
    sequences = tuple(sequences)
    longest = max(sequence.size(0) for sequence in sequences)
    rows = []
    for sequence in sequences:
        missing = longest - sequence.size(0)
        if missing:
            fill = sequence.new_full((missing, *sequence.shape[1:]), padding_value)
            sequence = rushlight.cat([sequence, fill] if padding_side == "right" else [fill, sequence])
        rows.append(sequence)
    return rushlight.stack(rows, 0 if batch_first else 1)


def unpad_sequence(padded_sequences: Tensor, lengths: Tensor, batch_first: bool = False) -> list[Tensor]:
    """The sequences that ``pad_sequence`` put together."""
    if not batch_first:
        padded_sequences = padded_sequences.transpose(0, 1)
    return [padded_sequences[place, :length] for place, length in enumerate(lengths.tolist())]


def _unsupported(name: str) -> Any:
    def function(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(
            f"nn.utils.rnn.{name}: packed sequences are not supported; pad the sequences with pad_sequence and mask "
            "the outputs beyond each length."
        )

    function.__name__ = function.__qualname__ = name
    return function


pack_padded_sequence = _unsupported("pack_padded_sequence")
pad_packed_sequence = _unsupported("pad_packed_sequence")
pack_sequence = _unsupported("pack_sequence")
