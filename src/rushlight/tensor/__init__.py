"""Tensor: an array, its place in the graph, its views and its version."""
from .core import Parameter, Tensor, wrap
from .size import Size

__all__ = ["Parameter", "Size", "Tensor", "wrap"]
