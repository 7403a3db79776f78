"""What a world of planned steps does not hold for each of its agents: what only steps one by one read."""

import gc

import numpy as np
from hushnet.protocols.steps.peer import Peer

from ..benchmarks.cases import CASES, make_setting, protocol_of
from .driving import drive, fast_world


def world_of(engine=fast_world):
    return engine(make_setting(CASES["100k"].toy, 3.0), *protocol_of("broadcast"))


def records_of(world):
    """The records of a world's agents that somebody still has."""
    return [one for one in gc.get_objects() if type(one) is Peer and one.source_.inbox is world.inbox]


def test_a_planned_run_keeps_no_record_of_an_agent():
    world = drive(world_of())
    assert world.activations > 0
    assert records_of(world) == []


def test_a_planned_run_copies_no_vector_for_an_edge_until_somebody_reads_it():
    world = drive(world_of())
    assert len(world.transport.tables.values) == len(world.transport.tables.places) == 0
    heard = world.inbox.values["model"].rows
    assert heard.shape == (len(world.setting.graph.heads), world.setting.task.dimension)
    assert np.any(heard)
