"""In which form all runs of all shipped scenarios make their steps."""

from __future__ import annotations

import dataclasses
from collections import Counter

from hushnet.agents.losses import LOSSES
from hushnet.protocols.steps.step_charges import NotPlanned
from hushnet.simulator.contract.bench import small_setting, split_setting
from hushnet.simulator.engine.selection import BatchedEngine
from hushnet.simulator.language.loading import load, shipped
from hushnet.simulator.world.world import World

STEPLESS = {"local", "solitary", "consensus", "local_dp"}
"""Protocols whose agents are done once they have started."""


def form_of(kind, parameters, loss) -> str:
    """In which form a protocol's steps are made in a small world with a loss."""
    setting = small_setting(empty=False) if kind.learns_from == "rows" else split_setting()
    setting = dataclasses.replace(setting, task=dataclasses.replace(setting.task, loss=LOSSES[loss]))
    lists = {name: value for name, value in parameters if isinstance(value, list) and name != "tuned"}
    parameters = parameters.model_copy(update={name: value[0] for name, value in lists.items()})
    if parameters.kind == "perturbed_admm":  # theorem 4.1 asks for more rows than there are in so small a world
        parameters = parameters.model_copy(update={"loss_weight": 1e-3})
    try:
        return BatchedEngine().driver(World(setting, kind, parameters)).form.form
    except NotPlanned:
        return "one by one"


def test_nearly_all_runs_of_the_shipped_scenarios_plan_their_steps():
    runs, known = Counter(), {}
    for path in shipped().values():
        loaded = load(path)
        for scenario in (point.scenario for point in loaded.points):
            loss = getattr(scenario.task, "loss", "squared")
            for parameters in scenario.protocols.values():
                if parameters.kind in STEPLESS or getattr(parameters, "closed_form", False):
                    continue
                key = parameters.model_dump_json(), loss
                if key not in known:
                    known[key] = form_of(loaded.code.protocol(parameters.kind), parameters, loss)
                runs[parameters.kind, known[key]] += scenario.repetitions
    one_by_one = {kind for kind, form in runs if form == "one by one"}
    by_numbers = {"stale_feature_sharing", "dada", "divshare", "random_walk_sgd"}
    assert one_by_one <= {*by_numbers, "push_sum_dual_averaging", "feature_sharing"}
    planned = {kind for kind, form in runs if form == "planned"}
    assert planned <= {"feature_sharing", "feature_sgd", "federated_averaging"}
    batches = sum(count for (_, form), count in runs.items() if form == "batches")
    assert batches >= 0.9 * runs.total() > 4000
