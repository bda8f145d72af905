"""Two losses on one forward pass share the trunk, and the first backward() frees the trunk's values before the second.
Retain the graph in the first call, or add the losses and call backward() once: the gradients are the same.
"""

from __future__ import annotations

from typing import Any

from story import Story, tell


def run(torch: Any) -> Story:
    story = Story()
    torch.manual_seed(0)
    data = torch.randn(6, 4)
    trunk = torch.nn.Sequential(torch.nn.Linear(4, 5), torch.nn.ReLU())
    left, right = torch.nn.Linear(5, 1), torch.nn.Linear(5, 1)
    modules = torch.nn.ModuleList([trunk, left, right])

    def losses() -> tuple[Any, Any]:
        modules.zero_grad()
        features = trunk(data)
        return (left(features) - 1.0).pow(2).mean(), right(features).abs().mean()

    first, second = losses()
    with story.attempt("the first loss"):
        first.backward()
    with story.attempt("the second loss"):
        second.backward()

    first, second = losses()
    with story.attempt("the first loss, retain_graph=True"):
        first.backward(retain_graph=True)
    with story.attempt("the second loss"):
        second.backward()
    retained = [parameter.grad.clone() for parameter in modules.parameters()]
    story.note("the gradient of the trunk's bias, two calls", trunk[0].bias.grad)
    with story.attempt("the first loss again: the second call freed the trunk"):
        first.backward()

    first, second = losses()
    with story.attempt("the sum of both"):
        (first + second).backward()
    story.note("the gradient of the trunk's bias, one call", trunk[0].bias.grad)
    same = all(torch.allclose(grad, parameter.grad) for grad, parameter in zip(retained, modules.parameters()))
    story.note("all gradients agree", same)

    first, second = losses()
    with story.attempt("both in one call: torch.autograd.backward([a, b])"):
        torch.autograd.backward([first, second])
    story.note("the gradient of the trunk's bias, one call on a list", trunk[0].bias.grad)
    return story


if __name__ == "__main__":
    tell(__doc__, run)
