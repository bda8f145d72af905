"""A hidden state carried from one batch to the next ties the new graph to the last one, which backward() has freed.
Detach the state between batches: its value is carried on, and gradients stop at the border (truncated backpropagation).
"""

from __future__ import annotations

from typing import Any

from story import Story, tell


def run(torch: Any) -> Story:
    story = Story()
    for detaching in (False, True):
        how = "detached" if detaching else "as it is"
        torch.manual_seed(0)
        cell = torch.nn.RNNCell(2, 6)
        readout = torch.nn.Linear(6, 1)
        optimizer = torch.optim.SGD([*cell.parameters(), *readout.parameters()], lr=0.05)
        series = torch.sin(torch.arange(0, 41) * 0.3)
        hidden = torch.zeros(1, 6)

        for batch in range(4):
            if detaching:
                hidden = hidden.detach()
            loss = torch.zeros(())
            for position in range(batch * 10, batch * 10 + 10):
                previous = series[max(position - 1, 0) : max(position - 1, 0) + 1]
                inputs = torch.stack([series[position : position + 1], previous], dim=1)
                hidden = cell(inputs, hidden)
                loss = loss + (readout(hidden) - series[position + 1]).pow(2).mean()
            loss = loss / 10
            optimizer.zero_grad()
            with story.attempt(f"hidden state {how}, batch {batch}: backward()"):
                loss.backward()
            if story.steps[-1].message:
                break
            optimizer.step()
            story.note("its loss", loss.item())
            story.note("the gradient of the recurrent weights, first row", cell.weight_hh.grad[0])
    return story


if __name__ == "__main__":
    tell(__doc__, run)
