"""What numba refuses, in one sentence with the author's line."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from .text import Text

KNOWN = (
    (r"The '(with) \(context manager\)[^\n]* construct is not supported", "compiled steps have no {0!r}"),
    (r"opcode \((IMPORT)_\w+\)", "compiled steps have no import"),
    (r"Unknown attribute '(\w+)' of type Me", "an agent has no {0!r}"),
    (r"Untyped global name '(\w+)'", "{0!r} has no compiled form"),
    (r"No definition for lowering Me\(.*\)\.(\w+) = ", "compiled steps cannot assign to me.{0} in this way"),
    (r"NameError: name '(\w+)'", "{0!r} is not defined"),
    (
        r"No implementation of function Function\((?:<\w+ )?'?([^'>)]*?)'?(?: at [^>]*)?>?\)",
        "{0} has no form for these values",
    ),
    (r"(?:Use of unsupported|Unsupported) ([^\n]+)", "compiled steps have no {0}"),
    (r"Cannot unify ([^\n]+)", "a variable has two types: {0}"),
    (r"Unknown attribute: ([^\n]+)", "there is no compiled attribute {0}"),
    (r"The use of yield in a closure", "compiled steps have no generators; a list in brackets has a form"),
    (r"Illegal IR, (del) found", "compiled steps have no {0}"),
    (r"Type of variable '[^']*' cannot be determined", "numba cannot tell of which type this is"),
    (r"The use of a? ?([^\n]+) is not supported", "compiled steps have no {0}"),
)
"""The commonest refusals, and what they mean."""


def sentence_of(error: Exception, texts: Sequence[Text]) -> str:
    """Where in an author's texts a refusal comes from, and what it says.

    Parameters
    ----------
    error : Exception
        Of numba's.
    texts : sequence of Text
        All that were compiled.
    """
    said = re.sub(r"\x1b\[[0-9;]*m", "", str(error))
    meant = re.sub(r"\.*\s*Raised from [^\n]*", "", said)
    why = next((words.format(*found.groups()) for law, words in KNOWN if (found := re.search(law, meant))), "")
    if not why:
        lines = [line.strip() for line in meant.splitlines() if line.strip()]
        why = next((line for line in lines if not line.startswith("Failed in")), "numba refuses it")
    places = re.findall(r'File "([^"]+)", line (\d+)', said) + re.findall(r"(\S+\.py) \((\d+)\)", said)
    for file, number in reversed(places):
        for text in texts:
            if text.file.endswith(file.lstrip("./")):
                return f"{text.at(int(number))}: {why}"
    if "context manager" in said:  # numba has forgotten the line
        for text in texts:
            for node in ast.walk(text.tree):
                if isinstance(node, ast.With):
                    return f"{text.at(node)}: {why}"
    return why
