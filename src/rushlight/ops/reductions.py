"""Sums, means and other reductions."""
from __future__ import annotations

from .table import operation


@operation(input="expand(g, input_shape)", jvp="linear")
def sum(input):
    return input.sum()
