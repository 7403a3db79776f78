"""Values that nobody expects, and ways to put them into plain data."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from typing import Any

Keys = tuple[str | int, ...]

VALUES: list[Any] = [
    None, True, False, 0, -1, 1, 2, 3, 7, 10**6, 10**12, 2**63, 2**64, -(2**70), 0.0, -0.5, 0.5, 1.0, 1e-300, 1e-9,
    1e300, float("inf"), float("nan"), "",
    "x", "../..", "/dev/zero", "\x00", "\n", "a" * 300, "inf", "rounds", "exchange",
    "async", "never", [], [None], [1, 2], [0.5, 0.5], ["x"], [[[]]], {}, {"kind": "x"}, {"x": {"y": 1}}, [{}],
]  # fmt: skip


def places(data: Any, keys: Keys = ()) -> Iterator[Keys]:
    """Where something stands in plain data."""
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in items:
        yield (*keys, key)
        yield from places(value, (*keys, key))


def at(data: Any, keys: Keys) -> Any:
    """What stands there."""
    for key in keys:
        data = data[key]
    return data


def mutate(data: Any, rng: random.Random, others: list[Any] | None = None) -> str:
    """Change one thing in plain data, in place; what, in words."""
    found = list(places(data))
    if not found:
        return "nothing"
    keys = rng.choice(found)
    above, last = at(data, keys[:-1]), keys[-1]
    kind = rng.choice(["replace", "replace", "scale", "delete", "add", "other", "swap"])
    if kind == "scale" and isinstance(above[last], int | float) and not isinstance(above[last], bool):
        factor = rng.choice([0, -1, 2, 3, 10, 0.5, 0.1, 1e-6, 1e6])
        value = above[last] * factor
        above[last] = int(value) if isinstance(above[last], int) and value == int(value) else value
    elif kind == "delete":
        del above[last]
    elif kind == "add" and isinstance(above, dict):
        above[rng.choice(["kind", "x", "like", "schedule", "label", "seed"])] = copy.deepcopy(rng.choice(VALUES))
    elif kind == "other" and others:
        donor = rng.choice(others)
        same = [where for where in places(donor) if where[-1] == last]
        above[last] = copy.deepcopy(at(donor, rng.choice(same)) if same else rng.choice(VALUES))
    elif kind == "swap" and len(found) > 1:
        above[last] = copy.deepcopy(at(data, rng.choice(found)))
    else:
        above[last] = copy.deepcopy(rng.choice(VALUES))
    return f"{kind} {keys}"
