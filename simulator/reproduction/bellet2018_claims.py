"""What Bellet, Guerraoui, Taziki and Tommasi (2018) claim of their figures, decided by runs."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pandas as pd

from ...protocols.privacy.budget import Privacy
from ...protocols.privacy.plans import plan
from ..analysis.aggregate import WITH_START
from .attacks import DRAWS, LEVEL, turned_corner
from .bellet2018_statements import largest_gradient
from .claims import Claim, Finding, measured
from .comparisons import ahead, ahead_along, promises
from .runs import Point, Runs

BUDGETS = {"eps-20": 20.0, "eps-5": 5.0, "eps-1-05": 1.05, "eps-0-55": 0.55, "eps-0-15": 0.15}
"""Epsilons by key; those of 5 and 20 are not the paper's."""

PRIVATE = ("eps-1-05", "eps-0-55", "eps-0-15")
"""Keys of the private runs, from the largest budget to the smallest."""

REGIMES = ("cd", "cd-literal", *PRIVATE)
"""Keys of figure 3: without noise under both readings of the confidences, and private."""


def privacy_of(runs: Runs, key: str, point: Point | None = None) -> Privacy:
    """What a private protocol's runs were given, by their manifests."""
    return Privacy.model_validate(runs.manifests(key, point)[0]["scenario"]["protocols"][key]["privacy"])


def noise_against_signal(runs: Runs, key: str) -> str:
    """How large the noise of a private protocol's runs is beside the gradient that it hides, by their manifests."""
    privacy = privacy_of(runs, key)
    if privacy.budget is None or privacy.updates is None:
        return ""
    agents = runs.collection.agents
    count = float(agents.loc[agents["protocol"] == key, "samples"].median())
    multiplier = float(np.median(plan(privacy, np.full(privacy.updates, 1 / privacy.updates)).multipliers))
    scale = 2 * privacy.lipschitz * multiplier / count
    updates = "1 update" if privacy.updates == 1 else f"{privacy.updates} updates"
    printed = "; accuracies like the printed ones need scales smaller by about the number of points"
    return (
        f"With theorem 1 as printed and composition by {privacy.budget.by}, an agent with {count:g} points (the "
        f"median) and {updates} at a budget of {privacy.budget.epsilon:g} adds Laplace noise of scale {scale:.2g} to "
        f"each coordinate of a gradient whose coordinates are at most {privacy.lipschitz:g}"
        f"{printed if key in PRIVATE else ''}."
    )


STEPS = {"cd": "step sizes from the spectrum of the own rows", "cd-public": "step sizes from .25 max |x|^2 + 2 lambda"}
"""How coordinate descent's step sizes are read."""


def fewer(x: str, key: str) -> Claim:
    """Coordinate descent is ahead of ADMM along an axis."""

    def check(runs: Runs) -> Finding:
        better = {"gap": False, "accuracy": True}
        axes = (x, f"{x}_with_start") if f"{x}_with_start" in WITH_START else (x,)
        return Finding(tuple(number for axis in axes for number in ahead_along(runs, key, "admm", better, axis)))

    text = f"Coordinate descent ({STEPS[key]}) significantly outperforms ADMM, by {x}."
    return Claim("bellet2018-fig1", text, check, "all of these parts")


def trade_off(key: str) -> Claim:
    """More updates of a budget first help and then hurt."""

    def check(runs: Runs) -> Finding:
        counts = runs.values("T")
        ends = pd.DataFrame({count: runs.final(key, "objective", point={"T": count}) for count in counts})
        # Of every seed the best T is that of the others: chosen on the same numbers, it could only gain.
        chosen = {seed: counts[int(np.argmin(ends.drop(index=seed).mean().to_numpy()))] for seed in ends.index}
        best = pd.Series({seed: ends.loc[seed, count] for seed, count in chosen.items()})
        where = ", ".join(str(count) for count in sorted(set(chosen.values())))
        return Finding(
            (
                measured(
                    f"fall of the objective from T = {counts[0]} to the best ({where})", ends[counts[0]] - best, above=0
                ),
                measured(f"rise from there to T = {counts[-1]}", ends[counts[-1]] - best, above=0),
            ),
            f"The best T of every seed is chosen on the other seeds. {noise_against_signal(runs, key)}",
        )

    text = f"At a budget of {BUDGETS[key]:g}, more updates first lower the objective, then raise it."
    return Claim("bellet2018-fig2a-updates", text, check, "all of these parts")


