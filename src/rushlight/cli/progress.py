"""A progress bar on stderr: one line redrawn on a terminal, a line for every tenth elsewhere."""

from __future__ import annotations

import sys
import time

BAR_WIDTH = 30
REDRAW_SECONDS = 0.1


class Progress:
    """Shows how far a known number of steps has come, and the loss."""

    def __init__(self, total: int) -> None:
        self.total = total
        self.began = time.monotonic()
        self.drawn = 0.0
        self.on_terminal = sys.stderr.isatty()

    def seconds(self) -> float:
        return time.monotonic() - self.began

    def show(self, done: int, loss: float) -> None:
        """Draws the state after `done` steps, if it is time to."""
        last = done == self.total
        if self.on_terminal:
            now = time.monotonic()
            if now - self.drawn < REDRAW_SECONDS and not last:
                return
            self.drawn = now
            filled = BAR_WIDTH * done // self.total
            bar = "#" * filled + "." * (BAR_WIDTH - filled)
            sys.stderr.write(f"\r[{bar}] step {done}/{self.total}  loss {loss:.3f}  {self.seconds():.1f} s ")
        elif done == 1 or 10 * done // self.total > 10 * (done - 1) // self.total:
            sys.stderr.write(f"step {done}/{self.total}  loss {loss:.3f}  {self.seconds():.1f} s\n")
        sys.stderr.flush()

    def close(self) -> None:
        """Leaves the redrawn line, so that what is printed next starts on its own."""
        if self.on_terminal and self.drawn:
            sys.stderr.write("\n")
            sys.stderr.flush()
