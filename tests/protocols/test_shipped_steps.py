"""How many of the runs of all shipped scenarios take compiled steps."""

from __future__ import annotations

import dataclasses
from collections import Counter
from types import SimpleNamespace

import pytest
from hushnet.agents.errors import HushnetError
from hushnet.agents.losses import LOSSES
from hushnet.protocols.steps import building, fields
from hushnet.protocols.steps.signatures import EXCHANGE, STEP
from hushnet.simulator.contract.bench import small_setting, split_setting
from hushnet.simulator.engine.batched import exchange_windows, windows
from hushnet.simulator.engine.selection import BatchedEngine
from hushnet.simulator.language.loading import load, shipped
from hushnet.simulator.world.world import World

STEPLESS = {"local", "solitary", "consensus", "local_dp"}
"""Protocols whose agents are done once they have started."""


@pytest.fixture
def nothing_is_compiled(monkeypatch):
    """Whether a text has a compiled form is decided before numba sees it."""
    stand_ins = {STEP: windows.no_step, EXCHANGE: exchange_windows.no_exchange}
    monkeypatch.setattr(building, "_made", {})

    def stand_in(key, _, signature, *__, **___):
        building._made[key] = stand_ins[signature]

    monkeypatch.setattr(building, "_compile", stand_in)
    monkeypatch.setattr(fields, "minimiser_of", lambda *_, **__: SimpleNamespace(address=0))


def engine_of(kind, parameters, loss) -> str:
    """What runs a protocol's steps in a small world with a loss."""
    setting = small_setting(empty=False) if kind.learns_from == "rows" else split_setting()
    setting = dataclasses.replace(setting, task=dataclasses.replace(setting.task, loss=LOSSES[loss]))
    lists = {name: value for name, value in parameters if isinstance(value, list) and name != "tuned"}
    parameters = parameters.model_copy(update={name: value[0] for name, value in lists.items()})
    if parameters.kind == "perturbed_admm":  # theorem 4.1 asks for more rows than there are in so small a world
        parameters = parameters.model_copy(update={"loss_weight": 1e-3})
    return BatchedEngine().driver(World(setting, kind, parameters)).engine


@pytest.mark.usefixtures("nothing_is_compiled")
def test_most_runs_of_the_shipped_scenarios_take_compiled_steps():
    check_shipped()


@pytest.mark.slow
def test_all_texts_of_the_shipped_scenarios_compile(monkeypatch):
    monkeypatch.setattr(building, "_refused", {})
    check_shipped()
    assert not building._refused


def check_shipped() -> None:
    """Ask every run of every shipped scenario, in a small world, what steps it takes."""
    runs, known = Counter(), {}
    for path in shipped().values():
        loaded = load(path)
        for point in loaded.points:
            scenario = point.scenario
            loss = getattr(scenario.task, "loss", "squared")
            for parameters in scenario.protocols.values():
                if parameters.kind in STEPLESS or getattr(parameters, "closed_form", False):
                    runs["stepless"] += scenario.repetitions
                    continue
                key = parameters.model_dump_json(), loss
                if key not in known:
                    try:
                        known[key] = engine_of(loaded.code.protocol(parameters.kind), parameters, loss)
                    except HushnetError as error:
                        known[key] = f"{type(error).__name__}: {error}"
                runs[parameters.kind, known[key]] += scenario.repetitions
    compiled = sum(count for key, count in runs.items() if key[-1] == "batched (compiled step)")
    unknown = [key for key in runs if key != "stepless" and not key[-1].startswith("batched")]
    assert not unknown
    others = {key[0] for key, count in runs.items() if key != "stepless" and key[-1] != "batched (compiled step)"}
    stepping = sum(count for key, count in runs.items() if key != "stepless")
    assert compiled >= 0.95 * stepping > 4000
    assert others <= {"collaborative_admm"}, "with a hinge loss, whose minimiser is not Newton's"
