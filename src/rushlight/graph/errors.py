"""The errors of a graph's life, with what happened as attributes and in words."""
from __future__ import annotations

from typing import Any

from .facts import Site, current_site
from .node import CODE, INSTRUCTION, SAVED, SPEC, BackwardCall


def _at(site: Site | None) -> str:
    if site is None:
        return "an unknown line"
    text = site.text
    return f"{site}" + (f"  `{text}`" if text else "")


class _GraphError(RuntimeError):
    """An error with facts, which travel with it between processes."""

    def __reduce__(self) -> tuple:
        return _rebuilt, (type(self), self.args, self.__dict__)


def _rebuilt(kind: type, args: tuple, facts: dict) -> BaseException:
    made = kind.__new__(kind, *args)
    made.args = args
    made.__dict__.update(facts)
    return made


class FreedGraphError(_GraphError):
    """A backward pass needed a value that an earlier pass had freed.

    node_name  the backward node that needed it, e.g. "MulBackward0"
    made_at    the line that made the node
    freed_by   the BackwardCall that freed its values
    needed_at  the line that needed them again
    remedy     what to do about it
    """

    def __init__(self, message: str, *, node_name: str, made_at: Site | None, freed_by: BackwardCall,
                 needed_at: Site | None, remedy: str) -> None:
        super().__init__(message)
        self.node_name = node_name
        self.made_at = made_at
        self.freed_by = freed_by
        self.needed_at = needed_at
        self.remedy = remedy


def freed_error(node: list, what: str = "backward needed") -> FreedGraphError:
    name = node[SPEC].node_name(node)
    call: BackwardCall = node[SAVED]
    made = Site.of(node[CODE], node[INSTRUCTION])
    needed, freed = current_site(), call.site
    remedy = _freed_remedy(made, freed, needed)
    message = (
        "Trying to backward through the graph a second time: the values it had saved are gone.\n"
        f"  {what} the saved values of {name} here:  {_at(needed)}\n"
        f"  {name} was made here:  {_at(made)}\n"
        f"  and used up by {call.kind} call number {call.number} of this program:  {_at(freed)}\n"
        f"  {remedy}")
    return FreedGraphError(message, node_name=name, made_at=made, freed_by=call, needed_at=needed, remedy=remedy)


def _freed_remedy(made: Site | None, freed: Site | None, needed: Site | None) -> str:
    """The remedy that fits what is known of the three lines."""
    if made is not None and freed is not None and needed is not None and freed == needed:
        return (f"The same call used the graph up in an earlier round, and a value that line {made.line} made then is still in "
                "use. If it is state carried from round to round, cut it off with .detach(); if not, compute it anew in every "
                "round.")
    return ("Run the forward pass again to get a new graph; or add the losses and call backward once; or, if both passes "
            "must share this one, give the first retain_graph=True.")


class ModifiedInplaceError(_GraphError):
    """A value saved for backward was written over before backward used it.

    node_name, made_at          the node that saved the value, and the line that made it
    version, expected_version   the value's version now, and when it was saved
    """

    def __init__(self, message: str, *, node_name: str, made_at: Site | None, version: int, expected: int) -> None:
        super().__init__(message)
        self.node_name = node_name
        self.made_at = made_at
        self.version = version
        self.expected_version = expected


def modified_error(node: list, described: str, version: int, expected: int) -> ModifiedInplaceError:
    name = node[SPEC].node_name(node)
    made = Site.of(node[CODE], node[INSTRUCTION])
    message = (
        "one of the variables needed for gradient computation has been modified by an inplace operation: "
        f"{described} is at version {version}; expected version {expected} instead.\n"
        f"  {name} saved it here:  {_at(made)}\n"
        "  and something wrote to its memory after that. Write the changed value to a new tensor (x = x + 1 rather than "
        "x += 1), or change it only after backward; .clone() before the write keeps the saved value whole.")
    return ModifiedInplaceError(message, node_name=name, made_at=made, version=version, expected=expected)


def detached_error(node: list) -> RuntimeError:
    name = node[SPEC].node_name(node)
    return RuntimeError(
        "Trying to use a saved tensor that has been detached in-place, i.e. with .detach_(): "
        f"{name} had saved it here:  {_at(Site.of(node[CODE], node[INSTRUCTION]))}. Use .detach(), which leaves the "
        "original as it is.")


def shapes_text(*shapes: Any) -> str:
    return " and ".join(str(list(shape)) for shape in shapes)
