"""torch.nn.modules.loss: base classes that programs import from there."""

from ..loss import _Loss, _WeightedLoss

__all__ = ["_Loss", "_WeightedLoss"]
