"""Scenarios are compared in two checkouts, and a number that changed is found."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from . import proofs, shipped


def tables(**columns):
    return {"trace": pd.DataFrame({"time": [0.0, 1.0], "protocol": ["a", "b"], **columns})}


@pytest.mark.parametrize(
    ("one", "other", "apart"),
    [
        ([1.0, np.nan], [1.0, np.nan], 0.0),
        ([1.0, np.inf], [1.0, np.inf], 0.0),
        ([1.0, 400.0], [1.0, 401.0], 1 / 401),
        ([1.0, np.nan], [1.0, 0.0], np.inf),
    ],
)
def test_differences_are_shares_of_the_larger_value(one, other, apart):
    assert shipped.compared(tables(seen=one), tables(seen=other))[1] == apart


def test_texts_that_differ_are_named_and_are_no_numbers():
    assert shipped.compared(tables(said=["x", "y"]), tables(said=["x", "z"])) == (2, 0.0, "said")


def test_a_column_or_a_run_that_one_lacks_is_infinitely_far():
    assert shipped.compared(tables(seen=[1.0, 2.0]), tables())[1] == np.inf
    assert shipped.compared(tables(), {})[1] == np.inf


def test_the_package_is_that_of_the_checkout(tmp_path):
    for room in proofs.ROOMS:
        (tmp_path / "other" / room).mkdir(parents=True)
    (tmp_path / "other/simulator/__init__.py").write_text("print('of the other')")
    environment = proofs.environment_of(tmp_path / "other", tmp_path / "links")
    command = [sys.executable, "-c", "import hushnet.simulator"]
    assert subprocess.run(command, env=environment, capture_output=True, text=True).stdout == "of the other\n"


@pytest.mark.slow
def test_a_scenario_agrees_with_itself(capsys):
    assert shipped.main([str(shipped.HERE), "async-variants-columns"]) == 0
    values = capsys.readouterr().out.splitlines()[-1].split("|")[2]
    assert int(values.replace(",", "")) > 100
