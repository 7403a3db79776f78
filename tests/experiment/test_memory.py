"""Large worlds are estimated before they are built, and refused with numbers where they cannot fit."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hushnet.agents.errors import OutOfResources
from hushnet.simulator import memory
from hushnet.simulator.cli import main
from hushnet.simulator.experiment import Experiment
from hushnet.simulator.language.loading import load

SCENARIO = {
    "schema": 1,
    "scenario": "large",
    "task": {"kind": "linear_classification", "agents": 400, "dimension": 50, "samples": [40, 80], "test_samples": 50},
    "topology": {"kind": "random_regular", "degree": 6},
    "protocols": {"cd": {"kind": "coordinate_descent"}},
    "stop": {"time": 1.0},
}


def test_the_estimate_is_within_a_factor_of_two_of_what_building_takes():
    loaded = load(SCENARIO)
    experiment = Experiment(loaded)
    run = next(experiment.runs())
    tracemalloc.start()
    experiment.world(run)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert 0.5 < memory.expected_bytes(loaded.scenario) / peak < 2.0


@pytest.mark.parametrize("precision", ["float64", "float32"])
def test_making_the_data_holds_them_once(precision):
    task = load({**SCENARIO, "task": {**SCENARIO["task"], "precision": precision}}).scenario.task
    tracemalloc.start()
    built = task.build(rng=np.random.default_rng(1), data_dir=None)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    held = sum(t.features.nbytes + t.labels.nbytes for t in (built.train, built.test))
    assert peak < 1.3 * held
    # 400 counts uniform on 40 to 80: their mean has a deviation of 0.6, some 0.6 % of an agent's 110 rows.
    assert task.expected_bytes() == pytest.approx(held, rel=0.05)


def test_a_run_and_its_records_keep_no_copy_of_data_in_single_precision():
    fields = {"agents": 150, "dimension": 100, "samples": [200, 300], "points": "ball", "precision": "float32"}
    protocol = {"kind": "coordinate_descent", "smoothness": "public"}
    scenario = {**SCENARIO, "task": {**SCENARIO["task"], **fields}, "protocols": {"cd": protocol}, "engine": "fast"}
    experiment = Experiment(load({**scenario, "record": {"every": 0.5, "metrics": ["objective", "accuracy"]}}))
    experiment.world(next(experiment.runs())).run()  # compiles what is to be compiled, untraced
    tracemalloc.start()
    world = experiment.world(next(experiment.runs()))
    world.run()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert world.engine == "fast (compiled step)"
    assert peak < 1.25 * sum(table.features.nbytes for table in (world.setting.task.train, world.setting.task.test))


def test_a_world_that_does_not_fit_is_refused_with_the_numbers_and_exit_code_5(tmp_path, capsys):
    path = tmp_path / "huge.yaml"
    path.write_text(
        "schema: 1\nscenario: huge\n"
        "task: {kind: linear_classification, agents: 10000000, dimension: 10000}\n"
        "topology: {kind: ring}\nprotocols: {local: {kind: local}}\nstop: {time: 1}\n"
    )
    assert main(["run", str(path), "--quiet", "--out", str(tmp_path / "out")]) == 5
    message = capsys.readouterr().err
    assert "huge: needs about" in message
    assert "GiB are available" in message
    assert len(message.strip().splitlines()) == 1


def test_a_similarity_graph_of_many_agents_counts_its_matrix():
    large = {**SCENARIO, "task": {**SCENARIO["task"], "agents": 200_000}, "topology": {"kind": "angular_similarity"}}
    with pytest.raises(OutOfResources, match="GiB of memory"):
        memory.check_memory(load(large).scenario)
