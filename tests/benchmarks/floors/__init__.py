"""Floors: each protocol's updates as one plain compiled loop over contiguous arrays, without clocks or messages.

They find their arrays in a world whose agents have started, and are told who steps when. Where messages take no time
and none is lost, a protocol's models are the floor's (`test_floors.py`), so its time is given as a multiple of it.
"""

from __future__ import annotations

from hushnet.simulator.world.world import World

from .admm import ConsensusFloor, EdgeFloor
from .averaging import AveragingFloor, PushSumFloor
from .base import Floor, Plan, started
from .collaborative import CollaborativeFloor
from .columns import MinibatchFloor, SharingFloor, StaleFloor
from .descent import DescentFloor
from .propagation import PropagationFloor

__all__ = ["FLOORS", "Floor", "Plan", "floor_of", "started"]

FLOORS: dict[str, type[Floor]] = {
    "collaborative_admm": CollaborativeFloor,
    "consensus_admm": ConsensusFloor,
    "coordinate_descent": DescentFloor,
    "dual_averaging": AveragingFloor,
    "edge_consensus_admm": EdgeFloor,
    "feature_sgd": MinibatchFloor,
    "feature_sharing": SharingFloor,
    "model_propagation": PropagationFloor,
    "perturbed_admm": ConsensusFloor,
    "push_sum_dual_averaging": PushSumFloor,
    "stale_feature_sharing": StaleFloor,
}
"""By the protocols' names; private forms have the floor of the plain one."""


def floor_of(world: World) -> Floor:
    """The floor of a world's protocol, from its agents' starts."""
    return FLOORS[world.protocol.parameters.kind](started(world))
