"""Vanhaesebrouck, Bellet and Tommasi (2017): figures 1, 2, 3 and 5."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pandas as pd

from ..analysis.aggregate import wins
from .claims import Claim, Finding, Number, Paper, PaperFigure, measured
from .comparisons import ahead, straight_line
from .runs import Runs

ORDER = ("cl", "mp", "solitary", "consensus")
"""Keys of figure 3, from the best to the worst."""

COUNTINGS = {
    count: {count: "", f"{count}_with_start": ", with those before the start"} for count in ("vectors", "messages")
}
"""Axes of communications, by whether what neighbours tell each other before the start is counted."""

SETTLED = 0.95
MAGNITUDE = 5
"""Share of a method's own final accuracy at which it has settled, and what an order of magnitude is read as."""

SPREAD = "task.spread"

QUICK_MOONS = (f"sweep={{{SPREAD}: [0.0, 1.0]}}",)


def confidence_helps(runs: Runs) -> Finding:
    """Errors fall from solitary models to propagation, and again with confidence values."""
    steps = (("without", "solitary"), ("with", "without"))
    return Finding(
        tuple(
            measured(
                f"squared error of {worse} above that of {better}",
                ahead(runs, better, worse, "mse", higher_is_better=False),
                above=0,
            )
            for better, worse in steps
        )
    )


def confidence_keeps_the_error(runs: Runs) -> Finding:
    """Claim that the error does not grow with the unbalancedness where confidence values are used."""
    even, uneven = (runs.final("with", "mse", point={SPREAD: spread}) for spread in (0.0, 1.0))
    return Finding(
        (measured("growth of the error from spread 0 to 1", uneven - even, near=(0.0, 0.002)),),
        f"It is {even.mean():.4f} at spread 0 and {uneven.mean():.4f} at spread 1.",
    )


def errors_part(runs: Runs) -> Finding:
    """Equal when sizes are balanced, ever farther apart when they are not."""
    numbers = []
    for spread in runs.values(SPREAD):
        lead = ahead(runs, "with", "without", "mse", higher_is_better=False, point={SPREAD: spread})
        name = f"error without above with confidence, spread {spread:g}"
        numbers.append(measured(name, lead, near=(0.0, 0.001)) if spread == 0 else measured(name, lead, above=0))
    return Finding(tuple(numbers))


def win_ratio(runs: Runs) -> Finding:
    """Share of instances in which confidence values give the smaller error; a tie counts one half."""
    numbers = []
    for spread, printed in ((0.0, 0.5), (1.0, 0.85)):
        own, other = (runs.final(key, "mse", point={SPREAD: spread}) for key in ("with", "without"))
        won = wins(own, other.reindex(own.index), more_is_better=False)
        numbers.append(measured(f"win ratio at spread {spread:g}", won, near=(printed, 0.05)))
    return Finding(tuple(numbers))


def almost_as_good(runs: Runs) -> Finding:
    """Errors of gossip and synchronous propagation after as many communications."""
    numbers = []
    for axis, counting in COUNTINGS["vectors"].items():
        end = runs.common_end(["gossip", "synchronous"], "mse", axis)
        for share in (0.5, 1.0):
            gossip, synchronous = (runs.at(share * end, key, "mse", axis) for key in ("gossip", "synchronous"))
            name = f"squared error of gossip / synchronous at {share * end:,.0f} communications{counting}"
            numbers.append(measured(name, gossip / synchronous, below=1.25))
    return Finding(tuple(numbers))


def order_of_methods(runs: Runs) -> Finding:
    """Collaborative learning, model propagation, solitary, consensus, at every dimension."""
    numbers = []
    for p in runs.values("dimension"):
        for better, worse in pairwise(ORDER):
            lead = ahead(runs, better, worse, "accuracy", point={"dimension": p})
            numbers.append(measured(f"accuracy of {better} above {worse}, p = {p}", lead, above=0))
    return Finding(tuple(numbers))


