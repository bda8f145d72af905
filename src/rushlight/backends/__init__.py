"""The switches of PyTorch's backends. They can be set and read, and change nothing: NumPy does the computing."""
from __future__ import annotations

from . import cpu, cuda, cudnn, mkl, mkldnn, mps, openmp

__all__ = ["cpu", "cuda", "cudnn", "mkl", "mkldnn", "mps", "openmp"]
