"""torch.masked: reductions and normalisations under a mask."""
from __future__ import annotations

from typing import Any

from .ops.families import load_all

load_all()

from .ops.masked import (  # noqa: E402 - the families come first
    amax,
    amin,
    argmax,
    argmin,
    cumprod,
    cumsum,
    log_softmax,
    logaddexp,
    logsumexp,
    mean,
    median,
    norm,
    normalize,
    prod,
    softmax,
    softmin,
    std,
    sum,
    var,
)
from .ops.masked import input_mask as _input_mask  # noqa: E402
from .ops.masked import output_mask as _output_mask  # noqa: E402

__all__ = [
    "amax", "amin", "argmax", "argmin", "cumprod", "cumsum", "log_softmax", "logaddexp", "logsumexp", "mean", "median",
    "norm", "normalize", "prod", "softmax", "softmin", "std", "sum", "var", "_input_mask", "_output_mask"]


def __getattr__(name: str) -> Any:
    if name in ("MaskedTensor", "as_masked_tensor", "is_masked_tensor", "masked_tensor"):
        raise NotImplementedError(f"torch.masked.{name}: masked tensors are not supported. Keep the mask beside the "
                                  "tensor and give it as mask= to the functions of this module.")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