def whatever_the_size(runs: Runs) -> Finding:
    """Collaborative learning evens out what little data costs."""
    own, alone = (runs.by_size(key, "accuracy") for key in ("cl", "solitary"))
    many_less_few = "accuracy of the quarter with the most data minus that with the least"
    return Finding(
        (
            measured(f"{many_less_few}, solitary", alone["large"] - alone["small"], above=0),
            measured(f"{many_less_few}, cl", own["large"] - own["small"], near=(0.0, 0.05)),
        )
    )


def outperforms_propagation(runs: Runs) -> Finding:
    """Collaborative learning against model propagation, by size."""
    lead = runs.by_size("cl", "accuracy") - runs.by_size("mp", "accuracy")
    return Finding(
        (
            measured("accuracy of cl above mp, quarter with the least data", lead["small"], above=0),
            measured("accuracy of cl above mp, quarter with the most data", lead["large"], above=0),
            measured("difference of the two", lead["large"] - lead["small"], above=0),
        )
    )


def as_good_as_synchronous(runs: Runs) -> Finding:
    """Gossip against synchronous ADMM after as many vectors (each communication carries four)."""
    numbers = []
    for axis, counting in COUNTINGS["vectors"].items():
        end = runs.common_end(["cl", "cl-synchronous"], "accuracy", axis)
        for share in (0.25, 0.5, 1.0):
            lead = runs.at(share * end, "cl", "accuracy", axis)
            lead = lead - runs.at(share * end, "cl-synchronous", "accuracy", axis)
            name = f"accuracy of gossip above synchronous at {share * end:,.0f} vectors{counting}"
            numbers.append(measured(name, lead, above=-0.02))
    return Finding(tuple(numbers))


def propagation_is_faster(runs: Runs) -> Finding:
    """Communications that each method takes to 95 % of its own final accuracy, in both countings.

    First hits are read from records, a few activations apart. What is asked for is therefore the least ratio that they
    admit: the place of the slower method's record before, over that of the faster one's own.
    """
    numbers, admitted = [], []
    for axis, counting in COUNTINGS["messages"].items():
        levels = {key: SETTLED * runs.final(key, "accuracy") for key in ("cl", "mp")}
        met, before = (
            {key: found(levels[key], key, "accuracy", axis) for key in levels}
            for found in (runs.first, runs.before_first)
        )
        name = f"communications of cl / of mp to {SETTLED:.0%} of the final accuracy, at least{counting}"
        numbers.append(measured(name, before["cl"] / met["mp"], above=MAGNITUDE))
        least, most = ((a["cl"] / b["mp"]).mean() for a, b in ((before, met), (met, before)))
        admitted.append(f"{least:.3g} to {most:.3g}{counting}")
    carried = []
    for axis, counting in COUNTINGS["vectors"].items():
        met = {key: runs.first(SETTLED * runs.final(key, "accuracy"), key, "accuracy", axis) for key in ("cl", "mp")}
        carried.append(f"{(met['cl'] / met['mp']).mean():.3g}{counting}")
    return Finding(
        tuple(numbers),
        f"An order of magnitude is read as more than a factor of {MAGNITUDE}. First hits are read from "
        f"records, which admit ratios of {'; '.join(admitted)}. The paper counts communications; by the vectors "
        f"that they carry, more in collaborative learning, the ratios are {'; '.join(carried)}.",
    )


