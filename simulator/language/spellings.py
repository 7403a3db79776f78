"""Words that used to be others: old scenarios and old results are read as what they mean today.

What can be proved of an epsilon is called *verified*: ``verified`` where it stands as a word (a budget's ``by``, a
statement's ``claimed_by``), beside ``basic_composition`` and ``advanced_composition``; ``epsilon_verified`` as a
recorded metric or a column, beside ``epsilon_claimed``. The engines are called ``event`` and ``batched``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .yaml_source import Keys

METRICS: Mapping[str, str] = {"epsilon_tight": "epsilon_verified"}
"""Recorded metrics, and columns of the agents' table, by their old names."""

WORDS: Mapping[str, str] = {
    "tight": "verified",
    "basic": "basic_composition",
    "kairouz": "advanced_composition",
}
"""Compositions by their old names."""

ENGINES: Mapping[str, str] = {"reference": "event", "fast": "batched"}
"""Engines by their old names."""

PLACES: Mapping[str, Mapping[str, str]] = {
    "/engine": ENGINES,
    "/scenario.engine": ENGINES,
    "/sweep.engine": ENGINES,
    "/sweep.engine.values": ENGINES,
    "/grid.engine": ENGINES,
    "/quick.engine": ENGINES,
    "/figures.at.engine": ENGINES,
    "budget.by": WORDS,
    "privacy.claimed_by": WORDS,
    "figures.x": METRICS,
    "figures.y": METRICS,
    "figures.facet": METRICS,
    "target.metric": METRICS,
}
"""Where they stand: how a path ends, in a scenario, a manifest or an index, without places in lists; a whole path after
a slash."""

CLAIMED = "measures.epsilon_claimed.function"
"""Where a manifest says in words by which composition an epsilon is claimed."""

_OLD = frozenset(word for words in PLACES.values() for word in words)


_CLAIMED_BY = re.compile(r"(?<=^claimed by )\w+")


def may_be_old(text: str) -> bool:
    """Whether a JSON text has an old word anywhere; going through thousands of manifests without takes its time."""
    return any(f'"{word}"' in text for word in _OLD)


def respelled(
    data: Any, told: Callable[[Keys, str, str], None] = lambda keys, old, new: None, *, keys: Keys = ()
) -> Any:
    """Plain data with today's words.

    Parameters
    ----------
    data : any
        Of a scenario, a manifest or an index.
    told : callable, optional
        Called with the keys, the old and the new word of everything that was found.
    keys : Keys
        Where the data stand.

    Examples
    --------
    >>> respelled({"figures": [{"y": "epsilon_tight", "title": "epsilon_tight"}]})
    {'figures': [{'y': 'epsilon_verified', 'title': 'epsilon_tight'}]}
    """
    if isinstance(data, Mapping):
        return {key: respelled(value, told, keys=(*keys, key)) for key, value in data.items()}
    if isinstance(data, list):
        return [respelled(value, told, keys=(*keys, rank)) for rank, value in enumerate(data)]
    if not isinstance(data, str):
        return data
    path = ".".join(key for key in keys if isinstance(key, str))
    if path == CLAIMED:
        return _CLAIMED_BY.sub(lambda found: WORDS.get(found[0], found[0]), data)
    if data not in _OLD:
        return data
    for place, words in PLACES.items():
        if data in words and (f"/{path}" == place or f".{path}".endswith(f".{place}")):
            told(keys, data, words[data])
            return words[data]
    return data
