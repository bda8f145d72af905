"""Without zero_grad() each backward() adds to the gradients of the steps before: updates overshoot, and no error tells.
Call optimizer.zero_grad() once in every step, anywhere between the update and the next backward().
"""

from __future__ import annotations

from typing import Any

from story import Story, tell


def run(torch: Any) -> Story:
    story = Story()
    for zeroing in (False, True):
        how = "with zero_grad()" if zeroing else "without zero_grad()"
        weight = torch.nn.Parameter(torch.tensor([4.0]))
        optimizer = torch.optim.SGD([weight], lr=0.3)
        for step in range(5):
            loss = (weight**2).sum()
            if zeroing:
                optimizer.zero_grad()
            with story.attempt(f"{how}, step {step}: backward()"):
                loss.backward()
            story.note("the loss", loss.item())
            story.note("the gradient", weight.grad)
            story.note("the true gradient, 2 * weight", (2 * weight).detach())
            optimizer.step()

    optimizer.zero_grad()
    story.note("after zero_grad() the gradient is", weight.grad)
    (weight**2).sum().backward()
    optimizer.zero_grad(set_to_none=False)
    story.note("after zero_grad(set_to_none=False) it is", weight.grad)
    return story


if __name__ == "__main__":
    tell(__doc__, run)
