"""Results of the version before metrics, tasks and kinds of figures were registered are read as what they are.

``tests/golden/before-registries`` was written by the last version whose metrics stood in lists.
"""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from hushnet.simulator import run
from hushnet.simulator.analysis.results import load_all
from hushnet.simulator.analysis.summary import summarise
from hushnet.simulator.cli import main

SAVED = Path(__file__).parents[1] / "golden" / "before-registries"


@pytest.fixture
def folder(tmp_path):
    """A copy of the saved results."""
    return Path(shutil.copytree(SAVED, tmp_path / "before-registries"))


def test_its_scenario_gives_the_same_numbers_today(tmp_path):
    """In a trace rows, in the agents' table columns may be in another order."""
    with pytest.warns(FutureWarning, match="'kairouz': is called 'advanced_composition' now"):
        old, new = load_all(SAVED), run(SAVED / "origin" / "scenario.yaml", out=tmp_path)
    keys = ["protocol", "seed", "time", "metric", "statistic"]
    before, now = (found.trace.set_index(keys)["value"].sort_index() for found in (old, new))
    assert before.index.equals(now.index)
    np.testing.assert_allclose(now, before, rtol=1e-9, atol=1e-12)
    assert set(old.agents.columns) == set(new.agents.columns)
    tables = [found.agents.sort_values(["protocol", "seed", "agent"]) for found in (old, new)]
    for column in ("samples", "degree", "updates", "age", "accuracy", "epsilon_claimed", "epsilon_verified"):
        np.testing.assert_allclose(*(table[column] for table in tables), rtol=1e-9, atol=1e-12)
    measured = [{manifest["protocol"]: manifest["measures"] for manifest in found.manifests} for found in (old, new)]
    before, today = (json.dumps(found, sort_keys=True, default=str) for found in measured)
    before = before.replace("all neighbours", "everyone on the wire")  # another name for the same observer
    assert re.sub(r'"identity": "\w+"', "", before) == re.sub(r'"identity": "\w+"', "", today)
    assert [m["baselines"] for m in old.manifests] == [m["baselines"] for m in new.manifests]
    assert summarise(old).columns.tolist() == summarise(new.collection).columns.tolist()


def test_it_is_plotted_compared_and_reported(folder, capsys):
    assert main(["plot", str(folder)]) == 0
    assert {"curve.png", "bars.png", "scatter.png"} <= {path.name for path in (folder / "figures").iterdir()}
    assert main(["compare", str(folder)]) == 0
    assert "final accuracy" in capsys.readouterr().out
    assert main(["report", str(folder)]) == 0
    assert "test loss" in (folder / "report.html").read_text()
