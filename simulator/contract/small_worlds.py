"""Small worlds to replay a protocol in: perfect, late, lossy and churning networks, several losses, rows or columns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from ...agents.availability import Always, OnOff
from ...agents.errors import InputError
from ...agents.losses import LOSSES
from ...protocols.base import Protocol, ProtocolParameters
from ..engine.selection import Engine, Name, engine_for
from ..network.network import NetworkParameters
from ..network.setting import Limits, Setting
from ..world.watchers import Watch
from ..world.world import World
from .bench import admitted_world, small_setting, split_setting
from .randomness_seen import doubt
from .redrawn import check_drawn_anew
from .replay import Broken, Failed, Make, Replayed, ready, replay
from .transcript import Recording
from .violation import ContractViolation

LATE = {"kind": "lognormal", "mean": 1.0, "sigma": 1.0}
AWAY = OnOff(kind="on_off", online=0.6, mean_down=1.5)
WORLDS: dict[str, tuple[dict[str, Any], Any, str]] = {
    "perfect": ({}, Always(kind="always"), "logistic"),
    "late": ({"latency": LATE}, Always(kind="always"), "squared"),
    "lossy": ({"latency": LATE, "loss": 0.3, "start": "own"}, Always(kind="always"), "smoothed_hinge"),
    "churning": ({"latency": LATE, "loss": 0.2}, AWAY, "logistic"),
}
"""Network, availability and, where the protocol takes it, loss of each small world."""
TOGETHER, APART = 2, 4
"""Runs of each on worst records, and with groups of agents changed."""
TIME = 8.0
"""How long they run, in expected wake-ups of each agent."""
FIRST_SEED, BETWEEN = 2**50, 100
"""Seed of the first, which hardly anybody's own world has, and what lies between those of two: those between are for
runs on worst records. So no two runs draw the same noise."""


def check_replay(
    protocol: type[Protocol],
    parameters: ProtocolParameters,
    *,
    seconds: float = Limits.seconds,
    engine: Name = "event",
) -> dict[str, Replayed]:
    """Replay a protocol in small worlds, for agents of every role; returns the replays by world.

    The engine, event, auto or batched, is that whose rules run the world; steps are made one by one, for they are
    watched.

    Raises `ContractViolation` if something that can be observed differs between neighbouring data sets although the
    noisy values are the same, an exact value under noise moves by more than was charged for, or noise or samples are
    not what releases say; `LimitReached` if a run takes more seconds of processor time than it may.
    """

    def make(setting: Setting, watch: Watch) -> tuple[World, Engine]:
        world = admitted_world(setting, protocol, parameters, watch=watch)
        return world, engine_for(engine, world)

    found: dict[str, Replayed] = {}
    used: dict[str, Setting] = {}
    for rank, (name, settings) in enumerate(small_worlds(make, parameters)):
        for setting in settings:
            limited = replace(setting, limits=replace(setting.limits, seconds=seconds))
            used[name] = limited
            first = rank * (TOGETHER + APART)  # other worst records in every world
            found[name] = replay(make, limited, planted=True, together=TOGETHER, apart=APART, first=first)
            if found[name].runs > 1:
                break
    doubted = doubt([witness for world in found.values() for witness in world.witnesses])
    if doubted:
        raise ContractViolation(doubted)
    for name in ("perfect", "late"):
        if any(witness.moved for witness in found[name].witnesses):
            noted = found[name].witnesses[0].recording if engine == "event" else None
            check_drawn_anew(make, used[name], noted)
    return found


def small_worlds(make: Make, parameters: ProtocolParameters) -> Iterator[tuple[str, list[Setting]]]:
    """The small worlds in which a protocol can run: of each, the one that is meant first, then what may replace it.

    Where nothing can be verified about the loss that is meant, there is something to show with another. Raises
    `InputError` if the protocol can run in none of a kind, and `Broken` if it fails where a world is made.
    """
    radius = getattr(getattr(parameters, "privacy", None), "radius", None)
    for rank, (name, (network, availability, loss)) in enumerate(WORLDS.items()):
        net = NetworkParameters.model_validate(network)
        seed = FIRST_SEED + BETWEEN * rank
        given = {"network": net, "availability": availability, "time": TIME, "seed": seed}
        rows = small_setting(**given, empty=False)
        choices = [_with_loss(rows, loss), rows, split_setting(**given)]
        settings: list[Setting] = []
        refused: list[InputError] = []
        for choice in choices:
            setting = choice if radius is None else _within(choice, radius)
            try:
                if not (settings and choice is choices[-1]):
                    ready(make, setting, Recording())
                    settings.append(setting)
            except InputError as error:
                refused.append(error)
            except Failed as error:
                raise Broken(str(error)) from error
        if not settings:
            raise refused[0]
        yield name, settings


def _with_loss(setting: Setting, loss: str) -> Setting:
    task = replace(setting.task, loss=LOSSES[loss])
    if task.loss.labels == "real":
        labels = task.train.labels * np.linspace(0.5, 1.5, len(task.train.labels))
        task = replace(task, train=replace(task.train, labels=labels), metric="rmse")
    return replace(setting, task=task)


def _within(setting: Setting, radius: float) -> Setting:
    """A small world whose rows have both norms below a declared radius."""
    rows = setting.task.train.features
    longest = float(np.abs(rows).sum(axis=1).max())
    train = replace(setting.task.train, features=rows * min(1.0, radius / longest * (1 - 1e-9)))
    return replace(setting, task=replace(setting.task, train=train))
