"""Mistakes in kernels, in the tables that they read, and in what planned steps alone draw and are charged."""

from __future__ import annotations

import numpy as np
from hushnet.protocols.steps import loss_operators
from hushnet.protocols.steps import step_charges as charges
from hushnet.protocols.steps import step_tables as tables
from hushnet.protocols.steps.kernels import FILLS
from hushnet.simulator.engine.batched import plan_source

from .declarations import mistake


def planned_noise(plant, scales):
    """Change the scales of planned noise, of every mechanism: ``scales(mechanism, scales)``."""
    fills = {one: _other(fill, lambda given, one=one: scales(one, given)) for one, fill in FILLS.items()}
    plant.put(plan_source, "FILLS", fills)


def _other(fill, scales):
    return lambda generator, places, given, *more: fill(generator, places, scales(given), *more)


@mistake("scale", case="descent-gaussian", guard="contract", form="planned")
def planned_scale_halved(plant):
    """Noise of planned steps has half of its scale."""
    planned_noise(plant, lambda _mechanism, scales: scales / 2)


@mistake("scale", case="descent", guard="contract", form="planned")
def planned_laplace_a_tenth_smaller(plant):
    """Laplace noise of planned steps has .9 of its scale."""
    planned_noise(plant, lambda mechanism, scales: 0.9 * scales if mechanism == "laplace" else scales)


@mistake("scale", case="descent", guard="contract", form="planned")
def planned_gaussian_for_laplace(plant):
    """Planned Laplace releases get Gaussian noise of the same variance."""
    laplace = _other(FILLS["gaussian"], lambda scales: scales * np.sqrt(2.0))
    plant.put(plan_source, "FILLS", {**FILLS, "laplace": laplace})


def _streams(plant, change):
    """Change what streams of planned steps begin with: ``change(ticks, numbers)``."""

    def around(begin):
        return lambda ticks, numbers, *more: begin(*change(ticks, numbers), *more)

    plant.around(plan_source, "beginnings", around)


@mistake("sharing", case="averaging-full", guard="contract", form="planned")
def planned_noise_shared_by_a_batch(plant):
    """All agents of a batch draw from the stream of its first."""
    _streams(plant, lambda ticks, numbers: (ticks, np.full_like(numbers, numbers[0])))


@mistake("repetition", case="descent-gaussian", guard="contract", form="planned")
def planned_noise_equal_at_every_tick(plant):
    """Streams of planned steps have no tick in their key."""
    _streams(plant, lambda ticks, numbers: (np.zeros_like(ticks), numbers))


@mistake("clipping", case="descent", guard="contract", form="planned")
def kernels_do_not_clip(plant):
    """Kernels do not clip gradients of examples."""

    gradients = loss_operators.rows_of.gradients
    plant.put(loss_operators.rows_of, "gradients", lambda *given: gradients(*given[:-3], 0, 0.0, given[-1]))


@mistake("clipping", case="descent-gaussian", guard="contract", form="planned")
def kernels_clip_to_twice_the_bound(plant):
    """The table gives kernels twice the bound that the sensitivity takes."""

    def twice(self):
        norm, bound = usual(self)
        return norm, 2.0 * bound

    usual = tables.StepTables.clip.func
    plant.put(tables.StepTables, "clip", property(twice))


@mistake("sampling", case="averaging", guard="contract", form="planned")
def planned_first_rows_always(plant):
    """A planned batch of examples is the first rows."""

    def first(_generator, _places, _rows, starts, ranks):
        ranks[:] = np.arange(len(ranks)) - np.repeat(starts[:-1], np.diff(starts))

    plant.put(plan_source, "choose_rows", first)


@mistake("count", case="descent", guard="contract", form="planned")
def planned_draws_not_counted(plant):
    """Planned steps draw noise and count none of it."""
    plant.around(charges.StepCharges, "count", lambda _: lambda self, *given: None)


@mistake("count", case="averaging-full", guard="contract", form="planned")
def planned_draws_counted_for_agent_0(plant):
    """Planned steps count their draws where those of agent 0 are."""

    def around(count):
        return lambda self, agents, *given: count(self, np.zeros_like(agents), *given)

    plant.around(charges.StepCharges, "count", around)


@mistake("charge", case="descent-plain", guard="contract", form="planned")
def planned_plain_messages_free(plant):
    """Planned steps do not say that what they send is plain."""
    plant.around(charges.StepCharges, "plain", lambda _: lambda self, agents, drawn: np.zeros(len(agents), dtype=bool))