def noise_that_would_do(runs: Runs) -> Finding:
    """What the noise costs if it is divided by the number of points once more: no claim of the paper."""
    whole, less = privacy_of(runs, "eps-1-05"), privacy_of(runs, "by-m")
    divisor, numbers = f"{whole.lipschitz / less.lipschitz:.3g}", []
    for count in runs.values("T"):
        lead = ahead(runs, "by-m", "local", "accuracy", point={"T": count})
        numbers.append(measured(f"accuracy above local models, noise divided by {divisor}, T = {count}", lead, above=0))
    fewest, most = runs.manifests("by-m")[0]["scenario"]["task"]["samples"]
    assert whole.budget is not None
    return Finding(
        tuple(numbers),
        f"Not the printed algorithm: the noise of a budget of {whole.budget.epsilon:g} is divided by {divisor}, the "
        f"middle of {fewest:g} to {most:g} points, once more, and with it goes what it protects.",
    )


def less_budget_costs(runs: Runs) -> Finding:
    """A smaller epsilon ends with a larger objective."""
    pairs = pairwise(PRIVATE)
    return Finding(
        tuple(
            measured(f"objective of {less} above that of {more}", ahead(runs, less, more, "objective"), above=0)
            for more, less in pairs
        )
    )


def theorem_1_in_runs(runs: Runs) -> Finding:
    """Claimed against verified epsilon."""
    why = (
        "The printed noise is calibrated to L0 = 1. On points of the cube the l1 norm of a gradient, which is what "
        f"Laplace noise needs, reaches {largest_gradient(100):.3g} at p = 100: see theorem 1 below. Lower bounds: "
        f"likelihood ratios of {DRAWS:,} draws of the noise on either of two data sets that differ in the label of a "
        f"corner; each is wrong with a probability of at most {LEVEL:g}."
    )

    def at_least(key: str) -> float:
        return turned_corner(privacy_of(runs, key), runs.manifests(key)[0]["task"]["dimension"])

    return promises(runs, PRIVATE, why=why, at_least=at_least)


def allocations(suffix: str) -> Claim:
    """The printed allocation against equal shares, in the setting of figure 2a."""
    which = "C = 1 - .5 / n" if suffix else "proposition 1's C"

    def check(runs: Runs) -> Finding:
        even = runs.final("uniform", "gap")
        late = (runs.final(f"late{suffix}", "gap") / even).mean()
        why = (
            "The weights of theorem 2 are in the wrong order, see below. More for late updates gives "
            f"{late:.4g} of the excess under equal shares."
        )
        ratio = runs.final(f"proposition2{suffix}", "gap") / even
        return Finding((measured("excess of the objective, printed allocation / equal shares", ratio, below=1),), why)

    text = f"The allocation of proposition 2 gives the smallest loss, with {which}."
    return Claim("bellet2018-proposition2", text, check, "for all")


WARM = {"warm": "cold", "warm-0-15": "cold-0-15", "warm-5": "cold-5", "warm-20": "cold-20"}
"""Protocols with a private warm start, and those of the same total budget with a constant one."""


def warm_start(warm: str, total: float) -> Claim:
    """A private warm start against a constant one, at a total budget."""

    def check(runs: Runs) -> Finding:
        better = {"objective": False, "accuracy": True}
        manifest = runs.manifests(warm)[0]
        dimension, epsilon = manifest["task"]["dimension"], manifest["scenario"]["protocols"][warm]["start"]["epsilon"]
        ends = [float(runs.final(key, "accuracy").mean()) for key in (warm, WARM[warm], "local")]
        return Finding(
            ahead_along(runs, warm, WARM[warm], better, "activations"),
            "With lambda_i = 1 / m_i a local model's sensitivity is L0 whatever m_i is, so that output perturbation at "
            f"epsilon {epsilon:g} adds noise of expected norm p / epsilon = {dimension / epsilon:,.0f}. At the end "
            f"accuracy is {ends[0]:.3f} from the warm start, {ends[1]:.3f} from the constant one and {ends[2]:.3f} of "
            "local models.",
        )

    text = f"A private warm start gives lower objectives sooner, and accuracy, at a total budget of {total:g}."
    return Claim("bellet2018-fig2b", text, check, "all of these parts")


