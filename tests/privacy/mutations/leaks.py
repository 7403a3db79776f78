"""Mistakes by which something that everybody sees depends on an agent's data without a charge."""

from __future__ import annotations

import numpy as np
from hushnet.agents.losses import local_gradient, spectral_smoothness
from hushnet.protocols.algorithms.coordinate_descent import CoordinateDescent
from hushnet.protocols.algorithms.dual_averaging import DualAveraging
from hushnet.protocols.algorithms.model_propagation import ModelPropagation
from hushnet.protocols.algorithms.perturbed_admm import PerturbedAdmm
from hushnet.protocols.algorithms.stale_feature_sharing import StaleFeatureSharing
from hushnet.protocols.algorithms.subgradient_noise import SubgradientNoise
from hushnet.protocols.noise import GradientNoise
from hushnet.protocols.steps import solved_by

from .accounts import _copy
from .declarations import mistake
from .seams import memory, stepping


def _positive(me):
    """One bit of an agent's data: whether the first number in it is positive."""
    return len(me.data) > 0 and float(me.data.features[0, 0]) > 0.0


def _after(plant, owner, name, then):
    """Do something more after a step: ``then(protocol, me)``."""

    def change(step):
        def other(self, me):
            step(self, me)
            then(self, me)

        return other

    if name == "step":
        stepping(plant, owner, change)
    else:
        plant.around(owner, name, change)


@mistake("dependence on data", case="descent", guard="contract")
def step_size_from_the_spectrum(plant):
    """A private run takes its step sizes from its rows' spectra while it says that they are public."""

    def then(self, me):
        smoothness = spectral_smoothness(me.data.features, self.problem.task.loss, me.regularisation)
        me.alpha = 1 / (1 + me.mu_c * smoothness)

    _after(plant, CoordinateDescent, "start", then)


@mistake("dependence on data", case="descent", guard="contract")
def start_from_the_rows(plant):
    """An agent starts at the sum of its rows, and says that its start is public."""

    def then(self, me):
        me.model = me.data.features.sum(axis=0)
        me.sent_.clear()
        me.send("model", me.model, me.public("it is only a start"))

    _after(plant, CoordinateDescent, "start", then)


@mistake("dependence on data", case="descent", guard="contract")
def start_of_one_coordinate(plant):
    """A start that is sent as public has the sign of a feature in its last coordinate."""

    def then(self, me):
        me.model[-1] = 1e-9 if _positive(me) else 0.0
        me.sent_.clear()
        me.send("model", me.model, me.public("it is only a start"))

    _after(plant, CoordinateDescent, "start", then)


@mistake("dependence on data", case="descent-gaussian", guard="contract")
def silent_when_converged(plant):
    """An agent falls silent when its exact gradient is short."""

    def then(self, me):
        gradient = local_gradient(me.model, me.data, self.problem.task.loss, 0.0)
        if np.linalg.norm(gradient) < 0.25:
            me.fall_silent()

    _after(plant, CoordinateDescent, "step", then)


@mistake("dependence on data", case="averaging-full", guard="contract")
def fewer_updates_by_the_data(plant):
    """An agent whose first feature is positive makes one update less."""

    def then(self, me):
        if me.updates == 3 and _positive(me):
            me.fall_silent()

    _after(plant, DualAveraging, "step", then)


@mistake("dependence on data", case="descent", guard="contract")
def update_left_out(plant):
    """An agent sends nothing in its third update if a feature of its first row is positive."""

    def then(self, me):
        if me.updates == 2 and _positive(me):
            me.sent_.clear()

    _after(plant, CoordinateDescent, "step", then)


@mistake("dependence on data", case="descent-gaussian", guard="contract")
def told_to_one_neighbour_only(plant):
    """Whom an update is sent to, all neighbours or the first, depends on a feature."""

    def then(self, me):
        if me.sent_ and me.updates > 0 and _positive(me):
            told = me.sent_.pop()
            me.send(told.kind, told.vector, told.release, to=int(me.neighbours[0]))

    _after(plant, CoordinateDescent, "step", then)


@mistake("dependence on data", case="propagation", guard="contract")
def partner_by_the_data(plant):
    """Whom a session calls depends on a feature."""

    def change(partner):
        def other(self, me, uniform):
            rank = partner(self, me, uniform)
            return (rank + 1) % len(me.neighbours) if _positive(me) else rank

        return other

    plant.around(ModelPropagation, "partner", change)


