"""Scenarios and results from before ``epsilon_tight`` was called ``epsilon_verified`` are read as what they mean.

``tests/golden/before-verified`` was written by the last version that knew the old words alone.
"""

from __future__ import annotations

import shutil
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from hushnet.protocols.privacy import Ledger
from hushnet.simulator import run
from hushnet.simulator.analysis.results import load_all
from hushnet.simulator.analysis.summary import summarise
from hushnet.simulator.cli import main
from hushnet.simulator.language.loading import load
from hushnet.simulator.language.spellings import respelled
from hushnet.simulator.storage import dataset
from hushnet.simulator.storage.store import Store

SAVED = Path(__file__).parents[1] / "golden" / "before-verified"
WRITTEN = SAVED / "origin" / "scenario.yaml"
BY = "protocols.private.privacy.budget.by"


@pytest.fixture
def folder(tmp_path):
    """A copy of the saved results."""
    return Path(shutil.copytree(SAVED, tmp_path / "before-verified"))


def test_the_saved_results_have_the_old_words_in_every_place():
    for name in ("index.json", "origin/scenario.yaml", "origin/resolved.json"):
        assert "epsilon_tight" in (SAVED / name).read_text()
    runs = [path.parent for path in SAVED.glob("*/manifest.json")]
    assert any('"claimed_by": "tight"' in (run / "manifest.json").read_text() for run in runs)
    for folder in (*runs, SAVED / "dataset"):
        assert "epsilon_tight" in pq.read_schema(folder / "agents.parquet").names
        assert "epsilon_tight" in set(pq.read_table(folder / "trace.parquet")["metric"].to_pylist())


def test_old_results_are_read_in_todays_words():
    collection = load_all(SAVED)
    assert set(collection.trace["metric"]) == {"accuracy", "epsilon_claimed", "epsilon_verified", "updates"}
    assert {"epsilon_claimed", "epsilon_verified"} < set(collection.agents.columns)
    assert set(collection.trace[BY]) == set(collection.agents[BY]) == {"verified", "basic_composition"}
    assert {manifest["grid"][BY] for manifest in collection.manifests} == {"verified", "basic_composition"}
    stated = [manifest["privacy"] for manifest in collection.manifests if manifest["privacy"]]
    assert {privacy["claimed_by"] for privacy in stated} == {"verified", "basic_composition"}
    assert {manifest["scenario"]["engine"] for manifest in collection.manifests} == {"event"}
    assert collection.index["figures"][0]["at"] == {BY: "verified"}
    assert collection.index["target"]["metric"] == "epsilon_verified"
    read = [collection.index, collection.manifests]
    assert "tight" not in repr(read).replace(collection.manifests[0]["scenario"]["title"], "")


def test_the_numbers_of_old_results_stay_as_they_were():
    trace = load_all(SAVED).trace
    for name in trace["run"].unique():
        old = pq.read_table(SAVED / name.partition("#")[0] / "trace.parquet").to_pandas()
        np.testing.assert_array_equal(trace[trace["run"] == name]["value"], old["value"])
    frame = summarise(load_all(SAVED))
    private = frame[frame["protocol"] == "private"].set_index(BY)
    assert private.loc["verified", "epsilon_verified"] == pytest.approx(3.0, rel=1e-3)


def test_a_run_by_itself_is_read_in_todays_words():
    store = Store(SAVED)
    for name in store.index()["runs"]:
        result = store.load(name)
        assert "epsilon_verified" in set(result.trace["metric"])
        assert "epsilon_verified" in result.agents
        assert store.state(name) == "complete"


def test_an_old_dataset_is_read_in_todays_words(folder, monkeypatch):
    monkeypatch.setattr(dataset, "modern", lambda table: table)
    shutil.rmtree(folder / "dataset")
    assert Store(folder).consolidate()
    monkeypatch.undo()
    expected = load_all(SAVED)
    monkeypatch.setattr(dataset, "tables", None)  # so that the dataset must be what is read
    found = load_all(folder)
    pd.testing.assert_frame_equal(found.trace, expected.trace)
    pd.testing.assert_frame_equal(found.agents, expected.agents)


def test_old_results_are_plotted(folder, capsys):
    assert main(["plot", str(folder)]) == 0
    names = [figure["name"] for figure in Store(folder).index()["figures"]]
    assert sorted(path.stem for path in (folder / "figures").glob("*.png")) == sorted(names)
    over_time = pd.read_csv(folder / "figures" / "over-time.csv").query("protocol == 'private'")
    assert over_time["mean"].max() == pytest.approx(3.0, rel=1e-3)
    assert "epsilon_tight" not in "".join(path.read_text() for path in (folder / "figures").glob("*.csv"))


def test_old_results_are_compared_with_others(folder, tmp_path, capsys):
    assert main(["compare", str(folder)]) == 0
    other = shutil.copytree(folder, tmp_path / "again")
    assert main(["compare", str(folder), str(other)]) == 0
    shown = capsys.readouterr().out
    assert "epsilon_verified" in shown or "verified epsilon" in shown
    assert "tight" not in shown


def test_old_results_are_reported(folder):
    assert main(["report", str(folder)]) == 0
    page = (folder / "report.html").read_text()
    assert "epsilon_verified" in page


def test_old_results_are_bundled(folder, tmp_path):
    assert main(["bundle", str(folder), "--out", str(tmp_path / "bundle.zip")]) == 0
    with zipfile.ZipFile(tmp_path / "bundle.zip") as bundle:
        claims = bundle.read("claims.csv").decode()
        assert bundle.read("scenario.yaml") == WRITTEN.read_bytes()
    assert "epsilon_verified of private" in claims
    assert "tight" not in claims


