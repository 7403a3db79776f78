"""The shell: its commands, exit codes, completion, and that it ends when it is asked to."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import sys
import time
import types
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import hushnet.simulator
import pytest
from hushnet.agents.errors import Divergence, InputError, Stall
from hushnet.simulator.cli import main
from hushnet.simulator.language.loading import shipped
from hushnet.simulator.shell.completion import KNOWN, names
from hushnet.simulator.shell.explain import explain
from hushnet.simulator.shell.listing import lists
from hushnet.simulator.signals import terminable

SCENARIO = """\
schema: 1
scenario: tiny
task: {kind: linear_classification, agents: 4, dimension: 3}
topology: {kind: knn, k: 2}
protocols: {local: {kind: local}, cd: {kind: coordinate_descent}}
stop: {time: 10}
seeds: 3
sweep: {network.loss: [0.0, 0.1]}
"""


@pytest.fixture
def scenario(tmp_path):
    path = tmp_path / "tiny.yaml"
    path.write_text(SCENARIO, encoding="utf-8")
    return path


@pytest.fixture
def experiment(monkeypatch):
    """Stands for the experiment; collects what the shell asks of it."""
    stand_in: Any = types.ModuleType("hushnet.simulator.console")
    stand_in.calls = []
    stand_in.run_scenario = lambda loaded, **options: stand_in.calls.append((loaded, options))
    monkeypatch.setitem(sys.modules, stand_in.__name__, stand_in)
    return stand_in


def test_check_says_how_much_a_scenario_would_run(scenario, capsys):
    assert main(["check", str(scenario)]) == 0
    assert capsys.readouterr().out == f"{scenario}: valid; 2 protocols, 2 grid points, 3 seeds: 12 runs\n"
    assert main(["check", str(scenario), "--seeds", "1", "--set", "sweep="]) == 2
    assert main(["check", str(scenario), "--seeds", "1", "--set", "sweep={}"]) == 0
    assert capsys.readouterr().out.endswith("2 protocols, 1 grid point, 1 seed: 2 runs\n")


def test_run_hands_the_loaded_scenario_over(scenario, experiment, tmp_path):
    options = ["--set", "stop.time=3", "--seeds", "2", "--out", str(tmp_path / "o"), "--data-dir", "d", "--quiet"]
    assert main(["run", str(scenario), *options]) == 0
    ((loaded, given),) = experiment.calls
    assert loaded.scenario.stop.time == 3
    assert len(loaded.scenario.seed_pairs()) == 2
    assert (str(given["out"]), str(given["data_dir"]), given["progress"], given["dry_run"]) == (
        str(tmp_path / "o"),
        "d",
        False,
        False,
    )


def raising(error):
    return Mock(side_effect=error)  # whose code is no author's


@pytest.mark.parametrize(
    ("error", "code", "says"),
    [
        (InputError("must be below 4", field=("topology", "k")), 2, "tiny.yaml:4: topology.k = 2: must be below 4\n"),
        (Divergence("agent 3 at time 5: model is not finite"), 4, "agent 3 at time 5: model is not finite\n"),
        (Stall("agent 1 at time 5: round 3 can never begin"), 4, "agent 1 at time 5: round 3 can never begin\n"),
        (OSError(22, "Invalid argument"), 5, "(Invalid argument); what was complete is kept\n"),
        (KeyboardInterrupt(), 130, "interrupted\n"),
    ],
)
def test_what_goes_wrong_in_a_run_is_one_sentence_and_a_code(scenario, experiment, capsys, error, code, says):
    experiment.run_scenario = raising(error)
    assert main(["run", str(scenario)]) == code
    assert capsys.readouterr().err.endswith(says)


@pytest.mark.parametrize("error", [ZeroDivisionError("ours"), MemoryError(), RecursionError("x" * 9999)])
def test_an_unforeseen_error_is_one_sentence_and_its_details_are_kept(
    scenario, experiment, capsys, monkeypatch, tmp_path, error
):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.delenv("HUSHNET_DEBUG", raising=False)
    experiment.run_scenario = raising(error)
    assert main(["run", str(scenario)]) == 70
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert len(said) < 1000
    assert type(error).__name__ in said
    (kept,) = tmp_path.glob("hushnet-*.txt")
    assert str(kept) in said
    assert "Traceback (most recent call last)" in kept.read_text()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["run"], "Missing argument"),
        (["chek", "x"], "No such command 'chek'"),
        (["check", "x", "--seed", "3"], "No such option: --seed"),
        (["check", "x", "--seeds", "three"], "--seeds"),
        (["check", "x", "--seeds", "0"], "--seeds"),
        (["check", "nowhere"], "unknown scenario 'nowhere'"),
        (["check", "nowhere.yaml"], "nowhere.yaml: cannot be read"),
    ],
)
def test_a_wrong_command_line_is_one_sentence(arguments, says, capsys):
    assert main(arguments) == 2
    output = capsys.readouterr().err
    assert says in output
    assert output.count("\n") == 1


def test_a_new_protocol_works_and_keeps_the_contract(tmp_path):
    assert main(["new", "protocol", "my_rule", "--dir", str(tmp_path)]) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["my_rule.py", "test_my_rule.py"]
    test = (
        "sys.path.insert(0, '.')\n"
        + (tmp_path / "test_my_rule.py").read_text()
        + "\ntest_my_rule_keeps_the_contract()\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", "import sys\n" + test], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("editable", [True, False])
def test_the_version_says_which_of_two_copies_is_used_if_it_is_not_the_installed_one(
    editable, tmp_path, monkeypatch, capsys
):
    class Installed:
        version = "0.1.0"
        root = Path(hushnet.simulator.__file__).resolve().parents[1] if editable else tmp_path / "hushnet"

        def read_text(self, name):
            return json.dumps({"url": self.root.as_uri(), "dir_info": {"editable": True}}) if editable else None

        def locate_file(self, name):
            return tmp_path / name

    monkeypatch.setattr("importlib.metadata.distribution", lambda name: Installed())
    here = Path(hushnet.simulator.__file__).resolve().parents[1]
    if editable:
        assert main(["--version"]) == 0
        assert capsys.readouterr().out == "hushnet 0.1.0\n"
        monkeypatch.setattr(Installed, "root", tmp_path)
    assert main(["--version"]) == 0
    other = tmp_path if editable else tmp_path / "hushnet"
    assert capsys.readouterr().out == f"hushnet from {here}, not the installed 0.1.0 of {other}\n"


def test_an_unforeseen_error_whose_details_cannot_be_kept_is_still_one_sentence(
    scenario, experiment, capsys, monkeypatch, tmp_path
):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "nowhere"))
    experiment.run_scenario = raising(ZeroDivisionError("ours"))
    assert main(["run", str(scenario)]) == 70
    assert "could not be kept" in capsys.readouterr().err


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


LONG = 30.0
"""Seconds that nothing here takes, unless an interrupt is lost."""


class Finalized:
    """Is sent a signal while it is removed."""

    def __init__(self, number):
        self.number = number

    def __del__(self):
        signal.raise_signal(self.number)
        _ = [None for _ in range(3)]


def finalize(number):
    Finalized(number)


def call_back(number):
    @ctypes.CFUNCTYPE(None)
    def callback():
        signal.raise_signal(number)
        _ = [None for _ in range(3)]

    callback()


@pytest.fixture(params=[signal.default_int_handler, signal.SIG_IGN], ids=["foreground", "background"])
def shell(request):
    """Commands that a shell runs in the background heed no Ctrl-C."""
    before = signal.signal(signal.SIGINT, request.param)
    yield request.param
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("where", [finalize, call_back])
def test_an_interrupt_that_python_drops_is_raised_again(where, number, shell, capfd):
    if number == signal.SIGINT and shell is signal.SIG_IGN:
        where(number)
        return

    def interrupted():
        where(number)
        time.sleep(LONG)

    with terminable() as asked, pytest.raises(KeyboardInterrupt):
        interrupted()
    assert len(asked) == (number == signal.SIGTERM)
    assert "ignored" not in capfd.readouterr().err


def test_other_errors_that_python_drops_are_said_as_ever(capfd):
    said = []

    class Failing:
        def __del__(self):
            raise ValueError

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("sys.unraisablehook", said.append)
        with terminable():
            Failing()
    assert [what.exc_type for what in said] == [ValueError]
