"""`running_loss += loss` builds one graph over all iterations: each step's nodes stay alive, and memory grows for ever.
Add `loss.item()` (or `loss.detach()`) instead: a number has no graph, and each step's graph dies with the step.
"""

from __future__ import annotations

import gc
import tracemalloc
from typing import Any

from story import Story, graph_size, tell

STEPS = 40
EVERY = 10


def run(torch: Any) -> Story:
    story = Story()
    torch.manual_seed(0)
    inputs = torch.randn(2000)
    targets = 3.0 * inputs

    for keeping in ("loss", "loss.item()"):
        weight = torch.zeros(2000, requires_grad=True)
        running_loss: Any = 0.0
        for step in range(1, STEPS + 1):
            loss = (weight * inputs - targets).pow(2).mean()
            loss.backward()
            with torch.no_grad():
                weight -= 50.0 * weight.grad
            weight.grad = None
            running_loss += loss if keeping == "loss" else loss.item()
            if step % EVERY == 0:
                held = graph_size(running_loss) if keeping == "loss" else 0
                story.note(f"running_loss += {keeping}, step {step}: graph nodes it holds", held)
        total = running_loss.item() if keeping == "loss" else running_loss
        story.note("the mean loss, the same either way", total / STEPS)

    # Without backward() nothing frees the saved values either: an evaluation loop that sums losses keeps them all.
    running_loss = 0.0
    for _ in range(STEPS):
        running_loss += (weight * inputs - targets).pow(2).mean()
    story.note("an evaluation loop that sums its losses: graph nodes held", graph_size(running_loss))
    with torch.no_grad():
        running_loss = sum((weight * inputs - targets).pow(2).mean() for _ in range(STEPS))
    story.note("the same under no_grad has a graph", running_loss.requires_grad)
    return story


def kilobytes_held(torch: Any, keep_graph: bool) -> float:
    """Measures what an evaluation loop leaves in memory (Python's own tracing, which also sees NumPy's buffers)."""
    weight = torch.ones(2000, requires_grad=True)
    inputs = torch.ones(2000)
    gc.collect()
    tracemalloc.start()
    running_loss: Any = 0.0
    for _ in range(STEPS):
        loss = (weight * inputs).pow(2).mean()
        running_loss += loss if keep_graph else loss.item()
    del loss
    gc.collect()
    held = tracemalloc.get_traced_memory()[0] / 1024
    tracemalloc.stop()
    return held


def main() -> None:
    engine = tell(__doc__, run)
    if engine.__name__ != "rushlight":
        return  # an engine that allocates outside Python's sight cannot be measured this way
    for keep_graph in (True, False):
        name = "loss" if keep_graph else "loss.item()"
        held = kilobytes_held(engine, keep_graph)
        print(f"- memory on rushlight after {STEPS} evaluation steps with `running_loss += {name}`: {held:.0f} KiB")


if __name__ == "__main__":
    main()
