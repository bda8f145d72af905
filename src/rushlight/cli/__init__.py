"""The `rushlight` command: reads the command line, and turns every ending into an exit code and at most one line."""

from __future__ import annotations

import argparse
import os
import sys
from typing import NoReturn

USAGE_ERROR = 2
INTERRUPTED = 130  # 128 + SIGINT, as shells report it
BROKEN_PIPE = 141  # 128 + SIGPIPE


class UsageError(Exception):
    """What the user gave cannot be used; the message says why in one line."""


class Parser(argparse.ArgumentParser):
    """An argument parser whose complaint is one line."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message} (see {self.prog} --help)")


def whole_number(least: int, most: int, text: str) -> int:
    """Reads an option that must be a whole number within limits."""
    try:
        number = int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number") from None
    if not least <= number <= most:
        raise argparse.ArgumentTypeError(f"{number} is not between {least} and {most}")
    return number


def build_parser() -> Parser:
    from .. import __version__

    parser = Parser(prog="rushlight", description="PyTorch's autograd in pure Python on NumPy.")
    parser.add_argument("--version", action="version", version=f"rushlight {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)

    demo = commands.add_parser(
        "demo",
        help="train a small text model and let it write a few lines",
        description="Trains a small recurrent network, character by character, and prints a sample of what it learnt.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    demo.add_argument("--steps", type=lambda text: whole_number(1, 10**7, text), default=600, help="training steps")
    demo.add_argument("--seed", type=lambda text: whole_number(0, 2**63 - 1, text), default=0, help="random seed")
    demo.add_argument("--hidden", type=lambda text: whole_number(1, 4096, text), default=96, help="hidden units")
    demo.add_argument("--text", metavar="FILE", help="learn from this UTF-8 file instead of the text in the package")
    return parser


def run(arguments: list[str] | None) -> int:
    options = build_parser().parse_args(arguments)
    # The only command so far; imported here because it brings the whole engine with it.
    from .demo import demo

    return demo(steps=options.steps, seed=options.seed, hidden=options.hidden, path=options.text)


def main(arguments: list[str] | None = None) -> int:
    """Runs the command; returns its exit code."""
    try:
        code = run(arguments)
        sys.stdout.flush()
        return code
    except UsageError as error:
        print(f"rushlight: {error}", file=sys.stderr)
        return USAGE_ERROR
    except KeyboardInterrupt:
        print("rushlight: interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        # The reader has gone, which is its right. Without another target the interpreter's last flush would complain.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for stream in (sys.stdout, sys.stderr):
            os.dup2(nowhere, stream.fileno())
        return BROKEN_PIPE
