"""A Sphinx extension: in docstrings a bar is a bar, such as that of a norm, and no substitution."""

from __future__ import annotations

import re
from typing import Any


def setup(app: Any) -> dict[str, Any]:
    """Register the extension; Sphinx calls this function."""
    app.connect("autodoc-process-docstring", escaped)
    return {"parallel_read_safe": True}


def escaped(*event: Any) -> None:
    """Escape the bars of a docstring in place, outside of code and of what is indented."""
    lines: list[str] = event[-1]
    for place, line in enumerate(lines):
        if not line.startswith("     ") and "|" in line:
            parts = re.split(r"(``[^`]+``|`[^`]+`)", line)
            lines[place] = "".join(part if part.startswith("`") else part.replace("|", r"\|") for part in parts)