@mistake("dependence on data", case="descent", guard="contract")
def sent_twice_when_far(plant):
    """An update is sent a second time, free of charge, while the exact gradient is long."""

    def then(self, me):
        gradient = local_gradient(me.model, me.data, self.problem.task.loss, 0.0)
        if me.sent_ and me.updates > 1 and np.linalg.norm(gradient) > 0.25:
            me.send("model", me.model, me.sent_[-1].release)

    _after(plant, CoordinateDescent, "step", then)


@mistake("dependence on data", case="descent-gaussian", guard="contract")
def last_digits_of_a_late_message(plant):
    """From the fourth update on, the message has a multiple of 1e-9 of the mean row behind its noise."""

    def then(self, me):
        if me.sent_ and me.updates >= 3 and len(me.data):
            me.model += 1e-9 * me.data.features.mean(axis=0)
            told = me.sent_.pop()
            me.send(told.kind, me.model, told.release)

    _after(plant, CoordinateDescent, "step", then)


@mistake("dependence on data", case="averaging-full", guard="contract")
def one_agent_leaks_once(plant):
    """Agent 5 adds its mean row to the noisy dual of its fourth round."""

    def then(self, me):
        if me.sent_ and me.agent == 5 and me.updates == 3:
            me.sent += me.data.features.mean(axis=0)
            told = me.sent_.pop()
            me.send(told.kind, me.sent, told.release)

    _after(plant, DualAveraging, "step", then)


@mistake("dependence on data", case="penalty", guard="audit")
def dual_moved_by_the_data(plant):
    """The dual variables of objective perturbation move a little along the exact gradient, uncharged."""

    def change(step):
        def other(self, me):
            if len(me.data):
                me.dual += 0.05 * local_gradient(me.model, me.data, self.problem.task.loss, 0)
            step(self, me)

        return other

    stepping(plant, PerturbedAdmm, change)


@mistake("dependence on data", case="descent-loose", guard="contract")
def noise_for_the_actual_gradients(plant):
    """Noise is scaled for the longest gradient that there is, instead of for the bound."""

    def change(release):
        def other(self, me):
            found = release(self, me)
            if found.scale == 0:
                return found
            slopes = np.abs(self.task.loss.slope(me.data.features @ me.model, me.data.labels))
            longest = float((slopes * np.abs(me.data.features).sum(axis=1)).max())
            by = min(1.0, longest / self.privacy.clip)
            fields = ("sensitivity", "verified_sensitivity", "scale")
            return _copy(found, **{name: by * getattr(found, name) for name in fields})

        return other

    plant.around(GradientNoise, "release", change)


@mistake("dependence on data", case="averaging-full", guard="contract")
def noise_for_one_class_only(plant):
    """An agent whose labels are all equal is charged for less: nothing about them is to be protected."""

    def change(release):
        def other(self, me):
            found = release(self, me)
            if found.scale == 0 or abs(me.data.labels.sum()) < len(me.data):
                return found
            return _copy(found, scale=found.scale / 10)

        return other

    plant.around(SubgradientNoise, "release", change)


@mistake("dependence on data", case="descent", guard="contract")
def neighbours_data_read(plant):
    """An agent adds the first row of another one to its model."""

    def change(step):
        def other(self, me):
            rows = self.problem.task.train.shard(int(me.neighbours[0])).features
            me.model += 0.01 * rows[0]
            step(self, me)

        return other

    stepping(plant, CoordinateDescent, change)


@mistake("dependence on data", case="descent", guard="contract")
def constants_from_labels(plant):
    """Confidences come from all agents' labels, and are listed nowhere as public."""

    def change(prepare):
        def other(self):
            prepare(self)
            labels = self.problem.task.train.labels
            self.confidence = self.confidence * (1.0 + 0.1 * np.count_nonzero(labels > 0))

        return other

    plant.around(CoordinateDescent, "prepare", change)


@mistake("dependence on data", case="descent-spectral", guard="contract")
def constants_from_labels_beside_spectra(plant):
    """The same where step sizes, from the rows' spectra, are listed as public: only these may come from data."""
    constants_from_labels(plant)


@mistake("dependence on data", case="sharing-stale", guard="contract")
def answered_only_when_scores_move(plant):
    """A party answers a new target only if its exact scores would be others than those that it answered last."""

    def change(step):
        def other(self, me):
            last = memory(self)
            if me.role == "party":
                target, columns = me.heard_target[0], me.data.features
                if target[-1] > me.sent[-1]:
                    exact = columns @ solved_by(me.factor, columns.T @ target[:-1])
                    if np.linalg.norm(exact - last.get(me.agent, np.inf)) < 0.5:
                        return
                    last[me.agent] = exact
            step(self, me)

        return other

    stepping(plant, StaleFeatureSharing, change)
