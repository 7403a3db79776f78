"""The benchmark of README's protocol compares one protocol with itself."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hushnet.simulator.network.network import NetworkParameters
from hushnet.simulator.network.randomness import stable_ids

from . import readme
from .cases import make_setting

CASE = readme.CASES[100].toy


def test_the_script_makes_the_updates_of_the_protocol_where_messages_take_no_time():
    setting = replace(make_setting(CASE, 6.0), network=NetworkParameters.model_validate({"latency": 0.0}))
    with readme.protocol_of_readme() as protocol:
        world, _ = readme.run_hushnet(setting, protocol)
    ids = setting.task.ids
    clock = setting.clock.build(ids, stable_ids(ids), setting.draws, None)
    script = readme.script_of(
        setting,
        step_size=0.1,
        mean_delay=0.0,
        loss=0.0,
        wait=lambda agent, tick, now: clock.next_time(agent, tick, now) - now,
    )
    script.run(6.0)
    assert script.updates == world.activations > 50
    assert np.abs(script.models).max() > 0.01
    np.testing.assert_allclose(world.protocol.models(world.state), script.models, rtol=1e-10, atol=1e-12)


def test_it_is_measured_by_turns():
    engine, mine, naive = readme.measure(CASE, 4.0, 2)
    assert engine == "batched (planned steps)"
    assert len(mine) == len(naive) == 2
    assert min(mine + naive) > 0
