"""Liu, Johansson and Shi (2022): figures 1 and 2, theorem 1."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np

from ...protocols.algorithms.subgradient_noise import verified_epsilon
from .attacks import LEVEL, NODES, drawn_row, hinged_row, theorem_1_scale
from .claims import Claim, Finding, Number, Paper, PaperFigure, Promise, Statement, measured
from .comparisons import ahead, ahead_along, promises, straight_line
from .runs import Point, Runs

BUDGET = "protocols.claimed.privacy.budget.epsilon"
DELTA = 0.01
PRINTED_ROWS, FEW_ROWS, EPOCHS = 20_000, 50, 3
"""Rows of a node at the paper's setting and at a small one, and how often each is drawn."""


def noise_slows(runs: Runs) -> Finding:
    """The private version is behind the other one, in convergence and in accuracy."""
    return Finding(
        (
            measured(
                "suboptimality of claimed above plain, at the end", ahead(runs, "claimed", "plain", "gap"), above=0
            ),
            measured(
                "accuracy of plain above claimed, at the end", ahead(runs, "plain", "claimed", "accuracy"), above=0
            ),
        )
    )


def ahead_of_duchi(runs: Runs) -> Finding:
    """Both versions converge faster than conventional dual averaging, to a higher accuracy."""
    numbers = [
        number
        for key in ("plain", "claimed")
        for number in ahead_along(runs, key, "duchi", {"gap": False, "accuracy": True}, "updates")
    ]
    return Finding(
        tuple(numbers),
        "Noise adds up like the square root of the rounds in sums of subgradients that grow like the rounds: what it "
        "costs is largest at first, where it is more than algorithm 1 gains on Duchi et al., and fades.",
    )


def theorem_2(runs: Runs) -> Finding:
    """The bound (7) of the expected suboptimality at every record, without its term of d(x*), which makes it larger."""
    numbers, ends = [], {}
    for key in ("plain", "claimed"):
        given = runs.manifests(key)[0]["scenario"]["protocols"][key]
        found = runs.curve(key, "gap", "updates")
        places = next(iter(found.values()))[0]
        values = np.mean([gaps[places >= 1] for _, gaps in found.values()], axis=0)
        rounds = places[places >= 1].astype(np.int64)
        bound = _bound_7(runs, given, max([1, *rounds.tolist()]))
        ratio = values / bound[rounds - 1]
        ends[key] = float(bound[-1])
        numbers.append(
            Number(
                f"largest ratio of the suboptimality of {key} to the bound", float(np.max(ratio, initial=0.0)), high=1.0
            )
        )
    told = ", ".join(f"{key} {bound:.3g}" for key, bound in ends.items())
    return Finding(
        tuple(numbers),
        "Measured at the mean of the nodes' averages, where the theorem speaks of y. The bound holds and says little: "
        f"at the end it is {told}, because of 1 - beta = {1 - _second(runs):.3g} on the ring.",
    )


def _second(runs: Runs) -> float:
    """beta, the second largest singular value of the ring's mixing matrix with weights 1/3."""
    nodes = len(runs.collection.agents["agent"].unique())
    return (1 + 2 * math.cos(2 * math.pi / nodes)) / 3


def _bound_7(runs: Runs, given: Mapping[str, Any], rounds: float) -> Any:
    """(t,) right side of (7) for t = 1 .. rounds at L = 1, without gamma d(x*) / A(t)."""
    t = np.arange(1, int(rounds) + 1, dtype=np.float64)
    total, gap = t * (t + 1) / 2, 1 - _second(runs)
    scale, budget = 0.0, (given.get("privacy") or {}).get("budget")
    if budget:
        rows = int(runs.collection.agents["samples"].max())
        scale = theorem_1_scale(rows, given["privacy"]["updates"], budget["epsilon"], budget["delta"])
    m = int(runs.manifests("plain")[0]["task"]["dimension"])
    each = 0.5 + 2 / gap + m * scale**2 / 2 + 2 * math.sqrt(m) * scale / gap
    return np.cumsum(t**2 / (given["mu"] * total + given["gamma"])) * each / total


def rate(runs: Runs) -> Finding:
    """Slope of the logarithm of the suboptimality over that of t, in the last nine tenths of the runs without noise."""
    slopes = []
    for places, gaps in runs.curve("plain", "gap", "updates").values():
        late = (places >= places[-1] / 10) & (gaps > 0)
        slopes.append(straight_line(np.log(places[late]), np.log(gaps[late]))[0])
    return Finding(
        (measured("slope of log suboptimality over log t, plain", slopes, below=-0.9),),
        "A rate of 1 / t is a slope of -1, to which a margin of a tenth is left.",
    )


