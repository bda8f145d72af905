"""An actor and a critic on one trunk fail at the second backward(), or, if it was retained, at the in-place update.
Add both losses, detach the advantage that weighs the actor's loss, and update once after the one backward().
"""

from __future__ import annotations

from typing import Any

from story import Story, tell


def run(torch: Any) -> Story:
    story = Story()
    functional = torch.nn.functional
    torch.manual_seed(0)
    states = torch.randn(6, 4)
    actions = torch.tensor([0, 1, 1, 0, 2, 1])
    returns = torch.tensor([1.0, 0.5, -0.5, 2.0, 0.0, 1.5])

    class Agent(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.trunk = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 8))
            self.actor = torch.nn.Linear(8, 3)
            self.critic = torch.nn.Linear(8, 1)

        def forward(self, inputs: Any) -> tuple[Any, Any]:
            features = functional.relu(self.trunk(inputs))
            return functional.log_softmax(self.actor(features), dim=-1), self.critic(features).squeeze(-1)

    def new_agent() -> tuple[Any, Any]:
        torch.manual_seed(1)
        agent = Agent()
        return agent, torch.optim.SGD(agent.parameters(), lr=0.1)

    def losses(agent: Any, detached: bool = True) -> tuple[Any, Any]:
        log_probabilities, values = agent(states)
        advantage = returns - values
        chosen = log_probabilities.gather(1, actions.unsqueeze(1)).squeeze(1)
        actor_loss = -(chosen * (advantage.detach() if detached else advantage)).mean()
        return actor_loss, advantage.pow(2).mean()

    agent, _ = new_agent()
    actor_loss, critic_loss = losses(agent)
    with story.attempt("the actor's backward()"):
        actor_loss.backward()
    with story.attempt("the critic's backward(), through the same trunk"):
        critic_loss.backward()

    agent, optimizer = new_agent()
    actor_loss, critic_loss = losses(agent)
    with story.attempt("retained: the actor's backward()"):
        actor_loss.backward(retain_graph=True)
    optimizer.step()
    with story.attempt("the critic's backward() after optimizer.step() changed the weights in place"):
        critic_loss.backward()

    agent, _ = new_agent()
    actor_loss, _ = losses(agent, detached=False)
    actor_loss.backward()
    story.note("advantage not detached: the actor's loss moves the critic's bias by", agent.critic.bias.grad)
    agent, _ = new_agent()
    actor_loss, _ = losses(agent)
    actor_loss.backward()
    story.note("advantage detached: the critic's gradient from the actor's loss is", agent.critic.bias.grad)

    agent, optimizer = new_agent()
    for step in range(5):
        actor_loss, critic_loss = losses(agent)
        optimizer.zero_grad()
        with story.attempt(f"summed, step {step}: backward()"):
            (actor_loss + 0.5 * critic_loss).backward()
        story.note("the actor's loss", actor_loss.item())
        story.note("the critic's loss", critic_loss.item())
        optimizer.step()
    story.note("the trunk's first bias at the end", agent.trunk[0].bias)
    return story


if __name__ == "__main__":
    tell(__doc__, run)
