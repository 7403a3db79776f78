"""Blocks of code in pages of Markdown, executed one after the other."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

from hushnet.simulator.cli import main

BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", flags=re.DOTALL | re.MULTILINE)
PRINTED = re.compile(r"^It prints[^\n]*:\n\n```text\n(.*?)^```$", flags=re.DOTALL | re.MULTILINE)
FILE = re.compile(r"# ([\w-]+\.\w+)\n")


def blocks(page: Path) -> list[tuple[str, str]]:
    """Language and text of every block of a page."""
    return BLOCK.findall(page.read_text())


def execute(page: Path, fragment: Callable[[str], None] | None = None) -> str:
    """Execute a page's blocks here, and return what they print.

    A block whose first line is ``# file.name`` is written to that file.

    What a page says that it prints is looked for in what its commands and its Python print.

    Parameters
    ----------
    page : Path
    fragment : callable, optional
        What is done with YAML that is no file.
    """
    said, names = StringIO(), {"__name__": page.stem}
    for language, text in blocks(page):
        file = FILE.match(text)
        if file:
            Path(file[1]).write_text(text)
        elif language == "bash":
            for line in text.splitlines():
                program, *arguments = shlex.split(line)
                assert program == "hushnet"
                with redirect_stdout(said):
                    assert main(arguments) == 0, line
        elif language == "python":
            with redirect_stdout(said):
                exec(compile(text, page.name, "exec", dont_inherit=True), names)
        elif language == "yaml" and fragment is not None:
            fragment(text)
    for printed in PRINTED.findall(page.read_text()):
        assert " ".join(printed.split()) in " ".join(said.getvalue().split())
    return said.getvalue()