def at_least(runs: Runs, point: Point | None = None) -> float:
    """Lower bound on the epsilon of a node alone, with the noise and the constants of the private runs."""
    given = runs.manifests("claimed", point)[0]["scenario"]["protocols"]["claimed"]
    budget, rounds = given["privacy"]["budget"], given["privacy"]["updates"]
    rows = int(runs.collection.agents["samples"].max())
    scale = theorem_1_scale(rows, rounds, budget["epsilon"], budget["delta"])
    return hinged_row(rows, rounds, scale, budget["delta"], mu=given["mu"], gamma=given["gamma"])


HINGED = (
    f"Lower bounds: exact likelihood ratios of what {NODES:,} nodes alone release, on either of two data sets with one "
    f"row other than 0, whose label is turned; each is wrong with a probability of at most {LEVEL:g}."
)


def figure_1_promise(runs: Runs) -> Finding:
    """Claimed and verified epsilon of the private run, and what the same guarantee costs in truth."""
    proved, claimed = (runs.final(key, "gap").mean() for key in ("verified", "claimed"))
    target = runs.manifests("verified")[0]["scenario"]["protocols"]["verified"]["privacy"]["target"]["verified"]
    why = (
        f"See theorem 1 below. {HINGED} With noise for a verified epsilon of {target:g} the suboptimality at the end "
        f"is {proved:.3g} instead of {claimed:.3g}."
    )
    return promises(runs, ["claimed"], why=why, at_least=lambda _: at_least(runs))


def utility_degrades(runs: Runs) -> Finding:
    """Smaller epsilons end with larger suboptimality."""
    numbers = []
    for small, large in pairwise(runs.values(BUDGET)):
        rise = runs.final("claimed", "gap", point={BUDGET: small}) - runs.final("claimed", "gap", point={BUDGET: large})
        numbers.append(measured(f"suboptimality at epsilon {small:g} above that at {large:g}", rise, above=0))
    return Finding(tuple(numbers))


def figure_2_promises(runs: Runs) -> Finding:
    """Claimed and verified epsilon over the budgets."""
    found = []
    for epsilon in runs.values(BUDGET):
        point: Point = {BUDGET: epsilon}
        found.append(promises(runs, ["claimed"], point=point, at_least=lambda _, at=point: at_least(runs, at)))
    return Finding(
        tuple(number for finding in found for number in finding.numbers),
        "See theorem 1 below: noise of the printed deviation is small against 2 L, by which a drawn row moves a "
        "subgradient. The smaller it is, the less does it help that a row is seldom drawn; at the smallest epsilon it "
        f"is large enough. {HINGED}",
    )


def theorem_1() -> Finding:
    """The noise of the theorem at the paper's setting and at small data sets."""
    numbers, scales = [], []
    for rows in (PRINTED_ROWS, FEW_ROWS):
        rounds = EPOCHS * rows
        scale = theorem_1_scale(rows, rounds, 1.0, DELTA)
        scales.append(scale)
        epsilon, lower = verified_epsilon(scale / 2, rounds, 1 / rows, DELTA), drawn_row(rows, rounds, scale, DELTA)
        name = f"verified epsilon, q = {rows:,}, {EPOCHS} epochs, claimed 1"
        numbers.append(Promise(name, epsilon, high=1.0, at_least=lower))
    return Finding(
        tuple(numbers),
        "The printed statement divides the sensitivity of a subgradient at one row by the number of rows q. A drawn "
        "row moves that subgradient by up to 2 L; being drawn with probability 1 / q is subsampling, and is "
        f"accounted for as such here (L = 1, delta = {DELTA}). At q = {PRINTED_ROWS:,} the noise has deviation "
        f"{scales[0]:.3g} against a shift of 2; over {EPOCHS} epochs a row is drawn with probability "
        f"{1 - (1 - 1 / PRINTED_ROWS) ** (EPOCHS * PRINTED_ROWS):.2f}. Counterexample: one row other than 0, slopes of "
        "1, and the event that some message lies beyond a threshold; its probabilities, and the lower bound, have "
        "closed forms. For small data sets the claim is sound.",
    )


