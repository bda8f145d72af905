"""Where rushlight and torch are not compared, or are known to differ, on torch's op database: each with its reason.

Keys are (operation, aspect) as in the names of the tests; "*" stands for every aspect. An operation's plain name covers
its variants (`norm` covers `norm.nuc`).
"""

from __future__ import annotations

# Nothing to compare: the two may well differ, and both are right.
NOT_COMPARABLE: dict[tuple[str, str], str] = {
    ("empty", "*"): "uninitialised memory has no values to compare",
    ("empty_like", "*"): "uninitialised memory has no values to compare",
    ("empty_strided", "*"): "uninitialised memory has no values to compare",
    ("empty_permuted", "*"): "uninitialised memory has no values to compare",
    ("new_empty", "*"): "uninitialised memory has no values to compare",
    ("new_empty_strided", "*"): "uninitialised memory has no values to compare",
    ("resize_", "*"): "uninitialised memory has no values to compare",
    ("resize_as_", "*"): "uninitialised memory has no values to compare",
    **{
        (name, "errors"): "the database calls the method of the operator on a Python number, which no program can do"
        for name in (
            "__radd__",
            "__rsub__",
            "__rmul__",
            "__rdiv__",
            "__rmod__",
            "__rpow__",
            "__rand__",
            "__ror__",
            "__rxor__",
        )
    },
}

# Differences that are known. The test is expected to fail, and says so once it no longer does.
KNOWN: dict[tuple[str, str], str] = {}


def reason(table: dict[tuple[str, str], str], operation: str, aspect: str) -> str | None:
    """The reason a table gives for this operation and aspect, if it has one."""
    for name in (
        operation,
        operation.partition(".")[0] if not operation.startswith(("nn.", "linalg.", "special.", "fft.")) else operation,
    ):
        for key in ((name, aspect), (name, "*")):
            if key in table:
                return table[key]
    return None
