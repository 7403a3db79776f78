"""What Zhang, Khalili and Liu (2018) claim, checked on runs: figures 1 to 4, theorem 4.1."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import pairwise

import numpy as np

from ...protocols.privacy.accounting import Charge, basic_composition_bound
from ..storage.files import Frame
from .claims import Finding, Number, Promise, measured
from .comparisons import ahead
from .runs import Runs, Series

PAIRS = (("pp", "dvp"), ("pp-equal", "dvp"), ("pp-equal", "dvp-growing"))
"""Penalty perturbation and what it is compared with; the last pair has the same alpha(t)."""

PRIVATE = ("pp", "pp-equal", "dvp", "dvp-growing")
LAST = 10
"""Rounds over which a converged loss no longer moves."""


def converges(runs: Runs) -> Finding:
    """The loss settles, and it does so at the optimum; nothing is random in these runs."""
    numbers = []
    for key in ("fixed", "growing", "different"):
        end = runs.common_end([key], "training_loss", "time")
        last, before = (float(runs.at(t, key, "training_loss", "time").iloc[0]) for t in (end, end - LAST))
        numbers.append(Number(f"{key}: change of the loss over the last {LAST} rounds", last - before, 0, -1e-4, 1e-4))
    for key in ("fixed", "growing", "different"):
        gap = runs.final(key, "gap")
        optimum = runs.final(key, "objective", "value") - gap
        share, away = float((gap / optimum).iloc[0]), float(runs.final(key, "distance").iloc[0])
        numbers.append(Number(f"{key}: objective's relative distance from the optimum", share, 0, -1e-3, 1e-3))
        numbers.append(Number(f"{key}: models' relative distance from the optimum", away, high=0.01))
    return Finding(
        tuple(numbers),
        "Theorem 3.1 asks for bounded penalties. These grow geometrically: steps shrink as fast, so that the models "
        "freeze on their way. A loss that no longer moves is not yet the optimum's.",
    )


def growth_slows(runs: Runs) -> Finding:
    """The faster penalties grow, the larger the loss after as many rounds, which falls in all of these runs."""
    keys = list(runs.collection.labels)
    end, numbers = runs.common_end(keys, "training_loss", "time"), []
    for place in (end // 2, end):
        loss = {key: float(runs.at(place, key, "training_loss", "time").iloc[0]) for key in keys}
        for slow, fast in pairwise(keys):
            name = f"loss after {place:g} rounds, {fast} above {slow}"
            numbers.append(Number(name, loss[fast] - loss[slow], low=0.0))
    return Finding(tuple(numbers))


def _lead(runs: Runs, pp: str, dvp: str) -> Series:
    """Measure by how much the mean loss of penalty perturbation is smaller at the end."""
    return ahead(runs, pp, dvp, "training_loss", higher_is_better=False)


def more_accurate(runs: Runs) -> Finding:
    """Mean loss at the end, penalty against dual perturbation."""
    numbers = [
        measured(f"training loss of {dvp} above {pp}", _lead(runs, pp, dvp), above=0, setting=f"{pp}, {dvp}")
        for pp, dvp in PAIRS
    ]
    return Finding(
        tuple(numbers),
        "The last pair has equal alpha(t) and differs in the growth of the penalty alone; the others differ in both.",
    )


def more_stable(runs: Runs) -> Finding:
    """Range of the loss over runs at the end, as the paper defines it."""
    numbers = []
    for pp, dvp in PAIRS:
        spans = [float(np.ptp(runs.final(key, "training_loss"))) for key in (pp, dvp)]
        numbers.append(
            Number(
                f"range of the loss over runs, {dvp} above {pp}", spans[1] - spans[0], low=0.0, setting=f"{pp}, {dvp}"
            )
        )
    return Finding(
        tuple(numbers),
        "As in the row above, the last pair differs in the growth of the penalty alone. "
        f"A range of {len(runs.final('pp', 'training_loss'))} runs has no interval, here or in the paper.",
    )


def better_in_both(runs: Runs) -> Finding:
    """Loss, range and P at the end, for pairs of which the paper shows two: PP is ahead in all."""
    numbers = []
    for pp, dvp in PAIRS:
        lead, bounds = _lead(runs, pp, dvp), [float(runs.final(key, "epsilon_claimed").max()) for key in (pp, dvp)]
        numbers.append(measured(f"training loss of {dvp} above {pp}", lead, above=0, setting=f"{pp}, {dvp}"))
        name = f"P of {dvp} ({bounds[1]:.4g}) above {pp} ({bounds[0]:.4g})"
        numbers.append(Number(name, bounds[1] - bounds[0], low=0.0, setting=f"{pp}, {dvp}"))
    return Finding(
        tuple(numbers), "In these pairs DVP takes none of the care that it could: see the row about equal budgets."
    )


def growth_resists_noise(runs: Runs) -> Finding:
    """Loss and range at equal alpha(t), with a growing and with a constant penalty."""
    pp, dvp = "pp-equal", "dvp-growing"
    spans = [float(np.ptp(runs.final(key, "training_loss"))) for key in (pp, dvp)]
    return Finding(
        (
            measured(f"training loss of {dvp} above {pp}", _lead(runs, pp, dvp), above=0),
            Number(f"range of the loss over runs, {dvp} above {pp}", spans[1] - spans[0], low=0.0),
        ),
        "Both lines have the same alpha(t), so that they differ in the growth of the penalty alone. The noise in the "
        "objective is 2 eta V epsilon'f: it grows with the penalty that should resist it.",
    )


def more_noise_more_privacy(runs: Runs) -> Finding:
    """P where the overall perturbation, eta / alpha, grows, stays and shrinks."""
    numbers = []
    for more, less in (("pp", "dvp"), ("dvp", "dvp-growing")):
        bounds = [float(runs.final(key, "epsilon_claimed").max()) for key in (more, less)]
        numbers.append(
            Number(f"P of {less} ({bounds[1]:.4g}) above {more} ({bounds[0]:.4g})", bounds[1] - bounds[0], low=0.0)
        )
    return Finding(tuple(numbers), "eta / alpha grows in pp, is constant in dvp and shrinks in dvp-growing.")


def at_equal_budget(runs: Runs) -> Finding:
    """Dual perturbation that spends what penalty perturbation spends, in the number of rounds that is best for it."""
    key = "dvp-tuned"
    spent = {name: float(runs.final(name, "epsilon_claimed").max()) for name in ("pp", key)}
    rounds = runs.manifests(key)[0]["scenario"]["protocols"][key]["noise"]["updates"]
    return Finding(
        (measured(f"training loss of {key} above pp", _lead(runs, "pp", key), above=0),),
        f"pp claims {spent['pp']:.4g} at its end, {key} {spent[key]:.4g} in {rounds} rounds (chosen of as many as were "
        "tried on other seeds).",
    )


def both_tuned(which: str) -> Callable[[Runs], Finding]:
    """The claim at one epsilon, claimed or verified, with both methods tuned in as many trials."""

    def check(runs: Runs) -> Finding:
        spent = {
            key: float(runs.final(key, f"epsilon_{which}", "worst").max()) for key in ("pp", "pp-tuned", "dvp-tuned")
        }
        numbers = [
            measured(f"training loss of dvp-tuned above {pp}", _lead(runs, pp, "dvp-tuned"), above=0)
            for pp in ("pp", "pp-tuned")
        ]
        told = "; ".join(_chosen(runs))
        shares = ", ".join(f"{key} {epsilon:.4g}" for key, epsilon in spent.items())
        return Finding(tuple(numbers), f"Epsilon {which}: {shares}. {told}.")

    return check


def _chosen(runs: Runs) -> Iterator[str]:
    """What tuning chose, in words."""
    tuning = runs.collection.index.get("tuning") or {"chosen": []}
    for chosen in tuning["chosen"]:
        values = ", ".join(f"{field} {value:g}" for field, value in chosen["values"].items())
        yield f"{chosen['protocol']}, best of {tuning['trials']} trials: {values}"


def more_private(runs: Runs) -> Finding:
    """The bound P at the end, penalty against dual perturbation; it is not random."""
    numbers = []
    for pp, dvp in PAIRS:
        if pp in runs.collection.labels:
            bounds = [float(runs.final(key, "epsilon_claimed").max()) for key in (pp, dvp)]
            name = f"P of {dvp} ({bounds[1]:.4g}) above {pp} ({bounds[0]:.4g})"
            numbers.append(Number(name, bounds[1] - bounds[0], low=0.0, setting=f"{pp}, {dvp}"))
    return Finding(tuple(numbers))


def theorem_4_1(runs: Runs) -> Finding:
    """The bound P against what is verified of the same rounds at delta = 0, as it is claimed."""
    numbers, beside = [], []
    for key in (key for key in PRIVATE if key in runs.collection.labels):
        claimed = float(runs.final(key, "epsilon_claimed").max())
        pure = max(_pure(runs.ledger(run)) for run in runs.of(key))
        numbers.append(Promise(f"verified epsilon of {key} at delta = 0, claimed {claimed:.3g}", pure, high=claimed))
        beside.append(f"{key} {float(runs.final(key, 'epsilon_verified').max()):.4g}")
    delta = runs.manifests(PRIVATE[0])[0]["privacy"]["delta"]
    return Finding(
        tuple(numbers),
        "The printed bound is sound, given rows of norm at most 1 by definition, a public number of rows, and exact "
        "minimisers; what is verified is smaller, for the determinant of a round is bounded by its logarithm. At "
        f"delta = {delta:g}, as in the figure, it is {', '.join(beside)}.",
    )


def _pure(ledger: Frame) -> float:
    """The largest epsilon of an agent at delta = 0, by the releases that its ledger counts."""
    names = [name for name in Charge._fields if name in ledger]
    charges = [Charge(**dict(zip(names, row, strict=True))) for row in ledger[names].itertuples(index=False)]
    found = {}
    for agent, charge, count in zip(ledger["agent"], charges, ledger["count"], strict=True):
        found.setdefault(agent, Counter())[charge] += int(count)
    return max(basic_composition_bound(histogram, 0.0) for histogram in found.values())


def large_network(runs: Runs) -> Finding:
    """Penalty perturbation is ahead in loss on 100 agents."""
    return Finding((measured("training loss of dvp above pp", ahead(runs, "dvp", "pp", "training_loss"), above=0),))


def uneven_costs(runs: Runs) -> Finding:
    """The agent with the fewest rows has the largest bound, which goes as 1 / B_i."""
    agents = runs.collection.agents
    bounds = agents[agents["protocol"] == "pp"].groupby("agent")[["samples", "epsilon_claimed"]].max()
    rows, claimed = bounds["samples"], bounds["epsilon_claimed"]
    smallest, products = float(claimed[rows.idxmin()]), rows * claimed
    return Finding(
        (
            Number(
                "P of the agent with the fewest rows / P in the middle", smallest / float(claimed.median()), low=1.0
            ),
            Number("largest P / P of the agent with the fewest rows", float(claimed.max()) / smallest, 0, 0.999, 1.001),
        ),
        f"With {rows.min():g} to {rows.max():g} rows; P times rows is {products.min():.5g} to {products.max():.5g}.",
    )