def valuable_warm_start(runs: Runs) -> Finding:
    """Collaborative learning by way of model propagation, whose own way is counted, against the usual start."""
    numbers = []
    for axis, counting in COUNTINGS["messages"].items():
        way = runs.first(SETTLED * runs.final("mp", "accuracy"), "mp", "accuracy", axis)
        place = 0.25 * runs.common_end(["cl", "cl-warm"], "accuracy", axis)
        warm = {seed: runs.at(place - way[seed], "cl-warm", "accuracy", "messages")[seed] for seed in way.index}
        lead = pd.Series(warm) - runs.at(place, "cl", "accuracy", axis)
        name = (
            f"accuracy by way of propagation above that from solitary models at {place:,.0f} communications{counting}"
        )
        numbers.append(measured(name, lead, above=0.0))
    lead = runs.final("cl-warm", "accuracy") - runs.final("cl", "accuracy")
    numbers.append(measured("final accuracy by way of propagation above that from solitary models", lead, above=-0.02))
    return Finding(
        tuple(numbers),
        "After a quarter of the communications. By way of propagation counts what gossip propagation takes to "
        f"{SETTLED:.0%} of its own accuracy, with its start vectors where those count; collaborative learning then "
        "begins at the solution of propagation, which gossip has told the neighbours.",
    )


def linear_in_agents(runs: Runs) -> Finding:
    """Communications to 90 % of the best accuracy, against the number of agents."""
    sizes = runs.values("task.agents")
    numbers = []
    for axis, counting in COUNTINGS["messages"].items():
        for key, best in (("mp", "mp-optimum"), ("cl", "cl-optimum")):
            needed = []
            for agents in sizes:
                point = {"task.agents": agents}
                level = 0.9 * runs.final(best, "accuracy", point=point)
                needed.append(float(runs.first(level, key, "accuracy", axis, point=point).mean()))
            finite = bool(np.isfinite(needed).all())
            fit = straight_line(sizes, needed)[1] if finite else float("nan")
            numbers.append(Number(f"R^2 of a straight line, {key}{counting}", fit, low=0.98))
    return Finding(tuple(numbers), f"Over {', '.join(map(str, sizes))} agents.")


