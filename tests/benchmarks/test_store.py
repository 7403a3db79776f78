"""The benchmark of the store does what it says, on a handful of runs."""

from __future__ import annotations

from hushnet.simulator.analysis.results import load_all
from hushnet.simulator.storage.store import Store

from .store import AGENTS, INSTANTS, STATISTICS, main, steps


def test_its_steps_save_check_and_consolidate_the_runs(tmp_path):
    for _, work in steps(Store(tmp_path), 6):
        work()
    collection = load_all(tmp_path)
    assert len(collection.runs) == 6
    assert len(collection.trace) == 6 * INSTANTS * STATISTICS
    assert len(collection.agents) == 6 * AGENTS
    assert (tmp_path / "dataset" / "trace.parquet").is_file()


def test_it_prints_a_line_a_step(tmp_path, capsys):
    main(["--runs", "2", "--folder", str(tmp_path)])
    printed = capsys.readouterr().out.splitlines()
    assert [line.split("  ")[0] for line in printed[1:]] == [name for name, _ in steps(Store(tmp_path), 2)]
    assert list(tmp_path.glob("tmp*")) == [], "the runs are removed"
