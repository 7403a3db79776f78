"""The systems of the papers, by letter and number, and where each is found: protocol or task, option, scenario."""

from __future__ import annotations

from typing import NamedTuple

from ...agents.tasks import TASKS
from ...protocols.catalog import PROTOCOLS
from ..language.loading import shipped


class System(NamedTuple):
    """One system of a paper."""

    number: str
    """B for Bellet et al. 2018, V for Vanhaesebrouck et al. 2017, Z for Zhang et al. 2018, L for Liu et al. 2022, H for
    Hu et al. 2019, and a number."""
    what: str
    kinds: tuple[str, ...]
    """Protocols and tasks that make it up."""
    option: str
    """What chooses it, where the kind alone does not."""
    scenario: str
    """A scenario that runs it."""

    @property
    def line(self) -> str:
        """What it is, and where it is found."""
        option = f" ({self.option})" if self.option else ""
        return f"{self.what}: {', '.join(self.kinds)}{option}; {self.scenario}"

    @property
    def row(self) -> str:
        """The same as a row of a Markdown table."""
        kinds = ", ".join(f"`{kind}`" for kind in self.kinds)
        option = f" ({self.option})" if self.option else ""
        return f"| {self.number} | {self.what} | {kinds}{option} | `{self.scenario}` |"


SYSTEMS = (
    System("B1", "asynchronous broadcast coordinate descent", ("coordinate_descent",), "", "bellet2018-fig1"),
    System("B2", "private coordinate descent", ("coordinate_descent",), "privacy", "bellet2018-fig2a"),
    System("B3", "budget over updates", ("coordinate_descent",), "privacy.allocation", "bellet2018-proposition2"),
    System("B4", "private warm start", ("coordinate_descent",), "start: private_propagation", "bellet2018-fig2b"),
    System("B5", "local differential privacy", ("local_dp", "local_dp_descent"), "", "bellet2018-fig4"),
    System("B6", "purely local models", ("local",), "", "bellet2018-fig1"),
    System("B7", "gossip ADMM as a baseline", ("collaborative_admm",), "objective: bellet", "bellet2018-fig1"),
    System("B8", "recommendation on MovieLens-100K", ("movielens",), "", "bellet2018-movielens"),
    System(
        "V1",
        "model propagation, closed form and synchronous",
        ("model_propagation",),
        "closed_form, schedule: rounds",
        "vanhaesebrouck2017-fig2-left",
    ),
    System("V2", "asynchronous model propagation", ("model_propagation",), "", "vanhaesebrouck2017-fig2-right"),
    System("V3", "collaborative learning, gossip ADMM", ("collaborative_admm",), "", "vanhaesebrouck2017-fig3-left"),
    System("V4", "synchronous ADMM", ("collaborative_admm",), "schedule: rounds", "vanhaesebrouck2017-fig3-right"),
    System("V5", "solitary and consensus models", ("solitary", "consensus"), "", "vanhaesebrouck2017-fig3-left"),
    System("V6", "mean estimation on two moons", ("mean_estimation",), "", "vanhaesebrouck2017-fig1"),
    System("V7", "linear classification", ("linear_classification",), "loss: hinge", "vanhaesebrouck2017-fig3-left"),
    System(
        "V8",
        "scalability in the number of agents",
        ("model_propagation", "collaborative_admm"),
        "task.agents swept",
        "vanhaesebrouck2017-fig5",
    ),
    System("Z1", "decentralised consensus ADMM", ("consensus_admm",), "", "zhang2018-fig1b"),
    System("Z2", "M-ADMM, private penalties", ("consensus_admm",), "a penalty per agent", "zhang2018-fig1a"),
    System("Z3", "dual variable perturbation", ("perturbed_admm",), "a constant penalty", "zhang2018-fig2a"),
    System("Z4", "penalty perturbation", ("perturbed_admm",), "growing penalties", "zhang2018-fig2a"),
    System("Z5", "the Adult experiment", ("adult",), "", "zhang2018-fig1a"),
    System("L1", "dual averaging of Duchi et al.", ("dual_averaging",), "step_weights: constant", "liu2022-fig1"),
    System("L2", "dual averaging with growing weights", ("dual_averaging",), "step_weights: linear", "liu2022-fig1"),
    System("L3", "private dual averaging", ("dual_averaging",), "privacy", "liu2022-fig2"),
    System("L4", "support vector machine on a ring", ("epsilon", "epsilon_like"), "", "liu2022-fig1"),
    System("H1", "ADMM sharing over split features", ("feature_sharing",), "", "hu2019-fig1"),
    System("H2", "private ADMM sharing", ("feature_sharing",), "noise", "hu2019-fig3"),
    System("H3", "gradient descent over split features", ("feature_sgd",), "", "hu2019-fig1"),
    System("H4", "a9a and gisette by columns", ("a9a", "gisette", "gisette_like"), "", "hu2019-fig2"),
)


def present() -> list[System]:
    """The systems whose protocols, tasks and scenario this installation has."""
    kinds, scenarios = {*PROTOCOLS, *TASKS}, shipped()
    return [system for system in SYSTEMS if kinds.issuperset(system.kinds) and system.scenario in scenarios]
