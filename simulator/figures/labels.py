"""What a legend says about a series: its name, what it claims and what broke off, at more or less length."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

from ..analysis.claimed_privacy import DELTA, EPSILON, MARK, ClaimedPrivacy

FULL, SHORT, MARKED = range(3)
"""How labels say epsilons: at length; a line each, with deltas once for all; only that a claim does not hold."""

LENGTHS = (FULL, SHORT, MARKED)


class Label(NamedTuple):
    """What a legend says about a series.

    Parameters
    ----------
    text : str
        Its protocol, and where it stands in the grid.
    claim : ClaimedPrivacy or None
        None without privacy, or where it is not to be said.
    stopped : str
        What broke off; empty if nothing did.
    """

    text: str
    claim: ClaimedPrivacy | None = None
    stopped: str = ""

    @property
    def loud(self) -> bool:
        """Whether something about it must be seen."""
        return bool(self.stopped) or (self.claim is not None and self.claim.flagged > 0)

    def said(self, length: int = FULL) -> str:
        """The lines of the legend."""
        parts = [self.text]
        if self.claim is not None:
            if length == FULL:
                parts.append(self.claim.text)
            elif length == SHORT:
                parts[0] += f" {self.claim.short}"
            elif self.claim.flagged:
                parts[0] += f" {MARK}"
        return "\n".join([*parts, *([self.stopped] if self.stopped else [])])


def said_once(labels: Iterable[Label], length: int) -> list[str]:
    """What a caption has to say in place of labels that are not at length."""
    claims = [label.claim for label in labels if label.claim is not None]
    deltas = sorted({delta for claim in claims for delta in claim.delta})
    if length == SHORT and deltas:
        span = "\N{EN DASH}".join(f"{delta:.3g}" for delta in dict.fromkeys((deltas[0], deltas[-1])))
        return [f"{DELTA}{span}"]
    if length == MARKED and any(claim.flagged for claim in claims):
        largest = max(max(claim.verified, default=0.0) for claim in claims if claim.flagged)
        said = "\N{INFINITY}" if math.isinf(largest) else f"{largest:.3g}"
        return [f"{MARK} claims less {EPSILON} than is verified (up to {said})"]
    return []