PAPER = Paper(
    name="vanhaesebrouck2017",
    authors="Vanhaesebrouck, Bellet and Tommasi",
    year=2017,
    title="Decentralized collaborative learning of personalized models over networks",
    venue="AISTATS 2017",
    remarks=(
        "Equation (6) is read with agent l using its own row of W and its own solitary model.",
        "N(1, 40) is read with 40 as the variance; `without confidence` is C = I / 2.",
        "Neighbours know each other's solitary models from the start; these 2|E| vectors are counted apart.",
        "Hinge-loss minimisers are not unique: solitary models are 10 gradient steps from zero.",
    ),
    figures=(
        PaperFigure(
            "vanhaesebrouck2017-fig1",
            "Figure 1",
            "Estimated means before and after propagation, at the largest spread of sizes; shown by size.",
            "vanhaesebrouck2017-fig1",
        ),
        PaperFigure(
            "vanhaesebrouck2017-fig2-left",
            "Figure 2, left",
            "Error with and without confidence values against the spread of sizes; 1000 instances, as in the paper.",
            "vanhaesebrouck2017-fig2-left",
            seeds=1000,
            quick=QUICK_MOONS,
            quick_seeds=10,
            pictures=("error",),
        ),
        PaperFigure(
            "vanhaesebrouck2017-fig2-middle",
            "Figure 2, middle",
            "Share of the same instances in which confidence values win.",
            "vanhaesebrouck2017-fig2-left",
            seeds=1000,
            quick=QUICK_MOONS,
            quick_seeds=10,
            pictures=("wins",),
        ),
        PaperFigure(
            "vanhaesebrouck2017-fig2-right",
            "Figure 2, right",
            "Error of synchronous and gossip propagation against communications, averaged over instances; the paper "
            "averages 100 runs on one, and the ratio of the two errors depends on the instance.",
            "vanhaesebrouck2017-fig2-right",
            quick=("task.agents=50", "stop.vectors=25000", "seeds.data=2"),
            quick_seeds=0,
        ),
        PaperFigure(
            "vanhaesebrouck2017-fig3-left",
            "Figure 3, left",
            "Accuracy of four kinds of models against the dimension.",
            "vanhaesebrouck2017-fig3-left",
            quick=(
                "sweep={dimension: {zip: {task.dimension: [2, 50], protocols.mp.alpha: [0.5, 0.8], "
                "protocols.cl.alpha: [0.5, 0.9]}}}",
                "stop.updates=30",
                "task.agents=60",
            ),
        ),
        PaperFigure(
            "vanhaesebrouck2017-fig3-middle",
            "Figure 3, middle",
            "Accuracy by the number of an agent's training points, p = 50.",
            "vanhaesebrouck2017-fig3-middle",
            quick=("stop.updates=30", "task.agents=60"),
        ),
        PaperFigure(
            "vanhaesebrouck2017-fig3-right",
            "Figure 3, right",
            "Accuracy against communications: gossip and synchronous collaborative learning, gossip propagation.",
            "vanhaesebrouck2017-fig3-right",
            quick=("stop.updates=30", "task.agents=60"),
        ),
        PaperFigure(
            "vanhaesebrouck2017-fig3-right-unknown",
            "Figure 3, right, neighbours unknown",
            "An addition: the same where nobody tells anything before the start, so that copies begin at zero.",
            "vanhaesebrouck2017-fig3-right-unknown",
            quick=("stop.updates=30", "task.agents=60"),
        ),
        PaperFigure(
            "vanhaesebrouck2017-fig5",
            "Figure 5",
            "Communications needed, against the number of agents.",
            "vanhaesebrouck2017-fig5",
            quick=("sweep={task.agents: [50, 75, 100]}", "stop.updates=15"),
            quick_seeds=1,
        ),
    ),
    claims=(
        Claim(
            "vanhaesebrouck2017-fig1",
            "Propagation brings models closer to the truth, and confidence values closer still.",
            confidence_helps,
            "ordering",
        ),
        Claim(
            "vanhaesebrouck2017-fig2-left",
            "The error with confidence values remains constant as sizes spread.",
            confidence_keeps_the_error,
            "for all",
        ),
        Claim(
            "vanhaesebrouck2017-fig2-left",
            "Both errors are similar for balanced sizes; confidence values win increasingly for unbalanced ones.",
            errors_part,
            "all of these parts",
        ),
        Claim(
            "vanhaesebrouck2017-fig2-middle",
            "The win ratio is about 0.5 for balanced sizes and about 0.85 at the largest spread.",
            win_ratio,
            "all of these parts",
        ),
        Claim(
            "vanhaesebrouck2017-fig2-right",
            "Per communication, the asynchronous algorithm is almost as good as the synchronous one.",
            almost_as_good,
            "for all",
        ),
        Claim(
            "vanhaesebrouck2017-fig3-left",
            "Collaborative learning is better than model propagation, that than solitary models, those than consensus.",
            order_of_methods,
            "ordering",
        ),
        Claim(
            "vanhaesebrouck2017-fig3-middle",
            "Collaborative learning has a similar accuracy whatever the size of the training set.",
            whatever_the_size,
            "all of these parts",
        ),
        Claim(
            "vanhaesebrouck2017-fig3-middle",
            "It outperforms model propagation at all sizes, by more where there is more data.",
            outperforms_propagation,
            "all of these parts",
        ),
        Claim(
            "vanhaesebrouck2017-fig3-right",
            "Per communication, asynchronous collaborative learning is as good as synchronous.",
            as_good_as_synchronous,
            "for all",
        ),
        Claim(
            "vanhaesebrouck2017-fig3-right",
            "Model propagation converges an order of magnitude faster than collaborative learning.",
            propagation_is_faster,
            "for all",
        ),
        Claim(
            "vanhaesebrouck2017-fig3-right",
            "Model propagation is a valuable warm start for collaborative learning.",
            valuable_warm_start,
            "all of these parts",
        ),
        Claim(
            "vanhaesebrouck2017-fig3-right-unknown",
            "Model propagation converges an order of magnitude faster than collaborative learning.",
            propagation_is_faster,
            "for all",
        ),
        Claim(
            "vanhaesebrouck2017-fig5",
            "Communications to 90 % of the optimal models' accuracy are linear in the number of agents.",
            linear_in_agents,
            "all of these parts",
        ),
    ),
)
