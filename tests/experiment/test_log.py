"""What happens to every run is kept in ``run.log``, and shown where somebody asks for it."""

from __future__ import annotations

import re

import pytest
from hushnet.simulator.cli import main
from hushnet.simulator.console.log import FILE, LOGGER
from hushnet.simulator.storage.ownership import MARKER

TEXT = """\
schema: 1
scenario: little
seeds: 2
task: {kind: mean_estimation, agents: 4}
topology: {kind: complete}
clock: {kind: poisson}
network: {latency: {kind: constant, value: 0}}
protocols: {alone: {kind: local}}
stop: {time: 2}
record: {every: 1, metrics: [mse]}
"""
LINE = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ (INFO|WARNING) ")


@pytest.fixture
def scenario(tmp_path):
    path = tmp_path / "little.yaml"
    path.write_text(TEXT)
    return path


def test_every_run_has_a_line_and_is_there_the_next_time(scenario, tmp_path, capsys):
    out = tmp_path / "out"
    assert main(["run", str(scenario), "--out", str(out), "--quiet"]) == 0
    assert "complete in" not in capsys.readouterr().out
    first = (out / FILE).read_text().splitlines()
    assert all(LINE.match(line) for line in first)
    assert sum("complete in" in line for line in first) == 2
    assert main(["run", str(scenario), "--out", str(out), "--quiet", "--verbose"]) == 0
    assert capsys.readouterr().out.count("there already") == 2
    assert len((out / FILE).read_text().splitlines()) == 2 * len(first)
    assert not LOGGER.handlers


def test_a_log_that_cannot_be_written_stops_nothing(scenario, tmp_path):
    out = tmp_path / "out"
    assert main(["run", str(scenario), "--out", str(out), "--quiet"]) == 0
    (out / FILE).unlink()
    (out / FILE).mkdir()
    assert main(["run", str(scenario), "--out", str(out), "--quiet", "--set", "stop.time=3"]) == 0
    assert (out / MARKER).exists()
