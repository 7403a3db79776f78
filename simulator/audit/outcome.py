"""Outcomes of an audit, one per protocol, and tables of the numbers behind them."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from ..contract.noise_tests import Check
from .audit_statistics import Array, Test
from .realised import ReplayedPair
from .verdicts import Word


@dataclass(frozen=True)
class Game:
    """A distinguishing game that was played."""

    kind: str
    """{"runs", "mechanism alone"}."""
    pair: str
    agent: int
    on_data: Array
    on_neighbour: Array
    """`on_data` and `on_neighbour`: (n,) float64: Log-likelihood ratios."""
    test: Test
    claimed: float
    verified: float
    """`claimed` and `verified`: Epsilons of the attacked agent."""
    delta: float

    def at_least(self, level: float) -> float:
        """Lower bound on epsilon."""
        return self.test.epsilon(self.delta, level)


@dataclass
class Outcome:
    """Outcome of an audit for one protocol."""

    key: str
    label: str
    delta: float
    claimed: float
    verified: float
    """`delta`, `claimed` and `verified`: Values of the scenario's own first run."""
    audited: float = 0.0
    """Epsilon is at least this, at the level of the whole command."""
    word: Word = "not proved"
    """Proved, not proved or refuted."""
    checks: list[Check] = field(default_factory=list)
    """Tier A."""
    replays: list[ReplayedPair] = field(default_factory=list)
    """Tier B."""
    games: list[Game] = field(default_factory=list)
    """Tier C."""
    counterexample: str = ""
    """Why epsilon is infinite, in words."""
    failures: list[str] = field(default_factory=list)
    """Evidence against the implementation: noise that deviates from its releases, replays that fail, an audited epsilon
    above the verified one."""
    notes: list[str] = field(default_factory=list)
    """Checks that could not be made, with the reason."""
    profile: list[dict[str, Any]] = field(default_factory=list)
    """Rows ``curve, epsilon, delta``."""
    data: str = ""
    """Name of the task that it was audited on."""


COLUMNS = {
    "protocols": "protocol label delta claimed verified audited verdict counterexample failures notes",
    "noise": "protocol test count p found",
    "pairs": "protocol agent pair draws charges ratio power held claimed verified failure",
    "games": "protocol game agent pair bound threshold swapped hits trials false_hits false_trials claimed verified "
    "delta",
    "ratios": "protocol game data ratio",
    "profile": "protocol label curve epsilon delta",
}
"""Columns by table."""


def tables(outcomes: list[Outcome]) -> dict[str, pd.DataFrame]:
    """Tables by name: protocols, noise (tier A), pairs (B), games and ratios (C), profile (what the figure shows)."""
    rows: dict[str, list[tuple[Any, ...]]] = {name: [] for name in COLUMNS}
    for o in outcomes:
        numbers = o.delta, o.claimed, o.verified, o.audited
        texts = o.word, o.counterexample, "; ".join(o.failures), "; ".join(o.notes)
        rows["protocols"].append((o.key, o.label, *numbers, *texts))
        rows["noise"] += [(o.key, c.name, c.count, c.p, c.said) for c in o.checks]
        for r in o.replays:
            ratio = r.ratio if math.isfinite(r.ratio) else None
            found = r.draws, r.charges, ratio, r.power, r.held, r.claimed, r.verified, r.failure
            rows["pairs"].append((o.key, r.pair.agent, r.pair.name, *found))
        for g in o.games:
            test, counts = g.test, g.test.counts
            counted = counts.hits, counts.trials, counts.false_hits, counts.false_trials
            how = g.kind, g.agent, g.pair, test.bound, test.threshold, test.swapped
            rows["games"].append((o.key, *how, *counted, g.claimed, g.verified, g.delta))
            sides = (("D", g.on_data), ("D'", g.on_neighbour)) if g.kind == "runs" else ()
            rows["ratios"] += [(o.key, g.kind, side, float(one)) for side, values in sides for one in values]
        rows["profile"] += [(o.key, o.label, one["curve"], one["epsilon"], one["delta"]) for one in o.profile]
    return {name: pd.DataFrame(rows[name], columns=pd.Index(names.split())) for name, names in COLUMNS.items()}
