"""Suggestions for a word that is not admissible: the nearest admissible one, and the others."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from itertools import islice

from .errors import InputError

MOST_COMPARED = 200
"""Admissible words among which the nearest is looked for, and"""
MOST_LETTERS = 100
"""how much of a given word is looked at: a suggestion is a courtesy."""
MOST_LISTED = 50
"""Admissible words that a sentence names."""


def nearest(word: object, options: Iterable[str]) -> str | None:
    """The admissible word that was probably meant."""
    text, words = str(word)[:MOST_LETTERS], list(islice(options, MOST_COMPARED))
    begun = [option for option in words if len(text) >= 3 and option.startswith(text)]
    near = begun or difflib.get_close_matches(text, words, n=1, cutoff=0.6 if len(text) > 3 else 0.5)
    return near[0] if near else None


def suggestion(word: object, options: Iterable[str]) -> str:
    """Ends a clause with the nearest admissible word, if there is one near enough.

    >>> suggestion("gama", ["kind", "gamma"])
    "; did you mean 'gamma'?"
    >>> suggestion("xyz", ["kind", "gamma"])
    ';'
    """
    near = nearest(word, options)
    return f"; did you mean {near!r}?" if near else ";"


def listed(words: Iterable[object]) -> str:
    """Admissible words for the end of a sentence; of very many only the first.

    >>> listed(["kind", "gamma"]), listed([])
    ('kind, gamma', 'none')
    """
    known = [str(word) for word in words]
    more = f" and {len(known) - MOST_LISTED:,} more" if len(known) > MOST_LISTED else ""
    return f"{', '.join(known[:MOST_LISTED]) or 'none'}{more}"


def counted(number: int, word: str, many: str | None = None) -> str:
    """A number and its noun.

    >>> counted(1, "run"), counted(2, "run"), counted(2, "series", "series")
    ('1 run', '2 runs', '2 series')
    """
    return f"{number} {word if number == 1 else many or word + 's'}"


def require(word: str, options: Iterable[str], wrong: str, field: tuple[str | int, ...] = ()) -> None:
    """Raise an `InputError` about a field unless its word is one of the admissible ones."""
    known = list(options)
    if word not in known:
        raise InputError(f"{wrong}{suggestion(word, known)} admissible: {listed(known)}", field=field)