PAPER = Paper(
    name="liu2022",
    authors="Liu, Johansson and Shi",
    year=2022,
    title="Private stochastic dual averaging for decentralized empirical risk minimization",
    venue="NecSys 2022",
    remarks=(
        "Runs are on a synthetic stand-in of the same kind as the data set *epsilon*, with 200 features instead of "
        "2,000, and so are the verdicts. Figures 1 and 2 have q = 2,000 rows a node instead of 20,000, "
        "so that theorem 1 takes sqrt(10) times the noise. Figure 2 is done with q = 20,000 as well, and behind "
        "`--full` with 2,000 features.",
        "F* comes from an exact solver, not from a stochastic one.",
    ),
    figures=(
        PaperFigure(
            "liu2022-fig1",
            "Figure 1",
            "Algorithm 1 with and without noise, and dual averaging of Duchi et al. (2011), on a ring of 20 nodes.",
            "liu2022-fig1",
            quick=(
                "task.samples=200",
                "stop.updates=600",
                "record.every=30",
                "protocols.claimed.privacy.updates=600",
                "protocols.verified.privacy.updates=600",
                "seeds.run=2",
            ),
            quick_seeds=0,
        ),
        PaperFigure(
            "liu2022-fig2",
            "Figure 2",
            "Suboptimality and accuracy after three epochs, by claimed epsilon.",
            "liu2022-fig2",
            quick=(
                "task.samples=200",
                "stop.updates=600",
                "record.every=600",
                "protocols.claimed.privacy.updates=600",
                "seeds.run=2",
                f"sweep={{{BUDGET}: [0.2, 0.6, 1.0]}}",
            ),
            quick_seeds=0,
        ),
        PaperFigure(
            "liu2022-fig2-paper",
            "Figure 2, as many rows as in the paper",
            "The same with q = 20,000 rows of the stand-in at each node, and 60,000 rounds.",
            "liu2022-fig2-paper",
            quick=(
                "task.samples=300",
                "stop.updates=900",
                "record.every=900",
                "protocols.claimed.privacy.updates=900",
                f"sweep={{{BUDGET}: [0.2, 0.6, 1.0]}}",
            ),
            quick_seeds=1,
        ),
        PaperFigure(
            "liu2022-fig2-wide",
            "Figure 2, at the size of the paper",
            "The same with 2,000 features instead of 200, as in the paper.",
            "liu2022-fig2-wide",
            quick=(
                "task.samples=300",
                "task.dimension=300",
                "stop.updates=900",
                "record.every=900",
                "protocols.claimed.privacy.updates=900",
                f"sweep={{{BUDGET}: [0.2, 0.6, 1.0]}}",
            ),
            quick_seeds=1,
            large=True,
        ),
    ),
    claims=(
        Claim(
            "liu2022-fig1",
            "The private version converges more slowly, to a slightly lower accuracy.",
            noise_slows,
            "all of these parts",
        ),
        Claim(
            "liu2022-fig1",
            "Both outperform the algorithm of Duchi et al. in convergence and accuracy.",
            ahead_of_duchi,
            "all of these parts",
        ),
        Claim(
            "liu2022-fig1",
            "Theorem 2: the expected suboptimality is below the bound (7) at all t.",
            theorem_2,
            "for all",
        ),
        Claim("liu2022-fig1", "Corollary 2: without noise Algorithm 1 converges like 1 / t.", rate, "for all"),
        Claim("liu2022-fig1", "The private run is (1, 0.01)-differentially private.", figure_1_promise),
        Claim("liu2022-fig2", "Utility degenerates as epsilon decreases.", utility_degrades, "ordering"),
        Claim("liu2022-fig2", "Every run has the epsilon that it claims.", figure_2_promises),
        Claim(
            "liu2022-fig2-paper", "Utility degenerates as epsilon decreases (q = 20,000).", utility_degrades, "ordering"
        ),
        Claim("liu2022-fig2-paper", "Every run has the epsilon that it claims (q = 20,000).", figure_2_promises),
        Claim(
            "liu2022-fig2-wide",
            "Utility degenerates as epsilon decreases (q = 20,000, 2,000 features).",
            utility_degrades,
            "ordering",
        ),
    ),
    statements=(
        Statement(
            "Theorem 1",
            "noise of deviation 2 L sqrt(3 T log(1 / delta)) / (q epsilon) makes T rounds (epsilon, "
            "delta)-differentially private.",
            theorem_1,
        ),
    ),
)
