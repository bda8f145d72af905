"""`rushlight demo`: a small recurrent network learns to write, character by character."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Any

import rushlight as torch

from . import INTERRUPTED, UsageError
from .progress import Progress

ROWS = 16  # passages read side by side
SPAN = 32  # characters read between two updates
SHORTEST_TEXT = 200
SAMPLE_LENGTH = 400
TEMPERATURE = 0.6  # below one: the sample prefers what the network is sure of
RATE = 0.006
LARGEST_GRADIENT = 1.0


class Writer(torch.nn.Module):
    """An embedding, a recurrent layer and a readout: from the characters so far to scores for the next one."""

    def __init__(self, characters: int, hidden: int) -> None:
        super().__init__()
        self.embedding = torch.nn.Embedding(characters, hidden)
        self.recurrent = torch.nn.Linear(hidden, hidden)
        self.readout = torch.nn.Linear(hidden, characters)

    def forward(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        """Reads inputs (time, rows) from a state; returns scores (time * rows, characters) and the new state."""
        scores = []
        for seen in self.embedding(inputs).unbind(0):
            state = torch.tanh(seen + self.recurrent(state))
            # One readout a character rather than one for all: NumPy's matrix product would share the large one between
            # threads, which on two busy cores made the demo ten times slower (30 s against 2.3 s).
            scores.append(self.readout(state))
        return torch.cat(scores), state


def read_text(path: str | None) -> str:
    """The text to learn from: the package's own, or the user's file if it is fit for it."""
    if path is None:
        return resources.files("rushlight").joinpath("data", "rushlight.txt").read_text(encoding="utf-8")
    try:
        text = Path(path).read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not UTF-8 text (byte {error.start})") from None
    except (OSError, ValueError) as error:  # ValueError: a path with a null byte
        raise UsageError(f"cannot read {path!r}: {getattr(error, 'strerror', None) or error}") from None
    if len(text) < SHORTEST_TEXT:
        size = f"has only {len(text)} characters" if text else "is empty"
        raise UsageError(f"{path} {size}; the demo needs at least {SHORTEST_TEXT}")
    return text


def batches(codes: Any) -> Iterator[tuple[Any, Any, bool]]:
    """Yields inputs, the characters that follow, and whether the text starts over; each row reads on where it was."""
    rows = min(ROWS, len(codes) // (SPAN + 1))
    length = (len(codes) - 1) // rows
    inputs = codes[: rows * length].view(rows, length).t()
    targets = codes[1 : rows * length + 1].view(rows, length).t()
    while True:
        for begin in range(0, length - SPAN + 1, SPAN):
            yield inputs[begin : begin + SPAN], targets[begin : begin + SPAN].reshape(-1), begin == 0


def sample(writer: Writer, prompt: Any, characters: list[str], hidden: int) -> str:
    """Lets the network write on from the prompt."""
    written = []
    with torch.no_grad():
        scores, state = writer(prompt.unsqueeze(1), torch.zeros(1, hidden))
        for _ in range(SAMPLE_LENGTH):
            chances = torch.softmax(scores[-1] / TEMPERATURE, dim=0)
            code = torch.multinomial(chances, 1)
            written.append(characters[int(code.item())])
            scores, state = writer(code.unsqueeze(0), state)
    return "".join(written)


def printable(text: str) -> str:
    """Replaces what could steer a terminal: a user's file may hold anything."""
    return "".join(character if character.isprintable() or character in "\n\t" else "?" for character in text)


def demo(steps: int, seed: int, hidden: int, path: str | None) -> int:
    """Trains, shows the progress on stderr, and prints the losses and a sample; returns the exit code."""
    text = read_text(path)
    characters = sorted(set(text))
    codes_of = {character: code for code, character in enumerate(characters)}
    codes: Any = torch.tensor([codes_of[character] for character in text])

    torch.manual_seed(seed)
    writer = Writer(len(characters), hidden)
    optimizer = torch.optim.Adam(writer.parameters(), lr=RATE)
    print(f"rushlight {torch.__version__}: learning to write from {len(text)} characters", file=sys.stderr)
    progress = Progress(steps)
    losses: list[float] = []
    state = torch.zeros(1, hidden)
    try:
        for step, (inputs, targets, afresh) in zip(range(1, steps + 1), batches(codes)):
            # The state's value goes on to the next span; its graph, which the last backward() used up, does not.
            state = torch.zeros(inputs.shape[1], hidden) if afresh else state.detach()
            scores, state = writer(inputs, state)
            loss = torch.nn.functional.cross_entropy(scores, targets)
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(writer.parameters(), LARGEST_GRADIENT)
            optimizer.step()
            losses.append(loss.item())
            progress.show(step, losses[-1])
        written = sample(writer, codes[:SPAN], characters, hidden)
    except KeyboardInterrupt:
        progress.close()
        reached = f"stopped after {len(losses)} of {steps} steps"
        print(f"rushlight: {reached}" + (f", at a loss of {losses[-1]:.3f}" if losses else ""), file=sys.stderr)
        return INTERRUPTED
    progress.close()

    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")  # a terminal may lack some of the text's characters
    print(f"loss {losses[0]:.3f} -> {losses[-1]:.3f} in {steps} steps, {progress.seconds():.1f} s")
    print(f"\nWhat it writes after {printable(text[:SPAN])!r}:\n")
    print(printable(written))
    return 0
