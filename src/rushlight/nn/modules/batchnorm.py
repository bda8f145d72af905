"""torch.nn.modules.batchnorm: base classes that programs import from there."""

from ..normalization import _BatchNorm

__all__ = ["_BatchNorm"]
