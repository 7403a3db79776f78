"""The matrix has the rows that protocols allow, and measures what it says."""

from __future__ import annotations

import math

import pytest

from .floors import floor_of
from .matrix import __main__ as command
from .matrix.cases import ENTRIES, NETWORKS, Row, Stop, rows_of
from .matrix.measure import FEWEST, MOST, SECONDS, Cell, measure_row, updates_for

BY_NAME = {entry.name: entry for entry in ENTRIES}


def ways_of(name):
    return {(row.way, row.noise): row.networks for row in rows_of(BY_NAME[name], (4,), toy=True)}


def test_what_a_protocol_refuses_is_no_row():
    assert ways_of("consensus_admm") == {("rounds", "plain"): ["lossless", "loss", "absent"]}
    assert ways_of("perturbed_admm") == {("rounds", "gamma"): ["lossless", "loss", "absent"]}
    assert {noise for _, noise in ways_of("dual_averaging, all rows")} == {"plain", "gaussian"}
    assert {way for way, _ in ways_of("model_propagation")} == {"broadcast", "rounds", "exchange"}
    descent = ways_of("coordinate_descent")
    assert {way for way, _ in descent} == {"broadcast", "rounds"}
    assert descent["rounds", "gamma"] == list(NETWORKS)
    assert "patience" not in descent["broadcast", "plain"]


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_every_row_has_a_floor_that_moves_models_by_the_plan_of_the_row(entry):
    for row in rows_of(entry, (4,), toy=True):
        floor = floor_of(row.world("lossless", Stop(time=1.0)))
        before = floor.models().copy()
        floor.run(row.plan(floor, 8 * len(floor.world.agents)))
        assert abs(floor.models() - before).max() > 0.0, row


@pytest.mark.parametrize(
    ("name", "way", "noise", "forms"),
    [
        ("coordinate_descent", "rounds", "gaussian", {"batches"}),
        ("model_propagation", "exchange", "plain", {"batches"}),
        ("feature_sgd", "rounds", "plain", {"planned"}),
        ("dual_averaging, 5 rows drawn", "rounds", "plain", {"batches"}),
        ("push_sum_dual_averaging, 5 rows drawn", "broadcast", "plain", {"batches"}),
    ],
)
def test_a_row_is_measured_in_every_network_that_it_can_run_in(name, way, noise, forms):
    row = Row(BY_NAME[name], way, noise, 4, toy=True)
    cells = measure_row(row, 2)
    assert [cell.network for cell in cells] == row.networks
    for cell in cells:
        assert cell.updates >= FEWEST
        assert cell.form in forms
        assert all(math.isfinite(ratio) and ratio > 0 for ratio in cell.ratios)
        assert len(cell.ratios) == 2
        drawn = cell.network == "lossless" and "drawn" in name
        assert len(cell.drawing) == len(cell.drawing_ratios) == (2 if drawn else 0)


@pytest.mark.parametrize(
    ("seconds", "updates"),
    [
        ([0.9, 0.002], MOST),  # all loading but the last
        ([2.0, 0.5, 0.49, 0.012, 0.0121, 0.0122], int(SECONDS * FEWEST / 0.012)),
        ([0.9, 0.0451, 0.045, 0.046], int(SECONDS * FEWEST / 0.045)),
        ([3.0, 3.1, 2.9], FEWEST),  # truly slow
    ],
)
def test_the_number_of_updates_is_read_from_runs_that_load_nothing_any_more(seconds, updates):
    runs = iter(seconds)
    assert updates_for(lambda: next(runs)) == updates
    assert next(runs, None) is None


def test_a_line_says_what_was_measured_and_how_it_compares_with_the_plain_row():
    entry = BY_NAME["coordinate_descent"]
    plain, private = (Row(entry, "broadcast", noise, 20) for noise in ("plain", "laplace"))
    engine = "batched (steps in batches)"
    cells = [Cell("lossless", engine, 4, (4.0, 2.0, 3.0), (2.0, 1.0, 1.0)), Cell("loss", engine, 4, (6.0,), (1.5,))]
    slower = [Cell("lossless", "event, because of a law", 4, (9.0,), (2.0,))]
    measured = [(plain, cells), (private, slower)]
    assert command.line(plain, cells, measured) == (
        "coordinate_descent", "broadcast", "plain", "20", "batches", "1.50",
        "3.0: 2.0 (2.0-3.0)", "6.0: 4.0 (4.0-4.0)", "-", "-", "-", "-", "-",
    )  # fmt: skip
    assert command.line(private, slower, measured)[-3:] == ("2.25", "-", "-")
    assert command.line(private, slower, measured)[4] == "one by one, event"
    assert command.table(measured).count("\n") == 3
    drawing = [Cell("lossless", engine, 4, (4.0, 6.0), (1.0, 1.0), drawing=(2.0, 2.0), noiseless=(0.5, 0.5))]
    assert command.line(private, drawing, [])[-2:] == ("2.00: 2.5 (2.0-3.0)", "0.50: 10.0 (8.0-12.0)")
