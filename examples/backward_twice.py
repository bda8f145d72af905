"""A second backward() through one graph fails, because the first call freed the values the gradients are made of.
Call backward() once for each forward pass; a graph whose operations saved nothing (a plain sum) is the exception.
"""

from __future__ import annotations

from typing import Any

from story import Story, tell


def run(torch: Any) -> Story:
    story = Story()
    weight = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    data = torch.tensor([0.5, -1.0, 2.0])

    loss = ((weight * data) ** 2).mean()
    story.note("the loss", loss.item())
    with story.attempt("the first backward()"):
        loss.backward()
    story.note("the gradient after it", weight.grad)
    with story.attempt("the second backward() on the same loss"):
        loss.backward()
    story.note("the gradient after the failure (unchanged)", weight.grad)
    story.note("the loss still has its grad_fn: nodes live on, only their values are gone", loss.grad_fn is not None)
    with story.attempt("torch.autograd.grad on the same loss"):
        torch.autograd.grad(loss, weight)

    weight.grad = None
    total = (weight + data).sum()
    with story.attempt("backward() of a plain sum"):
        total.backward()
    with story.attempt("and once more: addition saved nothing that could be gone"):
        total.backward()
    story.note("the gradient: two calls, added up", weight.grad)
    return story


if __name__ == "__main__":
    tell(__doc__, run)