def test_an_old_scenario_is_read_with_a_hint_for_every_old_word():
    loaded = load(WRITTEN)
    found = [hint.removeprefix(f"{WRITTEN}:").partition(": is called ") for hint in loaded.hints]
    assert [place for place, _, _ in found] == [
        "6: engine = 'reference'",
        "11: protocols.private.privacy.budget.by = 'tight'",
        "15: target.metric = 'epsilon_tight'",
        f"17: sweep.{BY}[0] = 'tight'",
        f"17: sweep.{BY}[1] = 'basic'",
        "19: figures[0].y = 'epsilon_tight'",
        f"19: figures[0].at.{BY} = 'tight'",
        "20: figures[1].x = 'epsilon_tight'",
        "21: figures[2].y = 'epsilon_tight'",
        "22: figures[3].facet[0] = 'epsilon_tight'",
    ]
    new = ("verified", "epsilon_verified", "event", "basic_composition")
    assert {ending for _, _, ending in found} == {f"{word!r} now and read as that; write {word}" for word in new}
    assert loaded.scenario.target is not None
    assert loaded.scenario.target.metric == "epsilon_verified"
    assert [point.values[BY] for point in loaded.points] == ["verified", "basic_composition"]
    assert loaded.points[0].scenario.protocols["private"].privacy.budget.by == "verified"  # pyright: ignore


def test_the_command_line_says_the_hints_and_its_own_old_words_are_read_too(capsys):
    given = [f"{BY}=tight", "target.metric=epsilon_tight"]
    assert main(["check", str(WRITTEN), "--set", given[0], "--set", given[1]]) == 0
    shown = capsys.readouterr()
    assert "valid" in shown.out
    lines = shown.err.splitlines()
    assert lines[1].startswith(f"warning: {WRITTEN}:11: {BY} = 'tight': is called 'verified' now")
    assert lines[-2:] == [
        f"warning: --set {given[0]}: is called 'verified' now and read as that; write verified",
        f"warning: --set {given[1]}: is called 'epsilon_verified' now and read as that; write epsilon_verified",
    ]
    assert len(lines) == 12


def test_quick_assignments_and_trials_are_read_anew():
    data = {
        "quick": {BY: "tight", "target.metric": "epsilon_tight"},
        "tune": {"over": {"private.privacy.budget.by": ["tight", "basic"]}},
        "sweep": {"rule": {"zip": {BY: ["basic", "tight"]}, "labels": ["tight", "epsilon_tight"]}},
    }
    told = []
    assert respelled(data, lambda keys, old, new: told.append(keys[-1])) == {
        "quick": {BY: "verified", "target.metric": "epsilon_verified"},
        "tune": {"over": {"private.privacy.budget.by": ["verified", "basic_composition"]}},
        "sweep": {"rule": {"zip": {BY: ["basic_composition", "verified"]}, "labels": ["tight", "epsilon_tight"]}},
    }
    assert told == [BY, "target.metric", 0, 1, 0, 1]


def test_a_scenario_without_old_words_gives_no_hint():
    assert load("privacy-frontier").hints == ()
    assert load("quickstart").hints == ()


def test_only_the_places_that_had_the_old_words_are_read_anew():
    data = {"title": "tight", "protocols": {"tight": {"label": "tight", "kind": "./tight.py:By"}}, "by": "tight"}
    assert respelled(data) == data


def test_from_python_an_old_scenario_warns_and_its_results_have_todays_words(tmp_path):
    with pytest.warns(
        FutureWarning, match=r"scenario\.yaml:\d+: .*' *: is called '((epsilon_)?verified|event|basic_composition)' now"
    ) as told:
        result = run(WRITTEN, out=tmp_path / "new")
    assert len(told) == 10
    assert {warning.filename for warning in told} == {__file__}
    old = load_all(SAVED)
    assert set(result.trace["metric"]) == set(old.trace["metric"])
    assert sorted(result.agents.columns) == sorted(old.agents.columns)
    assert set(result.trace[BY]) == set(old.trace[BY])
    assert (result.folder / "origin" / "scenario.yaml").read_bytes() == WRITTEN.read_bytes()
    assert "tight" not in (result.folder / "index.json").read_text().replace(old.manifests[0]["scenario"]["title"], "")


def test_the_ledger_refuses_the_old_word_and_says_the_new_one():
    with pytest.raises(ValueError, match="verified, not tight"):
        Ledger(1).epsilon("tight", 1e-5)  # pyright: ignore[reportArgumentType]


def test_engines_are_read_by_their_old_names_wherever_they_stand(tmp_path, capsys):
    fields = {"engine": "fast", "sweep": {"engine": ["reference", "auto"]}, "quick": {"engine": "fast"}}
    told = []
    found = respelled({**fields, "task": {"engine": "fast"}}, lambda keys, old, new: told.append((keys, old, new)))
    assert found == {
        "engine": "batched",
        "sweep": {"engine": ["event", "auto"]},
        "quick": {"engine": "batched"},
        "task": {"engine": "fast"},  # not ours
    }
    assert told == [
        (("engine",), "fast", "batched"),
        (("sweep", "engine", 0), "reference", "event"),
        (("quick", "engine"), "fast", "batched"),
    ]
    scenario = tmp_path / "s.yaml"
    scenario.write_text(WRITTEN.read_text().replace("tight", "verified"))
    assert main(["check", str(scenario)]) == 0
    said = capsys.readouterr()
    assert f"{scenario}:6: engine = 'reference': is called 'event' now" in said.out + said.err
    assert main(["run", str(scenario), "--set", "engine=fast", "--dry-run"]) == 0
    assert "--set engine=fast: is called 'batched' now" in "".join(capsys.readouterr())
