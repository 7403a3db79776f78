"""What the authors of hushnet's dependencies allow, as they say it themselves: ``python -m tests.licences``.

Prints a page from the metadata of what is installed: everything that developing hushnet needs, directly or not.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib.metadata import distribution, requires

from hushnet.simulator.bundle.lock import needed
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ALLOWED = {
    "0BSD", "Apache-2.0", "Apache-2.0 WITH LLVM-exception", "BSD", "BSD-2-Clause", "BSD-3-Clause", "CC0-1.0", "ISC",
    "MIT", "MIT-0", "MIT-CMU", "MPL-2.0", "PSF-2.0", "Zlib",
}  # fmt: skip
"""Licences that ask for a notice and nothing else; MPL-2.0, whose own files stay under it, changes nothing of ours."""

WORDS = {
    "Apache 2.0": "Apache-2.0",
    "Apache Software License": "Apache-2.0",
    "BSD License": "BSD",
    "ISC License (ISCL)": "ISC",
    "MIT License": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Python Software Foundation License": "PSF-2.0",
}
"""What those that do not use SPDX's identifiers call them."""

STATED = {"docutils": "BSD-2-Clause"}
"""Where metadata name licences of files that are not installed: of docutils an Emacs mode alone is under the GPL, which
its wheel does not have; what is not in the public domain is under the BSD licence."""

PAGE = """\
# Licences of what hushnet needs

Written by `.ci/lock` from the metadata of what is installed (`python -m tests.licences`). What is needed for hushnet
itself, for its reports, or to develop and test it is named in `pyproject.toml`; the rest is needed by these. BSD
without a number is what the metadata say. hushnet's own files are under the MIT licence and contain none of these.

| package | licence | needed for |
| --- | --- | --- |
"""


def licence(name: str) -> str:
    """What an installed distribution says of its licence, as an SPDX expression where that can be told."""
    if name in STATED:
        return STATED[name]
    said: Mapping[str, str] = distribution(name).metadata  # pyright: ignore[reportAssignmentType]
    every = distribution(name).metadata.get_all("Classifier") or []
    classified = [text.split(" :: ")[-1] for text in every if text.startswith("License :: ") and text.count(" :: ") > 1]
    written = [text for text in [said.get("License") or ""] if text and len(text) < 60 and "\n" not in text]
    expression = said.get("License-Expression")
    found = [expression] if expression else classified or written
    return " OR ".join(WORDS.get(text, text) for text in found) or "not stated"


def allowed(expression: str) -> bool:
    """Whether every licence that an expression names is among the `ALLOWED` ones."""
    return all(name.strip("() ") in ALLOWED for name in re.split(r" (?:AND|OR) ", expression))


def direct() -> dict[str, str]:
    """What hushnet's own metadata ask for: canonical name, and what for."""
    found: dict[str, str] = {}
    for text in requires("hushnet") or []:
        wanted = Requirement(text)
        what = next(
            (extra for extra in ("report", "view", "test", "docs") if f'"{extra}"' in str(wanted.marker)), "hushnet"
        )
        found.setdefault(str(canonicalize_name(wanted.name)), what)
    return found


def page() -> str:
    """The page."""
    asked = direct()
    rows = [f"| {name} | {licence(name)} | {asked.get(name, 'others')} |" for name in sorted(needed("test", "report"))]
    return PAGE + "".join(f"{row}\n" for row in rows)


if __name__ == "__main__":
    print(page(), end="")
