"""Asking for memory beforehand changes nothing in any world, and asks for what the next wake-ups need."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
from hushnet.agents.compilation.address_table import READ_AT, READ_BEGINS, READ_BYTES, READ_STEP, AddressTable
from hushnet.agents.compilation.compiled import compiled
from hushnet.agents.compilation.fetching import prefetch_read
from hushnet.protocols.algorithms.coordinate_descent import CoordinateDescent
from hushnet.simulator.engine.batched.foresight import second_next
from hushnet.simulator.engine.batched.wake_heap import first_child, push, sift_down
from hushnet.simulator.tables.run import SLOT, WAKE_UP
from hushnet.simulator.tables.tallies import HEAP
from hushnet.simulator.world import run_tables
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ..campaigns.test_worlds import EVERYTHING
from ..campaigns.world_cases import random_setting
from ..campaigns.worlds import EVERY, differences, history_of
from .driving import drive, fast_world
from .test_fast import RECORDS, descent, folder, outcome, plain_setting, settings_of_runs  # noqa: F401
from .test_wake_heap import tables, times_of


def outcomes(setting, parameters, **record):
    """Of one run in a world whose memory counts as near, and in one whose memory counts as far."""
    found = []
    for near in (np.inf, -1):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(run_tables, "NEAR", near)
            found.append(outcome(fast_world, setting, CoordinateDescent, parameters, **record))
    return found


@given(data=st.data())
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_asking_beforehand_changes_nothing_in_random_worlds(data, folder):  # noqa: F811
    """With loss, absences, long delays, agents that join late, and agents without neighbours."""
    setting, record = data.draw(settings_of_runs(folder)), data.draw(RECORDS)
    near, far = outcomes(setting, descent(), **record)
    assert near == far


@pytest.mark.parametrize("number", range(len(EVERYTHING)), ids=[f"{c.kind}-{n}" for n, c in enumerate(EVERYTHING)])
def test_asking_beforehand_changes_nothing_of_any_protocol(number, tmp_path):
    """Seeded: a random world each, with noise and several kinds of messages among them."""
    setting = random_setting(EVERYTHING[number], np.random.default_rng([16, number]), tmp_path)
    found = []
    for near in (np.inf, -1):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(run_tables, "NEAR", near)
            found.append(history_of(EVERYTHING[number], setting, "auto", record=EVERY[0], observe=False, watch=False))
    assert found[0].engine == found[1].engine
    assert differences(*found, exact=True) == []


def test_a_large_world_is_far(monkeypatch):
    assert len(fast_world(plain_setting(), CoordinateDescent, descent()).transport.tables.foreseen) == 0
    monkeypatch.setattr(run_tables, "NEAR", 8 * 30)
    world = fast_world(plain_setting(), CoordinateDescent, descent())
    assert len(world.transport.tables.foreseen) > 0
    assert len(world.transport.tables.read) > 0
    drive(world)
    assert world.activations > 0


@pytest.mark.parametrize("agents", [2, 3, 4, 5, 6, 7, 17, 22, 300])
def test_who_wakes_after_the_next_one_is_known(agents):
    for seed in range(20):
        rng, run = np.random.default_rng([agents, seed]), tables(agents)
        waiting = list(zip(times_of(rng, agents), rng.permutation(agents).tolist(), strict=True))
        for time, agent in waiting:
            push(run, time, agent)
        for _ in range(agents):  # so that the heap is in no order but a heap's
            time, agent = float(run.heap_time[0]), int(run.heap_agent[0])
            sift_down(run, time + rng.exponential(agents), agent)
        entries = sorted(
            (float(run.heap_time[WAKE_UP * k]), int(run.heap_agent[WAKE_UP * k])) for k in range(run.counts[HEAP])
        )
        coming = first_child(run, 0)
        second = second_next(run, coming)
        found = [(run.heap_time[WAKE_UP * place], run.heap_agent[WAKE_UP * place]) for place in (coming, second)]
        assert found[0] == entries[1]
        if agents > 2:
            assert found[1] == entries[2]


@compiled(_nrt=False)
def asked(read, agent, placed):
    """What asking leaves."""
    prefetch_read(read, agent, placed)
    return len(read)


def test_a_table_says_what_steps_read_of_each_agent():
    table, counts, begins = AddressTable(), np.arange(4.0), np.array([0, 2, 2, 5])
    rows = np.arange(12.0).reshape(6, 2)
    table.note_read(table.array(counts), 8, 8)
    table.note_read(table.array(rows), 16, 24, begins)
    table.note_read(table.array(counts), 8, 8)  # read again: asked for once
    read = table.read
    assert read.shape == (2, 4)
    for agent in range(4):
        where = read[0, READ_AT] + agent * read[0, READ_STEP]
        assert ctypes.c_double.from_address(int(where)).value == counts[agent]
        begin = ctypes.c_int64.from_address(int(read[1, READ_BEGINS] + 8 * agent)).value
        first = ctypes.c_double.from_address(int(read[1, READ_AT] + begin * read[1, READ_STEP])).value
        assert first == rows[begins[agent], 0]
        assert [asked(read, agent, placed) for placed in (True, False)] == [2, 2]
    assert read[:, READ_BYTES].tolist() == [8, 24]
    assert read[0, READ_BEGINS] == 0


def test_a_slot_lies_within_one_line_of_memory():
    run = fast_world(plain_setting(), CoordinateDescent, descent()).transport.tables
    start = run.first_node.ctypes.data
    assert start % 64 == 0
    assert [array.ctypes.data - start for array in (run.heard_sent_at, run.heard_order, run.heard_tick)] == [8, 16, 24]
    assert 8 * SLOT * len(run.known) == run.first_node.nbytes
