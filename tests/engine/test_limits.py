"""A run ends at its limits on either engine, at the same event, and what it has recorded until then is kept."""

from __future__ import annotations

import dataclasses
import time

import pytest
from hushnet.agents.availability import OnOff
from hushnet.agents.errors import LimitReached, OutOfResources
from hushnet.protocols.catalog import resolve
from hushnet.simulator.contract.bench import protocol_parameters, small_setting
from hushnet.simulator.network.clocks import Clock, Poisson
from hushnet.simulator.network.network import NetworkParameters
from hushnet.simulator.network.setting import Limits, Stop
from hushnet.simulator.recording.recorder import Recorder
from hushnet.simulator.world import watchdog

from .driving import build_world, drive

NETWORK = NetworkParameters.model_validate({"latency": {"kind": "exponential", "mean": 0.2}, "loss": 0.1})
AT_ONCE = NetworkParameters()


def world_of(engine, name, limits, *, network=AT_ONCE, fields=None, **changes):
    """A small world of a shipped protocol on an engine, under limits, with a recorder."""
    setting = dataclasses.replace(small_setting(network=network), limits=limits, **changes)
    protocol = resolve(name)
    recorder = Recorder(["traffic", "updates"])
    return build_world(
        engine, setting, protocol, protocol_parameters(protocol, fields or {}), recorder=recorder, every=0.5
    )


def stopped(world):
    """How a world ends at a limit: the sentence and everything that was counted or recorded."""
    with pytest.raises(LimitReached) as error:
        drive(world)
    assert not world.ended
    assert world.traffic.conserved
    trace = world.recorder.trace()
    counts = world.now, world.events, world.activations, world.updates.tolist(), world.traffic
    return str(error.value), error.value.limit, error.value.most, *counts, trace.to_dict("list")


CASES = [
    ("coordinate_descent", NETWORK, {}),
    ("coordinate_descent", AT_ONCE, {}),
    ("model_propagation", NETWORK, {}),
    ("collaborative_admm", NETWORK, {}),
    ("collaborative_admm", AT_ONCE, {}),
    ("consensus_admm", AT_ONCE, {}),
]


@pytest.mark.parametrize("most", [1, 61])
@pytest.mark.parametrize(("name", "network", "fields"), CASES)
def test_both_engines_end_at_the_same_event(name, network, fields, most):
    limits = Limits(events=most)
    fast = world_of("batched", name, limits, network=network, fields=fields)
    found = stopped(fast)
    assert found == stopped(world_of("event", name, limits, network=network, fields=fields))
    sentence, limit, admitted, now, events, *_ = found
    assert (limit, admitted) == ("events", most)
    assert most <= events < most + 20
    assert sentence.startswith(f"at time {now:.6g}: had {events} events")
    assert "limits.events admits" in sentence


@pytest.mark.parametrize("engine", ["batched", "event"])
@pytest.mark.parametrize("name", ["coordinate_descent", "collaborative_admm", "consensus_admm"])
def test_processor_time_ends_a_run_that_would_go_on_for_ever(engine, name, monkeypatch):
    """Every look at the clock says that another second has gone by."""
    seconds = iter(range(10**9))
    monkeypatch.setattr(time, "thread_time", lambda: float(next(seconds)))
    found = stopped(world_of(engine, name, Limits(seconds=300), stop=Stop(time=2.0**22)))
    assert found[1:3] == ("seconds", 300)
    assert "limits.seconds admits 300" in found[0]


@pytest.mark.parametrize("engine", ["batched", "event"])
@pytest.mark.parametrize("name", ["coordinate_descent", "collaborative_admm"])
def test_a_process_that_holds_too_much_ends_its_run(engine, name, monkeypatch):
    held = iter([2**30] * 3 + [2**31 + 2] * 10**6)
    monkeypatch.setattr(watchdog, "used_memory", lambda: next(held))
    monkeypatch.setattr(watchdog, "INTERVAL", 0.0)
    found = stopped(world_of(engine, name, Limits(memory=2**30 + 1), stop=Stop(time=2.0**22)))
    assert found[1:3] == ("memory", 2**30 + 1)
    assert "took 1.0 GiB of memory beyond the 1.0 GiB that its process held before" in found[0]
    assert "limits.memory admits 1.0 GiB" in found[0]


def test_what_an_earlier_run_left_behind_is_not_the_next_ones(monkeypatch):
    monkeypatch.setattr(watchdog, "used_memory", lambda: 2**40)
    monkeypatch.setattr(watchdog, "INTERVAL", 0.0)
    world = world_of("event", "coordinate_descent", Limits(memory=2**20), stop=Stop(time=5.0))
    drive(world)
    assert world.ended


def test_a_process_that_is_full_before_a_run_is_no_reason_to_call_the_run_limited(monkeypatch):
    monkeypatch.setattr(watchdog, "used_memory", lambda: 2**60)
    monkeypatch.setattr(watchdog, "total_memory", lambda: 2**30)
    world = world_of("event", "coordinate_descent", Limits(), stop=Stop(time=5.0))
    with pytest.raises(OutOfResources, match=r"already held .* GiB of memory before the run"):
        drive(world)


@pytest.mark.parametrize("engine", ["batched", "event"])
def test_absences_without_end_are_stopped_by_processor_time(engine, monkeypatch):
    seconds = iter(range(10**9))
    monkeypatch.setattr(time, "thread_time", lambda: float(next(seconds)))
    flicker = OnOff(kind="on_off", online=0.5, mean_down=1e-6)
    world = world_of(engine, "coordinate_descent", Limits(seconds=500), availability=flicker, stop=Stop(time=2.0**22))
    assert stopped(world)[1] == "seconds"


class Frozen(Poisson):
    """A clock that somebody has invented: it never goes on."""

    def build(self, ids, numbers, draws, base):
        return FrozenClock()


class FrozenClock(Clock):
    def next_time(self, agent, tick, now):
        return now


@pytest.mark.parametrize("limits", [Limits(), Limits(events=40)])
def test_a_clock_that_never_goes_on_is_stopped(limits):
    world = world_of("auto", "coordinate_descent", limits, clock=Frozen(kind="poisson"))
    found = stopped(world)
    assert found[1] == ("events" if limits.events == 40 else "at_once_each")
    assert world.now == 0
    if limits == Limits():
        assert "woke 1,001 times at one instant; its clock does not go on" in found[0]
