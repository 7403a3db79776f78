"""Local differential privacy: every example is perturbed once, and models are learned from noise (Bellet et al. 2018).

Appendix D.1 and figure 4. An agent adds noise to the features of each of its examples, scaled to how far one example
may lie from another; what it learns from the perturbed examples afterwards costs nothing more, and could be exchanged
freely. Replacing one example changes one perturbed row, so an agent is charged once, whatever its number of examples.

Sensitivity of a row: twice the bound on its norm. ``clip`` scales rows down to a norm, ``radius`` checks them, and
``claimed`` takes the bound that the task's own domain gives (l1 norm p on the cube), which is proved.

Where we depart: the paper does not say what happens to labels. Here they are kept, and listed among the inputs that are
treated as public; ``strict: true`` makes every verified epsilon infinite for that.
"""

from __future__ import annotations

from collections.abc import Container
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from ...agents.clipping import clip_rows
from ...agents.errors import InputError
from ...agents.optimisation.solvers import minimise_local
from ...agents.tables import Shard
from ..base import Layout, Problem, Protocol, ProtocolParameters, Traits
from ..context import Context
from ..invariants import Declared, NoInvariant
from ..noise import active, check_all_rows, check_rows
from ..privacy.budget import Privacy
from ..privacy.mechanisms import Release
from ..privacy.plans import plan

TOLERANCE = 1e-10
"""Gradient norm of L_i on the perturbed rows at which its minimiser counts as exact."""


class LocalDPParameters(ProtocolParameters):
    """Local differential privacy: purely local models from examples that were perturbed once (Bellet et al. 2018)."""

    kind: Literal["local_dp"]
    privacy: Privacy | None = None
    """Noise on the features of every example, for one release: ``updates`` is 1 or left out."""


class LocalDP(Protocol):
    """Local models from perturbed examples, from the start; nothing is ever sent."""

    Parameters = LocalDPParameters
    learns = "linear"
    parameters: LocalDPParameters
    shared_parts = ("labels",)
    traits = Traits(directed=True, changing=True)

    @classmethod
    @override
    def check_scenario(cls, parameters: LocalDPParameters, context: Context) -> None:
        task = context.task
        _check(parameters.privacy, regularised=task.regularised, bounded=task.bounded, task=task.kind)

    @classmethod
    @override
    def check_problem(cls, parameters: LocalDPParameters, problem: Problem) -> None:
        check_all_rows(parameters.privacy, problem.task)

    def prepare(self) -> None:
        """The bound on a row's norm that the noise relies on."""
        task, privacy = self.problem.task, self.parameters.privacy
        regularised = bool(np.all(task.regularisation[task.train.counts > 0] > 0))
        _check(privacy, regularised=regularised, bounded=task.bounds, task=task.name)
        if privacy is not None and active(privacy):
            self.bound = privacy.clip or privacy.radius or task.bounds[privacy.norm]

    def layout(self) -> Layout:
        """A model per agent and no messages."""
        return Layout(agent={"model": self.problem.task.dimension})

    def start(self, me: Any) -> None:
        """Perturb the rows, and solve equation (1) on what has become of them."""
        me.fall_silent()
        if len(me.data) == 0:
            return
        release, features = self._release(me), me.data.features
        if release.noisy:
            features = self._within_bound(features, me.agent)
        me.reserve(release)
        perturbed = Shard(release.perturb(features, rng=me.stream("noise")), me.data.labels)
        me.disclose(release)
        zero = np.zeros(self.problem.task.dimension)
        me.model, _ = minimise_local(
            perturbed,
            self.problem.task.loss,
            weight=1.0,
            curvature=2.0 * me.regularisation,
            linear=zero,
            start=zero,
            tolerance=TOLERANCE,
        )

    def invariants(self) -> Declared:
        """None."""
        return NoInvariant("rows are perturbed once, and nothing is exchanged")

    def _release(self, me: Any) -> Release:
        return self.release_of(me.agent, me.now, len(me.neighbours))

    def release_of(self, agent: int, now: float, recipients: int) -> Release:
        """Return the release of an agent's perturbed samples at a time, to a number of recipients."""
        privacy = self.parameters.privacy
        if privacy is None or not active(privacy):
            return Release.plain(agent, now, "the rows without noise")
        dimension = self.problem.task.dimension
        cost = plan(privacy, np.ones(1), dimension=dimension)
        return Release(
            agent=agent,
            time=now,
            mechanism=privacy.mechanism,
            norm=privacy.norm,
            sensitivity=2 * self.bound,
            sensitivity_source=privacy.sensitivity,
            verified_sensitivity=2 * self.bound,
            scale=float(cost.multipliers[0]) * 2 * self.bound,
            claimed_epsilon=float(cost.epsilons[0]),
            claimed_delta=float(cost.deltas[0]),
            recipients=recipients,
            dimension=dimension,
        )

    def _within_bound(self, features: NDArray[np.float64], agent: int) -> NDArray[np.float64]:
        """Rows scaled down to the bound (``clip``), or refused outside it (``radius``)."""
        privacy = self.parameters.privacy
        assert privacy is not None
        if privacy.clip is not None:
            return clip_rows(features, privacy.clip, norm=privacy.norm)
        check_rows(privacy, Shard(features, np.empty(len(features))), self.problem.task.ids[agent])
        return features


def _check(privacy: Privacy | None, *, regularised: bool, bounded: Container[str], task: str) -> None:
    """Raise an `InputError` if local models are not unique, or noise on rows has nothing to rely on."""
    if not regularised:
        raise InputError("local_dp needs a regularised loss, whose minimiser is unique", field=("task",))
    if privacy is None or not active(privacy):
        return
    if privacy.updates not in (None, 1):
        raise InputError("must be 1: examples are released once", field=("privacy", "updates"))
    if privacy.lipschitz != Privacy.model_fields["lipschitz"].default:
        raise InputError(
            "bounds an example's gradient, which local_dp does not release; leave lipschitz out, and bound the rows by "
            "sensitivity: clip or data_check",
            field=("privacy", "lipschitz"),
        )
    if privacy.sensitivity == "claimed" and privacy.norm not in bounded:
        raise InputError(
            f"claimed needs a bound on the rows, and the task {task!r} has none in {privacy.norm}; "
            "use sensitivity: clip",
            field=("privacy", "sensitivity"),
        )
