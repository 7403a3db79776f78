"""Pieces of Markdown that generated pages are made of."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Sequence

from .formulas import display, set_in

_CELL = str.maketrans({"|": r"\|", "\n": " ", "<": "&lt;", "*": r"\*"})
_RULE = re.compile(r"=+(  +=+)+")
"""Above and below a docstring's table, and below its head."""


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; what stands in its cells is text, with code in backticks."""
    lines = ["| " + " | ".join(head) + " |", "| " + " | ".join("---" for _ in head) + " |"]
    lines += ["| " + " | ".join(cell(text) for text in row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def cell(text: str) -> str:
    """Text that stays in its cell; double backticks of docstrings become single ones."""
    parts = re.split(r"(`[^`]+`)", " ".join(text.replace("``", "`").split()))
    return "".join(part.replace("|", r"\|") if part.startswith("`") else part.translate(_CELL) for part in parts)


def code(text: str) -> str:
    """A word as code; nothing for nothing."""
    return f"`{text}`" if text else ""


def block(text: str, language: str = "text") -> str:
    """A block of code."""
    return f"```{language}\n{text.rstrip()}\n```\n"


def prose(docstring: str) -> str:
    """A docstring as Markdown: what is indented stays as it is, and a table becomes one."""
    lines = inspect.cleandoc(docstring).replace("``", "`").replace("::\n", ":\n").splitlines()
    out: list[str] = []
    place = 0
    while place < len(lines):
        if _RULE.fullmatch(lines[place]):
            blank = lines.index("", place) if "" in lines[place:] else len(lines)
            end = max(k for k in range(place, blank) if _RULE.fullmatch(lines[k]))
            out.append("\n" + _simple_table(lines[place : end + 1]))
        elif lines[place].startswith("    "):
            end = place
            while end + 1 < len(lines) and (lines[end + 1].startswith("    ") or _goes_on(lines, end + 1)):
                end += 1
            inside = inspect.cleandoc("\n".join(lines[place : end + 1]))
            out.append("\n" + (display(inside) or block(inside)))
        else:
            end = place
            out.append(_escaped(lines[place]))
        place = end + 1
    return "\n".join(out).strip() + "\n"


def _goes_on(lines: Sequence[str], place: int) -> bool:
    """True if a blank line stands between two lines that are indented."""
    return not lines[place].strip() and place + 1 < len(lines) and lines[place + 1].startswith("    ")


def _simple_table(lines: Sequence[str]) -> str:
    """A table of a docstring, whose columns are where its rules are."""
    starts = [found.start() for found in re.finditer("=+", lines[0])]
    ends: list[int | None] = [*starts[1:], None]
    rows: list[list[str]] = []
    for line in lines[1:]:
        if _RULE.fullmatch(line):
            continue
        cells = [line[start:end].strip() for start, end in zip(starts, ends, strict=True)]
        if rows and not cells[0]:  # the row before goes on
            rows[-1] = [f"{above} {below}".strip() for above, below in zip(rows[-1], cells, strict=True)]
        else:
            rows.append(cells)
    return table(rows[0], [[set_in(each) for each in row] for row in rows[1:]])


def _escaped(line: str) -> str:
    """A line of prose, whose signs are no markup outside of code."""
    parts = re.split(r"(`[^`]+`)", line)
    signs = str.maketrans({"*": r"\*", "_": r"\_", "<": "&lt;", "|": r"\|", "$": r"\$"})
    return "".join(part if part.startswith("`") else part.translate(signs) for part in parts)


def anchor(name: str) -> str:
    """A target that other pages link to."""
    return f"({name})=\n"


def link(text: str, target: str) -> str:
    """A link to a target, or to a page."""
    return f"[{text}](#{target})"
