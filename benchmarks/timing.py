"""Timing: blocks of repetitions, interleaved between the engines so that a slow moment hits them alike."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable
from typing import NamedTuple

from .cases import Step


class Figures(NamedTuple):
    """One figure for each repetition, in the order in which they were taken."""

    taken: list[float]

    def minimum(self) -> float:
        return min(self.taken)

    def summary(self) -> dict[str, float]:
        return {"minimum": self.minimum(), "median": statistics.median(self.taken)}


def ratios(above: Figures, below: Figures) -> dict[str, float]:
    """Two ratios: of the best figures, and the median over the repetitions, whose two sides shared their moment."""
    pairs = [one / other for one, other in zip(above.taken, below.taken)]
    return {"ratio": above.minimum() / below.minimum(), "ratio_median": statistics.median(pairs)}


class Contestant(NamedTuple):
    """A step to time, and what to do before each of its blocks (set a number of threads)."""

    step: Step
    before: Callable[[], object] = lambda: None


def block(contestant: Contestant, count: int) -> float:
    """Seconds for one step, averaged over a block. The collector stays on: its work is part of an ordinary loop."""
    contestant.before()
    step = contestant.step
    gc.collect()
    began = time.perf_counter()
    for _ in range(count):
        step()
    return (time.perf_counter() - began) / count


def steps_per_block(contestant: Contestant, seconds: float) -> int:
    """How many steps fill a block of about that length; the first steps also warm up (and compile) the contestant."""
    contestant.before()
    contestant.step()
    count = 1
    while (took := block(contestant, count) * count) < seconds / 4 and count < 100_000:
        count *= 2
    return max(1, round(count * seconds / took))


def interleaved(contestants: dict[str, Contestant], repetitions: int, seconds: float) -> dict[str, Figures]:
    """Seconds for one step of each contestant; they take turns block by block."""
    counts = {name: steps_per_block(contestant, seconds) for name, contestant in contestants.items()}
    found: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(repetitions):
        for name, contestant in contestants.items():
            found[name].append(block(contestant, counts[name]))
            time.sleep(0.002)  # lets thread pools that still spin come to rest before the next one's turn
    return {name: Figures(times) for name, times in found.items()}
