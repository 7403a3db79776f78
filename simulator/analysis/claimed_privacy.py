"""Privacy claims of private runs, beside what was verified of them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

MARK = "\N{WARNING SIGN}"
PASSED = "passed"
"""How the text of a contract that holds begins."""
EPSILON, DELTA = "\N{GREEK SMALL LETTER EPSILON}", "\N{GREEK SMALL LETTER DELTA}="
"""How legends write them."""


@dataclass(frozen=True)
class ClaimedPrivacy:
    """Claimed and verified epsilons of a protocol, over all its runs."""

    claimed: tuple[float, ...]
    verified: tuple[float, ...]
    delta: tuple[float, ...]
    """`claimed`, `verified` and `delta`: Smallest and largest; empty where it was not computed."""
    flagged: int
    runs: int
    """`flagged` and `runs`: Number of runs whose claim is below what was verified, and number of all runs."""
    assumed_public: tuple[str, ...]
    """Inputs that are computed from private data and were treated as public."""
    mechanism: str
    because: tuple[str, ...] = ()
    """Reasons why nothing could be verified, where that is so."""
    unprotected: tuple[str, ...] = ()
    """What is not protected although the protocol has noise: ``role: reason``."""
    contract: tuple[str, ...] = ()
    """Results of the protocol's privacy contract: what was replayed, or why not."""
    verified_by: tuple[str, ...] = ()
    """Basis of the verified epsilons: ``construction``, of shipped protocols, or ``replay``, of custom ones."""
    unverified: int = 0
    """Runs without a verified epsilon."""

    @property
    def details(self) -> str:
        """Text beside the two numbers: why one is infinite, who is not protected, what was assumed public."""
        parts = [f"verified by {strength}" for strength in self.verified_by]
        parts += [f"not verified{self._share(self.unverified)} because {reason}" for reason in self.because]
        parts += [f"not protected: {who}" for who in self.unprotected]
        passed = [text for text in self.contract if text.startswith(PASSED)]  # else it is a reason
        parts += [f"contract {text}" for text in briefly(passed)]
        return "; ".join([*parts, f"assumed public: {', '.join(self.assumed_public) or 'nothing'}"])

    @property
    def text(self) -> str:
        """One line for a legend; marked where the claim is below what was verified."""
        delta = f", {DELTA}{_span(self.delta)}"
        if not self.verified:
            return f"({EPSILON} claimed {_span(self.claimed)}, not verified)"
        digits = 3
        while digits < 17 and self.flagged and _span(self.claimed, digits) == _span(self.verified, digits):
            digits += 1
        claimed, verified = _span(self.claimed, digits), _span(self.verified, digits)
        if not self.flagged:
            return f"({EPSILON} claimed {claimed}, verified {verified}{delta})"
        return f"{MARK} {EPSILON} claimed {claimed} < verified {verified}{self._share(self.flagged)}{delta}"

    def _share(self, count: int) -> str:
        return f" in {count} of {self.runs} runs" if 0 < count < self.runs else ""


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
        verified_by=tuple(dict.fromkeys(str(e["verified_by"]) for e in entries if e.get("verified_by"))),
        unverified=sum(math.isinf(float(e["verified"])) for e in entries if e.get("verified") is not None),
        because=tuple(dict.fromkeys(reason for entry in entries for reason in entry.get("because") or ())),
        unprotected=tuple(
            dict.fromkeys(
                f"the {role} ({', '.join(reasons)})"
                for entry in entries
                for role, reasons in (entry.get("unprotected") or {}).items()
            )
        ),
    )


def replayed_elsewhere(manifest: Mapping[str, Any]) -> bool:
    """True if a run's protocol was replayed at other points of the sweep alone, so that its epsilon is not known."""
    return (manifest.get("contract") or {}).get("status") == "elsewhere"


def briefly(contracts: Iterable[str]) -> list[str]:
    """Shorten the results of contracts at the points of a sweep: one replay that passed stands for all that did.

    >>> briefly(["passed: 8 steps, replayed here (a = 1, seed 1)", "passed: 9 steps, replayed here (a = 2, seed 1)"])
    ['passed: 8 steps, replayed here (a = 1, seed 1), and at 1 other point']
    """
    texts = list(dict.fromkeys(contracts))
    passed = [text for text in texts if text.startswith(PASSED)]
    if not passed:
        return texts
    others = [text.replace("not verified here", "not verified elsewhere") for text in texts if text not in passed]
    more = len(passed) - 1
    said = f"{passed[0]}, and at {more} other point{'' if more == 1 else 's'}" if more else passed[0]
    return [said, *others]


def is_flagged(entry: dict[str, Any]) -> bool:
    """True if a manifest's privacy entry claims less than was verified."""
    claimed, verified = entry.get("claimed"), entry.get("verified")
    below = claimed is not None and verified is not None and float(claimed) < float(verified)
    return below if entry.get("flagged") is None else bool(entry["flagged"])


def _extremes(values: Iterable[Any]) -> tuple[float, ...]:
    known = [float(value) for value in values if value is not None]
    return (min(known), max(known)) if known else ()


def _span(values: tuple[float, ...], digits: int = 3) -> str:
    return "\N{EN DASH}".join(dict.fromkeys(epsilon_text(value, digits) for value in values)) or "not stated"


def epsilon_text(value: float, digits: int = 3) -> str:
    """Text of an epsilon; a dash for one that is not known."""
    if math.isnan(value):
        return "\N{EN DASH}"
    return "\N{INFINITY}" if math.isinf(value) else f"{value:.{digits}g}"
