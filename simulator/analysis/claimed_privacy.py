"""What private runs claim, beside what was verified of it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

MARK = "\N{WARNING SIGN}"
EPSILON, DELTA = "\N{GREEK SMALL LETTER EPSILON}", "\N{GREEK SMALL LETTER DELTA}="
"""How legends write them."""


@dataclass(frozen=True)
class ClaimedPrivacy:
    """What a protocol's runs claim and what was verified, over all its runs.

    Parameters
    ----------
    claimed, verified, delta : tuple of float
        Smallest and largest; empty where it was not computed.
    flagged, runs : int
        Runs whose claim is below what was verified, of how many.
    assumed_public : tuple of str
        Inputs that are computed from private data and were treated as public.
    mechanism : str
    because : tuple of str
        Why nothing could be verified, where that is so.
    unprotected : tuple of str
        What is not protected although the protocol has noise: ``role: reason``.
    contract : tuple of str
        What the protocol's privacy contract came to: what was replayed, or why not.
    """

    claimed: tuple[float, ...]
    verified: tuple[float, ...]
    delta: tuple[float, ...]
    flagged: int
    runs: int
    assumed_public: tuple[str, ...]
    mechanism: str
    because: tuple[str, ...] = ()
    unprotected: tuple[str, ...] = ()
    contract: tuple[str, ...] = ()

    @property
    def details(self) -> str:
        """What stands beside the two numbers: why one is infinite, who is not protected, what was assumed public."""
        parts = [f"not verified because {reason}" for reason in self.because]
        parts += [f"not protected: {who}" for who in self.unprotected]
        parts += [f"contract {text}" for text in self.contract if text.startswith("passed")]  # else it is a reason
        return "; ".join([*parts, f"assumed public: {', '.join(self.assumed_public) or 'nothing'}"])

    @property
    def text(self) -> str:
        """One line for a legend; marked where the claim is below what was verified."""
        return self._said(f", {DELTA}{_span(self.delta)}")

    @property
    def short(self) -> str:
        """The line of an epsilon, shorter, for where delta is said once for all."""
        return self._said("")

    def _said(self, delta: str) -> str:
        if not self.verified:
            return f"({EPSILON} claimed {_span(self.claimed)}, not verified)"
        digits = 3
        while digits < 17 and self.flagged and _span(self.claimed, digits) == _span(self.verified, digits):
            digits += 1
        claimed, verified = _span(self.claimed, digits), _span(self.verified, digits)
        if not self.flagged:
            return f"({EPSILON} claimed {claimed}, verified {verified}{delta})"
        share = "" if self.flagged == self.runs else f" in {self.flagged} of {self.runs} runs"
        return f"{MARK} {EPSILON} claimed {claimed} < verified {verified}{share}{delta}"


def claim_of(manifests: Iterable[dict[str, Any]]) -> ClaimedPrivacy | None:
    """The privacy claim of a protocol's runs; None where no run is private."""
    entries = [manifest["privacy"] for manifest in manifests if manifest.get("privacy")]
    if not entries:
        return None
    public = dict.fromkeys(name for entry in entries for name in entry.get("assumed_public") or ())
    return ClaimedPrivacy(
        claimed=_extremes(entry.get("claimed") for entry in entries),
        verified=_extremes(entry.get("verified") for entry in entries),
        delta=_extremes(entry.get("delta") for entry in entries),
        flagged=sum(is_flagged(entry) for entry in entries),
        runs=len(entries),
        assumed_public=tuple(public),
        contract=tuple(dict.fromkeys(e["contract"] for e in entries if e.get("contract"))),
        mechanism=", ".join(dict.fromkeys(str(e["mechanism"]) for e in entries if e.get("mechanism"))),
        because=tuple(dict.fromkeys(reason for entry in entries for reason in entry.get("because") or ())),
        unprotected=tuple(
            dict.fromkeys(
                f"the {role} ({', '.join(reasons)})"
                for entry in entries
                for role, reasons in (entry.get("unprotected") or {}).items()
            )
        ),
    )


def is_flagged(entry: dict[str, Any]) -> bool:
    """Whether a manifest's privacy entry claims less than was verified."""
    claimed, verified = entry.get("claimed"), entry.get("verified")
    below = claimed is not None and verified is not None and float(claimed) < float(verified)
    return below if entry.get("flagged") is None else bool(entry["flagged"])


def _extremes(values: Iterable[Any]) -> tuple[float, ...]:
    known = [float(value) for value in values if value is not None]
    return (min(known), max(known)) if known else ()


def _span(values: tuple[float, ...], digits: int = 3) -> str:
    return "\N{EN DASH}".join(dict.fromkeys(epsilon_text(value, digits) for value in values)) or "not stated"


def epsilon_text(value: float, digits: int = 3) -> str:
    """How an epsilon is written; a dash for one that is not known."""
    if math.isnan(value):
        return "\N{EN DASH}"
    return "\N{INFINITY}" if math.isinf(value) else f"{value:.{digits}g}"
