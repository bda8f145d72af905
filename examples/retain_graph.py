"""retain_graph=True keeps the saved values for one more call, and the first call without it frees them: a third fails.
Pass it on every call but the last, zero the gradients in between, and prefer one summed loss where that is possible.
"""

from __future__ import annotations

from typing import Any

from story import Story, tell


def run(torch: Any) -> Story:
    story = Story()
    weight = torch.tensor([[0.2, -0.4], [0.6, 0.8]], requires_grad=True)
    loss = torch.tanh(weight @ torch.tensor([1.0, -1.0])).pow(2).sum()

    with story.attempt("the first call, retain_graph=True"):
        loss.backward(retain_graph=True)
    story.note("the gradient", weight.grad)
    with story.attempt("the second call, without it: works, and frees"):
        loss.backward()
    story.note("the gradient, twice the first: calls add up", weight.grad)
    with story.attempt("the third call"):
        loss.backward()
    with story.attempt("retain_graph=True now comes too late"):
        loss.backward(retain_graph=True)
    story.note("the gradient is still that of two calls", weight.grad)

    weight.grad = None
    loss = torch.tanh(weight @ torch.tensor([1.0, -1.0])).pow(2).sum()
    for call in range(1, 4):
        weight.grad = None
        with story.attempt(f"a new forward pass, call {call} of 3"):
            loss.backward(retain_graph=call < 3)
        story.note("the gradient, zeroed in between", weight.grad)
    return story


if __name__ == "__main__":
    tell(__doc__, run)
