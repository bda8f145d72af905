"""An ordinary gradient is a plain value without a graph, so differentiating it again raises an error.
Ask for it with create_graph=True; a second derivative without retain_graph then frees the graphs it walked.
"""

from __future__ import annotations

from typing import Any

from story import Story, tell


def run(torch: Any) -> Story:
    story = Story()
    grad = torch.autograd.grad
    x = torch.tensor([1.0, 2.0], requires_grad=True)

    (slope,) = grad((x**3).sum(), x)
    story.note("3 x^2", slope)
    with story.attempt("the derivative of that"):
        grad(slope.sum(), x)

    (slope,) = grad((x**3).sum(), x, create_graph=True)
    story.note("the gradient has a graph now", slope.requires_grad)
    (curvature,) = grad(slope.sum(), x, create_graph=True)
    story.note("6 x", curvature)
    story.note("and the third derivative", grad(curvature.sum(), x)[0])

    y = x.exp().sum()
    (slope,) = grad(y, x, create_graph=True)
    with story.attempt("the second derivative of exp"):
        slope.sum().backward()
    story.note("it", x.grad)
    with story.attempt("y.backward() after it: the second derivative walked exp's own node and freed it"):
        y.backward()

    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
    points = torch.randn(5, 3, requires_grad=True)
    (slopes,) = grad(model(points).sum(), points, create_graph=True)
    penalty = (slopes.norm(dim=1) - 1).pow(2).mean()
    story.note("a gradient penalty", penalty.item())
    with story.attempt("training on it"):
        penalty.backward()
    story.note("the gradient of the first weights", model[0].weight.grad)

    weight = model[0].weight
    direction = torch.ones_like(weight)
    (slope,) = grad(model(points.detach()).pow(2).mean(), weight, create_graph=True)
    (product,) = grad((slope * direction).sum(), weight)
    story.note("a Hessian-vector product", product)
    return story


if __name__ == "__main__":
    tell(__doc__, run)
