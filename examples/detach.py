"""Two losses that share features fail at the second backward(), and detaching everything fails as no graph is left.
Detach just the part that must not be trained by the second loss: the value goes on, the path back ends there.
"""

from __future__ import annotations

from typing import Any

from story import Story, tell


def run(torch: Any) -> Story:
    story = Story()
    torch.manual_seed(0)
    data = torch.randn(5, 4)
    extractor = torch.nn.Linear(4, 3)
    head = torch.nn.Linear(3, 1)
    probe = torch.nn.Linear(3, 1)

    features = torch.tanh(extractor(data))
    with story.attempt("the head's loss"):
        head(features).pow(2).mean().backward()
    with story.attempt("the probe's loss on the same features"):
        probe(features).pow(2).mean().backward()

    extractor.zero_grad()
    features = torch.tanh(extractor(data))
    with story.attempt("once more: the head's loss"):
        head(features).pow(2).mean().backward()
    trained_by_head = extractor.weight.grad.clone()
    with story.attempt("the probe's loss on features.detach()"):
        probe(features.detach()).pow(2).mean().backward()
    story.note("the extractor's gradient", extractor.weight.grad)
    story.note("it comes from the head alone", torch.equal(trained_by_head, extractor.weight.grad))
    story.note("the probe's gradient", probe.weight.grad)

    frozen = features.detach()
    story.note("a detached tensor requires a gradient", frozen.requires_grad)
    with story.attempt("backward() from detached values alone"):
        frozen.pow(2).mean().backward()

    features = torch.tanh(extractor(data))
    features.detach().zero_()  # detach() shares memory: this wipes what tanh saved
    with story.attempt("backward() after writing into the detached tensor"):
        features.sum().backward()
    features = torch.tanh(extractor(data))
    features.detach().clone().zero_()
    with story.attempt("the same, writing into a clone"):
        features.sum().backward()
    return story


if __name__ == "__main__":
    tell(__doc__, run)
