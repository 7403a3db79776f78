"""Zhang, Khalili and Liu (2018): figures 1 to 4, theorem 4.1."""

from __future__ import annotations

from .claims import Claim, Paper, PaperFigure
from .zhang2018_claims import (
    at_equal_budget,
    better_in_both,
    both_tuned,
    converges,
    growth_resists_noise,
    growth_slows,
    large_network,
    more_accurate,
    more_noise_more_privacy,
    more_private,
    more_stable,
    theorem_4_1,
    uneven_costs,
)
from .zhang2018_statements import STATEMENTS

QUICK = ("seeds.run=2", "stop.time=20")


def _perturbed(letter: str, privacy: str, alpha: int) -> tuple[PaperFigure, PaperFigure]:
    """The pair of figures about accuracy and privacy at one alpha."""
    return (
        PaperFigure(
            f"zhang2018-fig2{letter}",
            f"Figure 2{letter}",
            f"Loss under penalty perturbation (PP) and dual variable perturbation (DVP), alpha(1) = {alpha}.",
            f"zhang2018-fig2{letter}",
            quick=QUICK,
            quick_seeds=0,
            data="adult",
            pictures=("loss-vs-rounds",),
        ),
        PaperFigure(
            f"zhang2018-fig2{privacy}",
            f"Figure 2{privacy}",
            f"Privacy of the runs of figure 2{letter}.",
            f"zhang2018-fig2{letter}",
            quick=QUICK,
            quick_seeds=0,
            data="adult",
            pictures=("claimed-epsilon-vs-rounds", "verified-epsilon-vs-rounds"),
        ),
    )


def _network(number: int, sizes: str) -> PaperFigure:
    return PaperFigure(
        f"zhang2018-fig{number}",
        f"Figure {number}",
        f"PP against DVP on 100 agents that hold the data {sizes}.",
        f"zhang2018-fig{number}",
        quick=QUICK,
        quick_seeds=0,
        data="adult",
    )


def _circulant() -> PaperFigure:
    return PaperFigure(
        "zhang2018-fig3-circulant",
        "Figure 3, on a circulant",
        "An addition: figure 3 on a ring whose agents talk to two on each side, for the paper names no graph.",
        "zhang2018-fig3-circulant",
        quick=QUICK,
        quick_seeds=0,
        data="adult",
    )


def _equal(which: str) -> PaperFigure:
    return PaperFigure(
        f"zhang2018-equal-{which}",
        f"Figure 2, both tuned at one {which} epsilon",
        "An addition: PP and DVP that spend what the paper's PP spends, each at its best in as many trials.",
        f"zhang2018-equal-{which}",
        quick=("seeds.run=2", "stop.time=20", "tune.trials=2"),
        quick_seeds=0,
        data="adult",
    )


def _claims_of_figure_2(letter: str, privacy: str) -> tuple[Claim, ...]:
    figure, beside = f"zhang2018-fig2{letter}", f"zhang2018-fig2{privacy}"
    return (
        Claim(figure, "With suitable q1, q2 PP ends with a smaller loss than DVP.", more_accurate, "exists a setting"),
        Claim(figure, "PP is more stable: the loss ranges less over runs.", more_stable, "exists a setting"),
        Claim(
            figure,
            "PP outperforms DVP in both accuracy and privacy (two pairs in the paper).",
            better_in_both,
            "exists a setting",
        ),
        Claim(
            figure,
            "Section 6.1: larger penalties make the algorithm more resistant to noise, and more stable.",
            growth_resists_noise,
            "all of these parts",
        ),
        Claim(figure, "PP is better than DVP at the same loss of privacy (our addition).", at_equal_budget, "for all"),
        Claim(
            beside,
            "Section 6.2: penalties and alpha that make the overall perturbation grow lose less privacy.",
            more_noise_more_privacy,
            "ordering",
        ),
        Claim(beside, "PP has the stronger guarantee at the same time.", more_private, "exists a setting"),
        Claim(beside, "P(t) of theorem 4.1 bounds the privacy loss.", theorem_4_1),
    )


def _claims_of_network(number: int) -> tuple[Claim, ...]:
    figure = f"zhang2018-fig{number}"
    return (
        Claim(figure, "PP outperforms DVP in accuracy in a large network.", large_network, "exists a setting"),
        Claim(figure, "PP outperforms DVP in privacy in a large network.", more_private, "exists a setting"),
        Claim(figure, "PP is better than DVP at the same loss of privacy (our addition).", at_equal_budget, "for all"),
    )


PAPER = Paper(
    name="zhang2018",
    authors="Zhang, Khalili and Liu",
    year=2018,
    title="Improving the privacy and accuracy of ADMM-based distributed algorithms",
    venue="ICML 2018",
    remarks=(
        "The paper does not name its topology and constants; ours are a ring of 5 (a random graph of degree 4 for 100 "
        "agents), C = 1750 (80), rho = 1, theta = 0.5, a start at zero, and the growth factors in the scenarios.",
        "Adult has 45,222 complete rows; the paper's 45,223 counts a comment line.",
        "L is measured on each agent's own rows at its own model, as the paper defines it.",
    ),
    figures=(
        PaperFigure(
            "zhang2018-fig1a",
            "Figure 1a",
            "M-ADMM with private penalties that grow at different rates, for three kinds of dual steps.",
            "zhang2018-fig1a",
            quick=("stop.time=40",),
            quick_seeds=1,
            data="adult",
        ),
        PaperFigure(
            "zhang2018-fig1b",
            "Figure 1b",
            "M-ADMM by the growth of the penalty.",
            "zhang2018-fig1b",
            quick=("stop.time=20",),
            quick_seeds=1,
            data="adult",
        ),
        *(figure for pair in zip(_perturbed("a", "c", 3), _perturbed("b", "d", 5), strict=True) for figure in pair),
        _equal("claimed"),
        _equal("verified"),
        _network(3, "evenly"),
        _circulant(),
        _network(4, "unevenly"),
    ),
    claims=(
        Claim(
            "zhang2018-fig1a",
            "M-ADMM converges under private penalties, with either kind of dual step.",
            converges,
            "for all",
        ),
        Claim(
            "zhang2018-fig1b",
            "Increasing the penalty slows convergence, a larger increase even more.",
            growth_slows,
            "ordering",
        ),
        *_claims_of_figure_2("a", "c"),
        *_claims_of_figure_2("b", "d"),
        *(
            Claim(
                f"zhang2018-equal-{which}",
                f"PP is better than DVP at one {which} epsilon, both tuned (our addition).",
                both_tuned(which),
                "for all",
            )
            for which in ("claimed", "verified")
        ),
        *_claims_of_network(3),
        Claim(
            "zhang2018-fig3-circulant",
            "PP is better than DVP at the same loss of privacy (our addition), whatever the graph.",
            at_equal_budget,
            "for all",
        ),
        *_claims_of_network(4),
        Claim(
            "zhang2018-fig4",
            "Uneven sizes cost privacy: the agent with the fewest rows decides.",
            uneven_costs,
            "for all",
        ),
    ),
    statements=STATEMENTS,
)
