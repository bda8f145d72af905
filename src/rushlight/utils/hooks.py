"""RemovableHandle under PyTorch's name for its place."""
from __future__ import annotations

from ..tensor.hooks import RemovableHandle

__all__ = ["RemovableHandle"]