def local_dp(runs: Runs) -> Finding:
    """Perturbed examples against unperturbed ones."""
    numbers = []
    for key in PRIVATE:
        for p in runs.values("task.dimension"):
            loss = -ahead(runs, key, "local", "accuracy", point={"task.dimension": p})
            numbers.append(measured(f"accuracy lost with {key}, p = {p}", loss, above=0))
    return Finding(tuple(numbers))


LITTLE = 0.05
"""Accuracy that counts as no significant improvement."""


def little_from_perturbed(runs: Runs) -> Finding:
    """Coordinate descent on perturbed examples against local models from the same examples' noise."""
    numbers = []
    for key in PRIVATE:
        for p in runs.values("task.dimension"):
            lead = ahead(runs, f"cd-{key}", key, "accuracy", point={"task.dimension": p})
            numbers.append(measured(f"accuracy that collaboration adds with {key}, p = {p}", lead, below=LITTLE))
    gains = [
        ahead(runs, "cd", "local", "accuracy", point={"task.dimension": p}).mean()
        for p in runs.values("task.dimension")
    ]
    return Finding(
        tuple(numbers),
        f"The paper gives no number; significant is read as {LITTLE:g} or more. From the true examples collaboration "
        f"adds {min(gains):.2g} to {max(gains):.2g}, with the same mu and updates.",
    )


OVER_LOCAL = {
    "cd": "Without noise, the",
    "cd-literal": "Without noise and with c_i = m_i / max m at mu = .04, as printed, the",
    "eps-0-15": "Even at the smallest budget (0.15), the",
}


def over_local(key: str) -> Claim:
    """Collaboration beats local models at every dimension."""

    def check(runs: Runs) -> Finding:
        numbers = []
        for p in runs.values("task.dimension"):
            lead = ahead(runs, key, "local", "accuracy", point={"task.dimension": p})
            numbers.append(measured(f"accuracy of {key} above local, p = {p}", lead, above=0))
        return Finding(tuple(numbers), noise_against_signal(runs, key) if key in PRIVATE else "")

    text = f"{OVER_LOCAL[key]} models outperform the purely local ones significantly."
    return Claim("bellet2018-fig2c", text, check, "for all")


def everybody_gains(runs: Runs) -> Finding:
    """Agents with little and with much data gain, in every privacy regime."""
    numbers = []
    for key in REGIMES:
        gain = runs.by_size(key, "accuracy") - runs.by_size("local", "accuracy")
        for size, who in (("small", "least"), ("large", "most")):
            numbers.append(measured(f"gain over local, {key}, quarter with the {who} data", gain[size], above=0))
    return Finding(tuple(numbers), noise_against_signal(runs, PRIVATE[-1]))


def small_gain_most(runs: Runs) -> Finding:
    """The boost is larger for agents with little data; to lose less than others is no boost."""
    numbers = []
    for key in REGIMES:
        gain = runs.by_size(key, "accuracy") - runs.by_size("local", "accuracy")
        name = "gain of the quarter with the least data"
        numbers.append(measured(f"{name}, {key}", gain["small"], above=0))
        numbers.append(measured(f"{name} minus that with the most, {key}", gain["small"] - gain["large"], above=0))
    return Finding(tuple(numbers))


CLAIMS = (
    *(fewer(x, key) for key in STEPS for x in ("activations", "vectors")),
    *(trade_off(key) for key in BUDGETS),
    Claim(
        "bellet2018-fig2a-updates",
        "Counterfactual: private models with noise divided by the number of points once more beat local ones.",
        noise_that_would_do,
        "for all",
    ),
    Claim("bellet2018-fig2a", "A smaller budget gives a larger objective.", less_budget_costs, "ordering"),
    Claim("bellet2018-fig2a", "Runs are (epsilon, exp(-5))-differentially private (theorem 1).", theorem_1_in_runs),
    *(warm_start(key, total) for key, total in zip(WARM, (1.05, 0.15, 5.0, 20.0), strict=True)),
    *map(over_local, OVER_LOCAL),
    Claim("bellet2018-fig3", "All agents gain, whatever the size of their data.", everybody_gains, "for all"),
    Claim("bellet2018-fig3", "Agents with little data gain most.", small_gain_most, "for all"),
    Claim("bellet2018-fig4", "Local differential privacy costs a great deal of accuracy.", local_dp, "for all"),
    Claim(
        "bellet2018-fig4",
        "The collaborative algorithm does not improve significantly on models from perturbed examples (appendix D.1).",
        little_from_perturbed,
        "for all",
    ),
    allocations(""),
    allocations("-given"),
)
