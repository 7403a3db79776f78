"""Lossless rounds on the batched engine: the events, models, tallies and records of the event engine."""

from __future__ import annotations

import dataclasses

import pytest
from hushnet.agents.availability import Always, OnOff
from hushnet.simulator.contract.bench import small_graph, small_task
from hushnet.simulator.engine.batched.eventful import EventfulRounds
from hushnet.simulator.network.clocks import Poisson
from hushnet.simulator.network.network import NetworkParameters
from hushnet.simulator.network.randomness import Draws
from hushnet.simulator.network.setting import Setting, Stop

from .driving import build_world, driver_of
from .test_rounds import Averaging, in_rounds


def plain_setting(task=None, **fields):
    setting = Setting(
        task=task or small_task(6, empty=False),
        graph=small_graph(6),
        clock=Poisson(kind="poisson"),
        network=NetworkParameters.model_validate({"latency": {"kind": "exponential", "mean": 0.5}}),
        availability=Always(kind="always"),
        stop=Stop(time=20.0),
        draws=Draws(5),
    )
    return dataclasses.replace(setting, **fields)


@pytest.mark.parametrize(
    ("fields", "schedule"),
    [
        ({"network": NetworkParameters.model_validate({"loss": 0.1})}, "rounds"),
        ({"availability": OnOff(kind="on_off", online=0.7, mean_down=1)}, "rounds"),
        ({}, {"kind": "rounds", "patience": 2.0}),
        ({}, {"kind": "rounds", "resend_after": 2.0}),
    ],
)
def test_rounds_that_need_events_have_them_in_compiled_windows(fields, schedule):
    world = build_world("auto", plain_setting(**fields), Averaging, in_rounds(Averaging, schedule=schedule))
    assert type(driver_of(world)) is EventfulRounds
    assert world.engine == "batched (planned steps)"
