"""A meta-gradient is lost when the inner update leaves the graph, and a support loss differentiated twice is freed.
Take inner gradients with create_graph=True, build new weights out of place, and recompute the loss in each inner step.
"""

from __future__ import annotations

from typing import Any

from story import Story, tell

INNER_STEPS = 2
INNER_RATE = 0.1


def run(torch: Any) -> Story:
    story = Story()
    grad = torch.autograd.grad
    torch.manual_seed(0)
    start = [torch.randn(1, 8) * 0.5, torch.zeros(8), torch.randn(8, 1) * 0.5, torch.zeros(1)]
    weights = [value.requires_grad_() for value in start]
    points = torch.linspace(-2, 2, 10).reshape(-1, 1)
    tasks = [(1.0, 0.0), (0.5, 1.0), (1.5, -0.5)]  # amplitude and phase of a sine wave

    def loss_of(parameters: list[Any], inputs: Any, task: tuple[float, float]) -> Any:
        w1, b1, w2, b2 = parameters
        targets = task[0] * torch.sin(inputs + task[1])
        return (torch.tanh(inputs @ w1 + b1) @ w2 + b2 - targets).pow(2).mean()

    def adapt(task: tuple[float, float], create_graph: bool) -> list[Any]:
        fast = weights
        for _ in range(INNER_STEPS):
            gradients = grad(loss_of(fast, points[:5], task), fast, create_graph=create_graph)
            fast = [value - INNER_RATE * gradient for value, gradient in zip(fast, gradients)]
        return fast

    support = loss_of(weights, points[:5], tasks[0])
    gradients = grad(support, weights)
    fast = [value - INNER_RATE * gradient for value, gradient in zip(weights, gradients)]
    with story.attempt("an inner loop that differentiates one support loss twice"):
        grad(support, weights)
    query = loss_of([value.detach() for value in fast], points[5:], tasks[0])
    with story.attempt("an outer loss on weights that left the graph"):
        query.backward()

    exact = grad(loss_of(adapt(tasks[0], create_graph=True), points[5:], tasks[0]), weights)
    first_order = grad(loss_of(adapt(tasks[0], create_graph=False), points[5:], tasks[0]), weights)
    story.note("the meta-gradient of the first bias", exact[1])
    story.note("the same without create_graph: first order only", first_order[1])

    optimizer = torch.optim.SGD(weights, lr=0.1)
    for step in range(4):
        optimizer.zero_grad()
        losses = [loss_of(adapt(task, create_graph=True), points[5:], task) for task in tasks]
        meta_loss = sum(losses) / len(tasks)
        with story.attempt(f"outer step {step}: backward()"):
            meta_loss.backward()
        story.note("the loss after adapting", meta_loss.item())
        optimizer.step()
    story.note("the meta-learned first bias", weights[1])
    return story


if __name__ == "__main__":
    tell(__doc__, run)
