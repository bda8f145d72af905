"""Which version this is, and which accelerator toolkits it was built with: none."""
from __future__ import annotations

from . import __version__

cuda = hip = xpu = git_version = None
debug = False

__all__ = ["__version__", "cuda", "debug", "git_version", "hip", "xpu"]
