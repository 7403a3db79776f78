"""A shell completes names of scenarios, lists, topics and papers, and files that may be scenarios."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from hushnet.simulator.language.loading import shipped
from hushnet.simulator.shell.completion import KNOWN, names
from hushnet.simulator.shell.explain import explain
from hushnet.simulator.shell.listing import lists

PROGRAM = "from hushnet.simulator.cli import main; main([])"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_is_told_what_begins_so(shell):
    words = {"COMP_WORDS": "hushnet run quick", "COMP_CWORD": "2", "_TYPER_COMPLETE_ARGS": "hushnet run quick"}
    environment = {**os.environ, "_HUSHNET_COMPLETE": f"complete_{shell}", "_TYPER_COMPLETE_FISH_ACTION": "get-args"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env={**environment, **words}, capture_output=True, text=True, check=False
    )
    assert "quickstart" in done.stdout
    assert "latency-sweep" not in done.stdout


def test_files_are_completed_where_a_scenario_is_asked_for(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.yaml").touch()
    (tmp_path / "mine.txt").touch()
    (tmp_path / "minutes").mkdir()
    (tmp_path / "minutes" / "a.yml").touch()
    assert names("scenarios", "min") == ["mine.yaml", "minutes/"]
    assert names("scenarios", "minutes/") == ["minutes/a.yml"]
    assert f"{tmp_path}/mine.yaml" in names("scenarios", f"{tmp_path}/m")


def test_what_is_completed_is_admissible():
    assert names("scenarios", "quickst") == ["quickstart"]
    assert set(names("scenarios", "")) >= set(shipped())
    for name in names("lists", "lat"):
        assert lists(name)
    assert names("topics", "latency.g") == ["latency.gamma"]
    assert explain("latency.gamma")
    assert "bellet2018-fig2a" in names("papers", "bellet2018-fig2")
    assert set(KNOWN) == {"scenarios", "lists", "topics", "papers"}
