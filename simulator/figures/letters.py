"""Letters that no font of a figure has: said once, in words, where matplotlib complains at each of its drawings."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

MISSING = r"Glyph (\d+) \(.*\) missing from font\(s\) (.*)\."
"""What matplotlib says of one letter."""
IDLE = "cmr10 font should ideally"
"""What it says of a setting that concerns numbers in a font's own minus sign, which axes here do not use."""
MOST = 10
"""Letters that are listed."""


@contextmanager
def without_complaints() -> Iterator[None]:
    """Draw again what has been drawn with `letters_told`."""
    with warnings.catch_warnings():
        for message in (MISSING, IDLE):
            warnings.filterwarnings("ignore", message)
        yield


@contextmanager
def letters_told(name: str) -> Iterator[None]:
    """Draw a figure, and warn in one sentence of the letters that its fonts do not have.

    Parameters
    ----------
    name : str
        What the figure is called.
    """
    with warnings.catch_warnings(record=True) as told:
        warnings.filterwarnings("always", MISSING)
        warnings.filterwarnings("ignore", IDLE)
        yield
    missing: dict[str, str] = {}
    for each in told:
        match = re.match(MISSING, str(each.message))
        if match is None:
            warnings.warn_explicit(each.message, each.category, each.filename, each.lineno)
        else:
            missing[chr(int(match[1]))] = match[2]
    if missing:
        letters = "".join(letter for letter in list(missing)[:MOST] if letter.isprintable())
        more = f" and {len(missing) - MOST} more" if len(missing) > MOST else ""
        fonts = next(iter(missing.values()))
        warnings.warn(
            f"figure {name}: {fonts} has no letters {letters}{more}, so boxes stand there; "
            "set style.font to an installed font that has them",
            stacklevel=3,
        )
