"""Lossless rounds on the batched engine: the events, models, tallies and records of the event engine."""

from __future__ import annotations

import dataclasses

import pytest
from hushnet.agents.availability import Always, OnOff, Window
from hushnet.agents.errors import InputError
from hushnet.simulator.contract.bench import small_graph, small_task
from hushnet.simulator.engine.batched.eventful import EventfulRounds
from hushnet.simulator.network.clocks import Poisson, Recorded
from hushnet.simulator.network.network import NetworkParameters
from hushnet.simulator.network.randomness import Draws
from hushnet.simulator.network.setting import Setting, Stop

from .driving import build_world, driver_of
from .helpers import Stamp
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


@pytest.mark.parametrize(
    ("fields", "field", "complaint"),
    [
        ({"clock": Recorded(kind="recorded", order=[0, 1])}, ("clock", "kind"), "no intervals for rounds to last"),
        (
            {"availability": Always(kind="always", joins=Window(share=0.5, between=[1, 2]))},
            ("availability", "joins"),
            "none may join or leave",
        ),
        (
            {"availability": Always(kind="always", leaves=Window(share=0.5, between=[1, 2]))},
            ("availability", "leaves"),
            "none may join or leave",
        ),
    ],
)
def test_what_rounds_cannot_do_is_refused_alike_on_both_engines(fields, field, complaint):
    said = []
    for engine in ("event", "batched"):
        with pytest.raises(InputError, match=complaint) as error:
            build_world(engine, plain_setting(**fields), Stamp, in_rounds(Stamp))
        assert error.value.field == field
        said.append(str(error.value))
    assert said[0] == said[1]
