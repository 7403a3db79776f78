"""Runs that reach a limit: kept and never complete, compared with nobody, and made again once the limit is raised."""

from __future__ import annotations

import pytest
from hushnet.agents.errors import InputError
from hushnet.simulator.analysis.aggregate import curves, final_values
from hushnet.simulator.analysis.results import load_all
from hushnet.simulator.analysis.targets import reached
from hushnet.simulator.cli import main
from hushnet.simulator.report.comparing import compare_folders
from hushnet.simulator.report.report_page import write_report

SCENARIO = """\
schema: 1
scenario: stopped
task: {kind: linear_classification, agents: 6, dimension: 3, samples: [5, 20], test_samples: 10}
topology: {kind: ring}
engine: event
protocols:
  cd: {kind: coordinate_descent}
  alone: {kind: local}
stop: {time: 10}
record: {every: 1.0, metrics: [accuracy, traffic]}
seeds: 2
"""


@pytest.fixture
def shell(tmp_path, capsys):
    """``hushnet run`` of the scenario: exit code, what was said on stderr, and what is there."""
    (tmp_path / "stopped.yaml").write_text(SCENARIO)

    def run(*settings):
        given = [part for setting in settings for part in ("--set", setting)]
        code = main(["run", str(tmp_path / "stopped.yaml"), "--quiet", "--out", str(tmp_path / "out"), *given])
        said = capsys.readouterr()
        return code, said, load_all(tmp_path / "out")

    return run


def by_protocol(collection):
    return {(m["protocol"], m["seed"]): m for m in collection.manifests}


def when(tmp_path):
    return {path: path.stat().st_mtime_ns for path in (tmp_path / "out").glob("*/manifest.json")}


def test_a_run_that_reaches_a_limit_is_kept_as_limited_and_made_again_once_it_is_raised(shell, tmp_path):
    code, said, stopped = shell("limits.events=90")
    assert code == 5
    assert len(said.err.strip().splitlines()) == 2
    assert "protocol cd, seed 0: at time" in said.err
    assert "limits.events admits 90" in said.err
    for (protocol, _), manifest in by_protocol(stopped).items():
        assert manifest["status"] == ("limited" if protocol == "cd" else "complete")
        assert (manifest["limit"] is None) == (protocol == "alone")
    limit = by_protocol(stopped)["cd", 0]["limit"]
    assert limit["reached"] == "events"
    assert limit["most"] == 90
    assert limit["events"] >= 90
    assert 0 < limit["time"] == by_protocol(stopped)["cd", 0]["totals"]["time"] < 10
    times = stopped.trace.loc[stopped.trace["protocol"] == "cd", "time"]
    assert 0 < times.max() <= limit["time"]

    before = when(tmp_path)
    for same in ("limits.events=90", "limits.events=80"):
        assert shell(same)[0] == 5
        assert when(tmp_path) == before
    code, _, again = shell("limits.events=95")
    assert code == 5
    assert by_protocol(again)["cd", 0]["limit"]["most"] == 95
    code, said, whole = shell()
    assert code == 0
    assert said.err == ""
    assert {m["status"] for m in whole.manifests} == {"complete"}
    assert whole.runs == stopped.runs
    before = when(tmp_path)
    assert shell("limits.events=90")[0] == 0
    assert when(tmp_path) == before


def test_limited_runs_are_in_no_mean_figure_comparison_or_page(shell, tmp_path):
    code, said, stopped = shell("limits.events=90", "figures=[{y: accuracy, x: time}]")
    assert code == 5
    limited = {run for run, m in zip(stopped.runs, stopped.manifests, strict=True) if m["status"] == "limited"}
    assert len(limited) == 2
    assert stopped.limited == limited
    assert not limited & set(final_values(stopped, "accuracy", "mean")["run"])
    assert not limited & set(curves(stopped, "accuracy", "mean", "time")["run"])
    found = reached(stopped, {"metric": "accuracy", "level": 0.01}, "time")
    assert found[found["run"].isin(limited)]["value"].isna().all()
    figures = sorted((tmp_path / "out" / "figures").glob("*.csv"))
    assert figures
    assert "cd" not in figures[0].read_text()
    assert "2 of 2 runs did not reach their end (limited)" in " ".join(said.out.split())
    with pytest.raises(InputError, match=r"nothing to compare.* 2 of 2 runs of cd did not reach their end \(limited\)"):
        compare_folders([tmp_path / "out"], "alone")
    page = write_report(tmp_path / "out", None).read_text()
    assert "limits.events admits 90" in page


def test_where_all_runs_are_limited_the_reason_is_said_and_nothing_else_fails(shell):
    code, said, _ = shell("limits.events=60", 'protocols={"cd": {"kind": "coordinate_descent"}}')
    assert code == 5
    assert "limits.events admits 60" in said.err
    assert "Traceback" not in said.err
