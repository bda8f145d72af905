"""CUDA's switches for matrix products and attention."""
from __future__ import annotations

from types import SimpleNamespace
from typing import Any

matmul = SimpleNamespace(allow_tf32=False, allow_fp16_reduced_precision_reduction=True,
                         allow_bf16_reduced_precision_reduction=True)
_attention = {"flash": True, "mem_efficient": True, "math": True, "cudnn": True}


def is_built() -> bool:
    return False


def _switch(name: str) -> tuple[Any, Any]:
    def enable(enabled: bool) -> None:
        _attention[name] = bool(enabled)

    return enable, lambda: _attention[name]


enable_flash_sdp, flash_sdp_enabled = _switch("flash")
enable_mem_efficient_sdp, mem_efficient_sdp_enabled = _switch("mem_efficient")
enable_math_sdp, math_sdp_enabled = _switch("math")
enable_cudnn_sdp, cudnn_sdp_enabled = _switch("cudnn")
