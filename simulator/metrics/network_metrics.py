"""Metrics of messages and energy, of the age of what agents know of each other, of steps, and of conserved sums."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...agents.quantity import Quantity
from .costs import LABELS
from .metric import Metric, Reading, Rows, quantile, register


def traffic(reading: Reading) -> Rows:
    """Number of messages so far that were sent, delivered, lost or dropped, are in flight, or were overtaken."""
    counts = reading.world.traffic
    links = counts.links
    yield "sent", links.sent
    yield "delivered", links.delivered
    yield "lost", links.lost
    yield "dropped", links.dropped
    yield "in_flight", links.in_flight
    yield "overtaken", counts.overtaken
    yield "start_vectors", counts.start_vectors


def ages(world: Any) -> NDArray[np.float64]:
    """(E,) how old is what the tail of each directed edge knows of its head; NaN where it never heard of it.

    It is NaN for exchanges in pairs: what an agent gets there is used at once, and its inbox says nothing of its age.
    """
    unheard = np.full(len(world.setting.graph.heads), np.nan)
    if world.traits.exchange == "pairwise":
        return unheard
    for times in world.inbox.sent_at.values():
        return np.where(np.isfinite(times), world.now - times, np.nan)
    return unheard


def age(reading: Reading) -> Rows:
    """Age of what agents know of their neighbours, over all links on which anything was received."""
    every = ages(reading.world)
    heard = every[~np.isnan(every)]
    if len(heard):
        yield "mean", heard.mean()
        yield "q90", quantile(heard, 0.9)
        yield "worst", heard.max()


def mean_ages(reading: Reading) -> NDArray[np.float64]:
    """(n,) mean age of what each agent knows of its neighbours; NaN for one that never heard of any."""
    graph, every = reading.world.setting.graph, ages(reading.world)
    heard = ~np.isnan(every)
    counts = np.bincount(graph.tails[heard], minlength=graph.agents)
    sums = np.bincount(graph.tails[heard], weights=every[heard], minlength=graph.agents)
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)


def updates(reading: Reading) -> Rows:
    """Number of steps that agents have completed, without idle ones of protocols that decide."""
    counts = reading.world.updates
    yield "mean", counts.mean()
    yield "min", counts.min()
    yield "max", counts.max()


def energy(reading: Reading) -> Rows:
    """Joules so far of all agents, for computing (``compute.power``) and for bytes (``network.energy_per_byte``)."""
    world = reading.world
    computing = world.computing.power * float(world.computing.spent(world.now).sum())
    sending = world.setting.network.energy_per_byte * world.traffic.bytes.sent
    yield "total", computing + sending
    yield "computing", computing
    yield "sending", sending


def conserved(reading: Reading) -> Rows:
    """Distance of the protocol's sums from the values that they should keep."""
    yield from reading.world.protocol.conserved(reading.world.state).items()


for _metric in (
    Metric(
        name="traffic",
        better=None,
        compute=traffic,
        quantity=lambda reading: Quantity("vectors on links by what became of them", "total of the run"),
        label="messages to neighbours",
        definition=(
            r"Counts of copies since the start, one for each link: {math}`\mathrm{sent} = \mathrm{delivered} + "
            r"\mathrm{lost} + \mathrm{dropped} + \mathrm{in\ flight}`. `overtaken` of the delivered came after a "
            "newer one and were used by nobody; `start_vectors` were exchanged before the start."
        ),
        statistics=("sent", "delivered", "lost", "dropped", "in_flight", "overtaken", "start_vectors"),
        default="sent",
        low=0.0,
        learning=False,
    ),
    Metric(
        name="age",
        better=None,
        compute=age,
        quantity=lambda reading: Quantity("age of what agents know of their neighbours", "mean over agents"),
        label="age of what is known",
        definition=(
            "{math}`t - s_{ij}` for each directed link, where {math}`s_{ij}` is the instant at which the newest "
            "message of j that i has was sent: `mean`, 90 % quantile (`q90`) and maximum (`worst`) over links "
            "on which anything has come."
        ),
        unit="wake-ups",
        statistics=("mean", "q90", "worst"),
        low=0.0,
        per_agent=mean_ages,
        unasked=True,
        learning=False,
    ),
    Metric(
        name="updates",
        better=None,
        compute=updates,
        quantity=lambda reading: Quantity("completed steps", "mean over agents"),
        label=LABELS["updates"],
        definition=(
            "{math}`u_i`, the number of steps that agent i has completed: `mean`, `min` and `max` over agents. A step "
            "of a protocol that decides, which sends nothing and changes no block, is an activation and no update."
        ),
        statistics=("mean", "min", "max"),
        low=0.0,
        per_agent=lambda reading: reading.world.updates,
        unasked=True,
        learning=False,
    ),
    Metric(
        name="energy",
        better="less",
        compute=energy,
        quantity=lambda reading: Quantity("energy of computing and of bytes on links", "total of the run"),
        label="energy",
        unit="J",
        definition=(
            r"{math}`\sum_i P T_i + e B`: `computing`, power times the time that agents have computed, and `sending`, "
            "joules a byte times the bytes that they have sent; `total` is the sum."
        ),
        statistics=("total", "computing", "sending"),
        default="total",
        low=0.0,
        learning=False,
    ),
    Metric(
        name="conserved",
        better="less",
        compute=conserved,
        quantity=lambda reading: Quantity("distance from what the protocol's sums keep", "total of the run"),
        label="off the conserved sum by",
        definition=(
            r"{math}`\lVert \sum_i v_i - c \rVert` for each sum over agents that a protocol keeps at {math}`c` "
            "where nothing is late or lost; its page says which."
        ),
        low=0.0,
        learning=False,
    ),
):
    register(_metric)
