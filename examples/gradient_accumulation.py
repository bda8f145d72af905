"""Summing the losses of several small batches before one backward() keeps all their graphs in memory at once.
Call backward() on each small batch's loss divided by their number: the gradients add up to those of the large batch.
"""

from __future__ import annotations

from typing import Any

from story import Story, graph_size, tell

PARTS = 4


def run(torch: Any) -> Story:
    story = Story()
    torch.manual_seed(0)
    inputs, targets = torch.randn(16, 5), torch.randn(16, 1)
    weight = torch.randn(5, 1, requires_grad=True)

    def mean_loss(batch: Any, wanted: Any) -> Any:
        return (batch.mm(weight).tanh() - wanted).pow(2).mean()

    mean_loss(inputs, targets).backward()
    whole = weight.grad.clone()
    story.note("the gradient of the whole batch", whole)

    weight.grad = None
    for part, (batch, wanted) in enumerate(zip(inputs.chunk(PARTS), targets.chunk(PARTS))):
        (mean_loss(batch, wanted) / PARTS).backward()
        story.note(f"the gradient after part {part}", weight.grad)
    story.note("the accumulated gradient agrees", torch.allclose(weight.grad, whole, atol=1e-6))

    weight.grad = None
    for batch, wanted in zip(inputs.chunk(PARTS), targets.chunk(PARTS)):
        mean_loss(batch, wanted).backward()
    story.note("without dividing it is too large by", (weight.grad / whole).mean().item())

    weight.grad = None
    total = torch.zeros(())
    for part, (batch, wanted) in enumerate(zip(inputs.chunk(PARTS), targets.chunk(PARTS))):
        total = total + mean_loss(batch, wanted) / PARTS
        story.note(f"losses summed first: graph nodes alive after part {part}", graph_size(total))
    total.backward()
    story.note("the same gradient, for more memory", torch.allclose(weight.grad, whole, atol=1e-6))
    with story.attempt("backward() on the sum again"):
        total.backward()
    return story


if __name__ == "__main__":
    tell(__doc__, run)
