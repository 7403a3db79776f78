"""What an audit came to: one outcome per protocol, and the numbers behind it as tables."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from ..contract.noise_tests import Check
from .realised import ReplayedPair
from .statistics import Array, Test
from .verdicts import Word


@dataclass(frozen=True)
class Game:
    """A distinguishing game that was played.

    Parameters
    ----------
    kind : {"runs", "mechanism alone", "guesses"}
    pair : str
    agent : int
        -1 where it is about all agents.
    on_data, on_neighbour : (n,) float64
        Log-likelihood ratios.
    test : Test
    claimed, verified : float
        Epsilons of the attacked agent.
    delta : float
    """

    kind: str
    pair: str
    agent: int
    on_data: Array
    on_neighbour: Array
    test: Test
    claimed: float
    verified: float
    delta: float

    def at_least(self, level: float) -> float:
        """Lower bound on epsilon."""
        return self.test.epsilon(self.delta, level)


@dataclass
class Outcome:
    """What came out about one protocol.

    Parameters
    ----------
    key, label : str
    delta, claimed, verified : float
        As of the scenario's own first run.
    audited : float
        Epsilon is at least this, at the level of the whole command.
    word : str
        Proved, not proved or refuted.
    checks : list of Check
        Tier A.
    replays : list of ReplayedPair
        Tier B.
    games : list of Game
        Tier C.
    counterexample : str
        Why epsilon is infinite, in words.
    failures : list of str
        What speaks against the implementation: noise that is not what releases say, replays that fail, an audited
        epsilon above the verified one.
    notes : list of str
        What could not be looked at, and why.
    profile : list of dict
        Rows ``curve, epsilon, delta``.
    data : str
        Name of the task that it was audited on.
    """

    key: str
    label: str
    delta: float
    claimed: float
    verified: float
    audited: float = 0.0
    word: Word = "not proved"
    checks: list[Check] = field(default_factory=list)
    replays: list[ReplayedPair] = field(default_factory=list)
    games: list[Game] = field(default_factory=list)
    counterexample: str = ""
    failures: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    profile: list[dict[str, Any]] = field(default_factory=list)
    data: str = ""


def tables(outcomes: list[Outcome]) -> dict[str, pd.DataFrame]:
    """Tables by name: protocols, noise (tier A), pairs (B), games and ratios (C), profile (what the figure shows)."""
    return {
        "protocols": pd.DataFrame(_protocols(outcomes)),
        "noise": _frame(
            [
                {"protocol": o.key, "test": c.name, "count": c.count, "p": c.p, "found": c.said}
                for o in outcomes
                for c in o.checks
            ],
            ["protocol", "test", "count", "p", "found"],
        ),
        "pairs": _frame(
            [_pair(o.key, r) for o in outcomes for r in o.replays],
            [
                "protocol",
                "agent",
                "pair",
                "draws",
                "charges",
                "ratio",
                "power",
                "held",
                "claimed",
                "verified",
                "failure",
            ],
        ),
        "games": _frame(
            [_game(o.key, g) for o in outcomes for g in o.games],
            [
                "protocol",
                "game",
                "agent",
                "pair",
                "bound",
                "threshold",
                "swapped",
                "hits",
                "trials",
                "false_hits",
                "false_trials",
                "claimed",
                "verified",
                "delta",
            ],
        ),
        "ratios": _frame(
            [
                {"protocol": o.key, "game": g.kind, "data": side, "ratio": float(ratio)}
                for o in outcomes
                for g in o.games
                if g.kind == "runs"
                for side, values in (("D", g.on_data), ("D'", g.on_neighbour))
                for ratio in values
            ],
            ["protocol", "game", "data", "ratio"],
        ),
        "profile": _frame(
            [{"protocol": o.key, "label": o.label, **row} for o in outcomes for row in o.profile],
            ["protocol", "label", "curve", "epsilon", "delta"],
        ),
    }


def _frame(rows: list[dict[str, Any]], columns: list[str]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=pd.Index(columns))


def _protocols(outcomes: list[Outcome]) -> list[dict[str, Any]]:
    return [
        {
            "protocol": o.key,
            "label": o.label,
            "delta": o.delta,
            "claimed": o.claimed,
            "verified": o.verified,
            "audited": o.audited,
            "verdict": o.word,
            "counterexample": o.counterexample,
            "failures": "; ".join(o.failures),
            "notes": "; ".join(o.notes),
        }
        for o in outcomes
    ]


def _pair(key: str, one: ReplayedPair) -> dict[str, Any]:
    return {
        "protocol": key,
        "agent": one.pair.agent,
        "pair": one.pair.name,
        "draws": one.draws,
        "charges": one.charges,
        "ratio": one.ratio if math.isfinite(one.ratio) else None,
        "power": one.power,
        "held": one.held,
        "claimed": one.claimed,
        "verified": one.verified,
        "failure": one.failure,
    }


def _game(key: str, game: Game) -> dict[str, Any]:
    counts = game.test.counts
    return {
        "protocol": key,
        "game": game.kind,
        "agent": game.agent,
        "pair": game.pair,
        "bound": game.test.bound,
        "threshold": game.test.threshold,
        "swapped": game.test.swapped,
        "hits": counts.hits,
        "trials": counts.trials,
        "false_hits": counts.false_hits,
        "false_trials": counts.false_trials,
        "claimed": game.claimed,
        "verified": game.verified,
        "delta": game.delta,
    }
