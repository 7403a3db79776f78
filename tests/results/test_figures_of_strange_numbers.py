"""Figures of metrics without numbers, at one place of a logarithmic axis, and under names with dollar signs."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hushnet.simulator.analysis.results import load_all
from hushnet.simulator.cli import main
from hushnet.simulator.figures.figure_files import drawing
from hushnet.simulator.figures.numbers import NothingToDraw

from .synthetic import LABELS, make_run

SWEPT = {"y": "accuracy", "x": "network.loss"}


def runs_of(change=None, **options):
    runs = [make_run(protocol, seed, **options) for protocol in LABELS for seed in range(3)]
    for run in runs if change else ():
        change(run.trace)
    return runs


def without(late):
    """Make accuracies NaN after some time."""

    def change(trace):
        trace.loc[(trace["metric"] == "accuracy") & (trace["time"] >= late), "value"] = np.nan

    return change


@pytest.mark.parametrize("spec", [{"y": "accuracy", "x": "time"}, {"y": "accuracy", "x": "protocol"}])
def test_a_metric_that_is_never_a_number_is_one_sentence(experiment, spec):
    root = experiment(runs_of(without(0.0)))
    with pytest.raises(NothingToDraw, match="accuracy, so there is nothing to draw"):
        drawing(load_all(root), spec, "figure")


def test_what_ends_without_a_number_is_a_curve_and_no_bar(experiment):
    root = experiment(runs_of(without(6.0)))
    drawing(load_all(root), {"y": "accuracy", "x": "time"}, "figure")
    with pytest.raises(NothingToDraw):
        drawing(load_all(root), {"y": "accuracy", "x": "protocol"}, "figure")


def test_dollars_in_the_name_of_an_axis_stand_as_they_are(experiment):
    root = experiment(runs_of(grid={"network.loss": 0.1}))
    style = {"labels": {"network.loss": "lost $_{"}}
    label = drawing(load_all(root), {**SWEPT, "style": style}, "figure").figure.axes[0].get_xlabel()
    assert label.startswith(r"lost \$_{")


def test_letters_that_no_font_has_are_one_sentence_a_figure(experiment, capsys):
    runs = [make_run("cd", seed, label="\u6f22\u5b57 \u6f22") for seed in range(2)]
    root = experiment(runs, [{"name": "curve", "y": "accuracy", "x": "time"}])
    with pytest.warns(UserWarning, match="^figure ") as told:
        assert main(["plot", str(root)]) == 0
    (said,) = (str(warning.message) for warning in told)
    assert said.startswith("figure curve: its fonts have no letters \u6f22\u5b57, so boxes stand there; set style.font")


def test_numbers_whose_sum_overflows_are_compared_and_reported(experiment, capsys):
    def largest(trace):
        trace.loc[trace["metric"] == "accuracy", "value"] = 1e308

    root = experiment(runs_of(largest))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for command in (["compare", "--verbose"], ["report"]):
            assert main([*command, str(root)]) == 0
    assert "nothing to test" in capsys.readouterr().out
