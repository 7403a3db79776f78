"""The log of a few agents' messages agrees with what happened, and changes nothing."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import pandas as pd
import pytest
from hushnet.agents.availability import Always, OnOff, Window
from hushnet.simulator.contract.bench import small_task
from hushnet.simulator.language.message_window import MessageWindow
from hushnet.simulator.network.compute import ConstantTime
from hushnet.simulator.network.setting import Stop
from hushnet.simulator.recording.message_log import MessageLog
from hushnet.simulator.world.world import World

from ..protocols.worlds import setting_of
from .driving import drive, fast_world
from .helpers import EventLog, Stamp

BAD = {"latency": {"kind": "exponential", "mean": 1.0}, "loss": 0.2}
CHURN = OnOff(kind="on_off", online=0.7, mean_down=1.5, joins=Window(between=[0.0, 6.0], share=0.5))


ENGINES = {"event": World, "batched": fast_world}


def logged(window, *, engine="batched", availability=CHURN, stop=12.0, **network):
    """A world, the table of its log, and what an observer of the same run on the other engine was told."""
    task = small_task(6, empty=False)
    setting = setting_of(task=task, availability=availability, stop=Stop(time=stop), **{**BAD, **network})
    log, events = MessageLog(MessageWindow(**window), list(range(6)), setting.graph), EventLog()
    other = next(make for name, make in ENGINES.items() if name != engine)
    drive(other(setting, Stamp, Stamp.Parameters(), observer=events))
    world = ENGINES[engine](setting, Stamp, Stamp.Parameters(), observer=log)
    drive(world)
    return world, log.table(world), events


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("between", [[0.0, 12.0], [3.0, 7.5]])
@pytest.mark.parametrize("downlink", [None, 15.0])
def test_the_log_has_every_message_that_was_under_way_between_its_agents(between, engine, downlink):
    agents = [0, 1, 2, 5]
    world, table, events = logged({"agents": agents, "between": between}, engine=engine, downlink=downlink)
    sent, arrived = {}, {}
    for _, now, key, delay, lost, kind, _ in events.of("sent"):
        sent[key] = (now, math.inf if lost else now + delay, lost, kind)
    for _, now, key, _, up, newest in events.of("arrived"):
        arrived[key] = (now, "dropped" if not up else "delivered" if newest else "overtaken")
    expected = set()
    for key, (now, due, lost, kind) in sent.items():
        due = due if downlink is None else math.inf  # when a turn on a downlink comes is known once it has come
        end, fate = arrived.get(key, (-1.0 if lost else due, "lost" if lost else "in flight"))
        if {key[0], key[1]} <= set(agents) and now <= between[1] and (now if lost else end) >= between[0]:
            expected.add((str(key[0]), str(key[1]), kind, now, end, fate))
    rows = table[table["what"] == "message"].fillna({"end": -1.0})
    found = set(rows[["agent", "other", "kind", "start", "end", "fate"]].itertuples(index=False, name=None))
    assert found == expected
    assert {fate for *_, fate in expected} >= {"delivered", "lost", "dropped"}
    assert set(rows["bytes"]) == {world.network.size(2)}
    assert table["start"].is_monotonic_increasing


def test_a_number_of_agents_means_the_first_and_those_nearest_to_it():
    world, table, _ = logged({"agents": 4, "between": [0.0, 12.0]}, availability=Always(kind="always"), stop=40.0)
    near, far = {0}, set(world.setting.graph.neighbours(0).tolist())
    named = set(map(int, table["agent"]))
    assert len(named) == 4
    assert near <= named
    assert named <= near | far | set(itertools.chain(*(world.setting.graph.neighbours(a).tolist() for a in far)))


@pytest.mark.parametrize("engine", ENGINES)
def test_a_log_of_the_whole_run_shows_of_its_window_what_a_log_of_the_window_alone_shows(engine):
    window = MessageWindow(agents=[0, 1, 2, 5], between=[3.0, 7.5])
    setting = setting_of(task=small_task(6, empty=False), availability=CHURN, stop=Stop(time=12.0), **BAD)
    setting, tables = replace(setting, compute=ConstantTime(kind="constant", value=2.0)), []
    for whole in (False, True):
        log = MessageLog(window, list(range(6)), setting.graph, whole=whole)
        drive(world := ENGINES[engine](setting, Stamp, Stamp.Parameters(), observer=log))
        tables.append(log.table(world))
    pd.testing.assert_frame_equal(*tables)
    assert set(tables[0]["what"]) == {"message", "step", "absence"}


def test_a_window_ends_after_it_begins():
    with pytest.raises(ValueError, match="the smaller one first"):
        MessageWindow(between=[3.0, 3.0])
