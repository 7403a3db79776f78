"""Worlds of collaborative learning by ADMM, and what is watched in them."""

from __future__ import annotations

from hushnet.protocols.algorithms.collaborative_admm import CollaborativeAdmm, CollaborativeAdmmParameters
from hushnet.simulator.contract.bench import small_task
from hushnet.simulator.world.world import World

from .worlds import Watcher, setting_of


def parameters(**fields) -> CollaborativeAdmmParameters:
    return CollaborativeAdmmParameters.model_validate({"kind": "collaborative_admm", **fields})


def world_of(spec, *, protocol=CollaborativeAdmm, recorder=None, activations=None, **setting) -> World:
    """A world that is ready to run; further arguments are those of `setting_of`."""
    setting.setdefault("task", small_task(empty=False))
    return World(setting_of(**setting), protocol, spec, recorder=recorder, activations=activations)


class EveryActivation(Watcher):
    """The models at the start and after every activation."""

    def __init__(self):
        self.models = []

    def sample(self, world, *, final):
        if not final:
            self.models.append(world.state.agent["model"].rows.copy())
