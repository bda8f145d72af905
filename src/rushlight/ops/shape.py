"""Shape and view operations."""
from __future__ import annotations

import numpy as np

from .table import operation


@operation(input="g", jvp="linear")
def clone(input, *, memory_format=None):
    return input.copy(order="K")


@operation(input="reshape(g, input_shape)", view=True, jvp="linear")
def view(input, size):
    return input.reshape(size)


@operation(input="reshape(g, input_shape)", view=True, jvp="linear")
def reshape(input, shape):
    return input.reshape(shape)


@operation(input="sum_to_size(g, input_shape)", view=True, jvp="linear")
def expand(input, size):
    return np.broadcast_to(input, size)


@operation(input="expand(g, input_shape)", jvp="linear")
def sum_to_size(input, size):
    from .fit import sum_to
    return sum_to(input, tuple(size))


@operation(input="t(g)", view=True, jvp="linear")
def t(input):
    return input.T
