"""A loss computed once, before the loop, can be differentiated only in the first round: its graph is used up there.
Move the forward pass into the loop, so that every backward() gets a graph of its own, built from the current weights.
"""

from __future__ import annotations

from typing import Any

from story import Story, tell


def run(torch: Any) -> Story:
    story = Story()
    torch.manual_seed(0)
    inputs = torch.randn(16, 3)
    targets = inputs @ torch.tensor([[1.0], [-2.0], [0.5]])

    def new_model() -> tuple[Any, Any]:
        torch.manual_seed(1)
        model = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
        return model, torch.optim.SGD(model.parameters(), lr=0.1)

    model, optimizer = new_model()
    loss = torch.nn.functional.mse_loss(model(inputs), targets)
    for round_number in range(2):
        optimizer.zero_grad()
        with story.attempt(f"forward pass before the loop, round {round_number}: backward()"):
            loss.backward()
        optimizer.step()

    model, optimizer = new_model()
    for round_number in range(6):
        loss = torch.nn.functional.mse_loss(model(inputs), targets)
        optimizer.zero_grad()
        with story.attempt(f"forward pass inside the loop, round {round_number}: backward()"):
            loss.backward()
        optimizer.step()
        story.note(f"the loss of round {round_number}", loss.item())
    return story


if __name__ == "__main__":
    tell(__doc__, run)
