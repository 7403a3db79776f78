"""Linear maps that are wrong: no bound relies on them, and a sentence says where they differ from the run."""

from __future__ import annotations

from dataclasses import replace

import networkx as nx
import pytest
from hushnet.protocols.algorithms.muffliato import Muffliato
from hushnet.protocols.steps import batched, mixed
from hushnet.simulator.contract import ContractViolation, check_replay, protocol_parameters
from hushnet.simulator.observers.learned import BOUNDS, LINEAR

from .worlds import ENGINES, NOISE, found, gossip

FIELDS = {"gossip": "simple", "rounds": 3, "privacy": NOISE}


class MixesLess(Muffliato):
    """A step with other weights than the map has."""

    @staticmethod
    @batched
    def step(me):
        me.before = me.model
        me.model = 0.5 * me.model + 0.5 * mixed(me, me.model, me.mixing * me.was_heard)
        me.message = me.model


class SendsWhatWasBefore(Muffliato):
    """A message that carries another block than the map says."""

    @staticmethod
    @batched
    def step(me):
        following = mixed(me, me.model, me.mixing * me.was_heard)
        me.before = me.model
        me.model = following
        me.message = me.before


class StatesMoreNoise(Muffliato):
    """A map that states noise which was not drawn."""

    def linear_map(self):
        honest = super().linear_map()

        def released(agent, number):
            release = honest.released(agent, number)
            return release and replace(release, scale=2 * release.scale)

        return replace(honest, released=released)


class NamesNoBlock(Muffliato):
    """A map that names what agents do not have."""

    def linear_map(self):
        return replace(super().linear_map(), sent={"model": "models"})


WRONG = {
    StatesMoreNoise: ("was charged for other releases", "than its linear_map states"),
    NamesNoBlock: ("its linear_map names 'models'", "which is no block of agents"),
}
"""Maps that differ from a run by what they name, and what is said then."""


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("protocol", WRONG)
def test_a_map_that_differs_from_the_run_gives_no_bound(protocol, engine):
    result = found(gossip(nx.cycle_graph(6), 3, protocol=protocol, engine=engine))
    assert result.mistake.startswith(f"{protocol.__name__}: ")
    assert all(part in result.mistake for part in WRONG[protocol])
    assert BOUNDS.index(LINEAR) not in result.bounds


@pytest.mark.parametrize("protocol", [MixesLess, SendsWhatWasBefore, *WRONG])
def test_the_contract_compares_a_map_with_every_message(protocol):
    with pytest.raises(ContractViolation, match=f"{protocol.__name__}: .*(linear_map|sends is not)"):
        check_replay(protocol, protocol_parameters(protocol, FIELDS))
