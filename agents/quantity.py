"""Quantities that recorded numbers measure, so that only numbers of one kind are compared."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal

Scale = Literal[
    "sum over agents",
    "mean over agents",
    "sum over rows",
    "mean over rows",
    "total of the run",
    "worst agent",
    "unknown",
]
"""How many agents or rows make up one number."""

OWN, AVERAGE, CENTRAL = "every agent's own model", "the agents' average model", "the model of one agent"
"""Whose models a number is about."""


@dataclass(frozen=True)
class Quantity:
    """Quantity that a number measures: a function, its scale, the samples it is taken over, and whose models it judges.

    Two numbers are of one kind if all of this agrees but the scale, and if they have one `identity`. Where the scale
    alone differs, numbers divided by their `times` are of one scale.
    """

    function: str
    """In words, with its constants."""
    scale: Scale
    """One of `Scale`."""
    rows: str = ""
    """Such as ``training rows``; empty where no rows have a part in it."""
    models: str = ""
    """Whose it judges, such as `OWN`; empty where no model has a part in it."""
    identity: str = ""
    """A hash of everything that the function depends on but for its scale: constants, data, graph. Empty if the words
    of `function` determine it."""
    times: float = 1.0
    """How many times the function of this identity the number is, finite and not 0: the number of agents for a sum over
    agents of what the identity takes the mean of."""

    @property
    def words(self) -> str:
        """The quantity in words."""
        scale = "" if self.scale == "unknown" else self.scale
        return ", ".join(
            filter(None, [self.function, scale, self.rows and f"on {self.rows}", self.models and f"at {self.models}"])
        )

    def same_function(self, other: Quantity) -> bool:
        """True if two numbers are of one kind, up to their scale."""
        names = ("rows", "models", "identity")
        mine, theirs = ([getattr(each, name) for name in names] for each in (self, other))
        return mine == theirs and (bool(self.identity) or self.function == other.function)

    def same(self, other: Quantity) -> bool:
        """True if two numbers are of one kind and of one scale."""
        return self.same_function(other) and self.times == other.times

    def as_dict(self) -> dict[str, Any]:
        """The quantity as a mapping for a manifest."""
        return asdict(self)

    @classmethod
    def read(cls, stored: Mapping[str, Any]) -> Quantity:
        """Restore a quantity from what `as_dict` returned; fields of newer versions are ignored."""
        return cls(**{field.name: stored[field.name] for field in fields(cls) if field.name in stored})


def identified(*parts: object) -> str:
    """A hash of what a function depends on: texts, numbers to twelve digits, and arrays as bytes."""
    digest = hashlib.blake2s(digest_size=16)
    for part in parts:
        text = f"{part:.12g}" if isinstance(part, float) else f"{part}"
        content = part if isinstance(part, bytes) else text.encode()
        digest.update(len(content).to_bytes(8, "little") + content)
    return digest.hexdigest()


WAY_OUT = "set record.objective_of, which measures all protocols by one objective"


def unlike(metric: str, ours: tuple[str, Quantity | None], theirs: tuple[str, Quantity | None]) -> str:
    """A sentence, without its full stop, about two numbers of a metric that are not of one kind, and the way out.

    Whose each is stands before what it measures, None where nobody knows.
    """
    words = ["unknown" if quantity is None else quantity.words for _, quantity in (ours, theirs)]
    out = f"; {WAY_OUT}" if metric == "objective" else ""
    if words[0] == words[1]:
        other = "data, graphs or weights" if ours[1] and ours[1].function else "functions, data, graphs or weights"
        said = f"are not of one kind: both are {words[0]}, but of other {other}"
        return f"{metric} of {ours[0]} and of {theirs[0]} {said}{out}"
    return f"{metric} of {ours[0]} ({words[0]}) and of {theirs[0]} ({words[1]}) are not of one kind{out}"


def epsilon_quantity(which: str, delta: float, unit: str, adjacency: str, observer: str) -> Quantity:
    """Return the quantity of an epsilon: its delta, the unit that it protects, its adjacency and its observer."""
    words = [
        f"{which} epsilon at delta {delta:.6g}",
        unit and f"of {'an' if unit[0] in 'aeiou' else 'a'} {unit}",
        adjacency,
    ]
    words.append(observer and f"against {observer}")
    identity = identified(delta, unit, adjacency, observer)
    return Quantity(", ".join(filter(None, words)), "worst agent", identity=identity)
