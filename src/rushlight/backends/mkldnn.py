"""oneDNN: not used, its switches can be set."""
from __future__ import annotations

enabled = True
deterministic = False


def is_available() -> bool:
    return False
