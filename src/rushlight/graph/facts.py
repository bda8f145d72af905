"""Where things happened: the user's line for a node or a backward call, found cheaply and worked out when asked."""
from __future__ import annotations

import os
import threading
from sys import _getframe
from types import CodeType, FrameType
from typing import Any, NamedTuple

# On by default. RUSHLIGHT_FACTS=0 is there so that a benchmark can show what the facts cost.
ENABLED = os.environ.get("RUSHLIGHT_FACTS", "1") != "0"

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
GENERATED = "<rushlight "
_library_files: dict[str, bool] = {}


class Site(NamedTuple):
    """A line of a program."""

    filename: str
    line: int | None
    function: str

    @classmethod
    def of(cls, code: CodeType | None, instruction: int) -> Site | None:
        if code is None:
            return None
        line = code.co_firstlineno
        for start, end, number in code.co_lines():
            if start <= instruction < end and number is not None:
                line = number
                break
        return cls(code.co_filename, line, code.co_name)

    @property
    def text(self) -> str:
        """The source line itself, where it can be read."""
        import linecache
        return linecache.getline(self.filename, self.line or 0).strip()

    def __str__(self) -> str:
        return f"{self.filename}:{self.line}"


def is_library(code: CodeType) -> bool:
    """Whether the code is Rushlight's own, as opposed to the program that uses it."""
    filename = code.co_filename
    known = _library_files.get(filename)
    if known is None:
        known = filename.startswith((_PACKAGE, GENERATED))
        _library_files[filename] = known
    return known


class Passing(threading.local):
    """The backward passes that record a graph in this thread; each knows the user's line that called for it."""

    def __init__(self) -> None:
        self.sites: list[Any] = []


passing = Passing()
# The code of the loop that runs such a pass; the engine puts it here. Nothing further out need be looked at.
pass_code: CodeType | None = None


class CallSite:
    """What is asked of a frame, for a line that is known already."""

    __slots__ = ("f_code", "f_lasti")

    def __init__(self, code: Any, instruction: int) -> None:
        self.f_code = code
        self.f_lasti = instruction


def leave_library(frame: FrameType) -> Any:
    """The nearest frame outside Rushlight; the given one where there is none."""
    outer: FrameType | None = frame
    known = _library_files.get
    while outer is not None:
        code = outer.f_code
        inside = known(code.co_filename)
        if inside is None:
            inside = is_library(code)
        if not inside:
            return outer
        if code is pass_code and passing.sites:
            return passing.sites[-1]
        outer = outer.f_back
    return frame


def here() -> tuple[Any, int]:
    """Code object and instruction of the user's line that is running."""
    if not ENABLED:
        return None, -1
    frame = leave_library(_getframe(1))
    return frame.f_code, frame.f_lasti


def user_level() -> int:
    """The `stacklevel` with which the caller's warning names the user's line."""
    frame: FrameType | None = _getframe(1)
    level = 1
    while frame is not None and is_library(frame.f_code):
        frame = frame.f_back
        level += 1
    return level


def current_site() -> Site | None:
    code, instruction = here()
    return Site.of(code, instruction)
