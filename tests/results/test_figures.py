"""Figures come from files alone, say what was claimed and verified, and lie beside their numbers."""

from __future__ import annotations

import math
import shutil

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from hushnet.agents.errors import InputError
from hushnet.simulator.analysis.aggregate import time_scale
from hushnet.simulator.analysis.results import load_all
from hushnet.simulator.figures import draw, plots, redraw
from hushnet.simulator.figures.series_style import ALARM, house_style
from scipy import special, stats

from .synthetic import HONEST, LABELS, TIMES, accuracy, make_run

OVER_TIME = {"y": "accuracy", "x": "time", "by": "protocol", "statistic": "mean", "interval": "95%"}


def drawn(root, spec):
    """The figure, its legend's texts and everything written on it."""
    collection = load_all(root)
    with house_style():
        figure = draw(collection, spec, plots(collection, spec))
    legend = [text.get_text() for text in figure.legends[0].get_texts()]
    return figure, legend


def numbers(root, **spec):
    shutil.rmtree(root / "figures", ignore_errors=True)
    (plot,) = plots(load_all(root), {**OVER_TIME, **spec})
    return plot.points


def test_the_csv_beside_a_curve_holds_means_intervals_and_seeds(experiment):
    root = experiment(figures=[OVER_TIME])
    written = redraw(root)
    assert [path.name for path in written] == [f"1-accuracy-vs-time.{s}" for s in ("png", "pdf", "svg", "csv")]
    table = pd.read_csv(written[-1])
    assert list(table.columns) == ["x", "protocol", "mean", "low", "high", "n", "seed 0", "seed 1", "seed 2"]
    for protocol in LABELS:
        rows = table[table["protocol"] == protocol]
        seeds = np.array([accuracy(protocol, seed) for seed in range(3)])
        mean = seeds.mean(axis=0)
        half = stats.t.ppf(0.975, 2) * seeds.std(axis=0, ddof=1) / math.sqrt(3) / (mean * (1 - mean))
        np.testing.assert_array_equal(rows["x"], TIMES)
        np.testing.assert_allclose(rows["mean"], mean, rtol=1e-14)
        np.testing.assert_allclose(rows["low"], special.expit(special.logit(mean) - half), rtol=1e-12)
        np.testing.assert_allclose(rows["high"], special.expit(special.logit(mean) + half), rtol=1e-12)
        np.testing.assert_allclose(rows[["seed 0", "seed 1", "seed 2"]].to_numpy().T, seeds, rtol=1e-14)
        assert set(rows["n"]) == {3}


def test_figures_are_redrawn_from_files_alone_byte_for_byte(experiment, tmp_path):
    root = experiment(figures=[OVER_TIME, {"y": "objective", "x": "vectors", "log": "y", "name": "gap"}])
    first = {path.name: path.read_bytes() for path in redraw(root)}
    assert "gap.pdf" in first
    shutil.rmtree(root / "figures")
    moved = shutil.move(root, tmp_path / "elsewhere")
    again = redraw(moved, out=tmp_path / "figures")
    assert {path.name: path.read_bytes() for path in again} == first
    assert {path.parent for path in again} == {tmp_path / "figures"}


def test_the_legend_says_what_was_claimed_and_what_was_verified(experiment):
    runs = [make_run("cd_eps", seed, privacy=HONEST) for seed in range(2)] + [make_run("cd", s) for s in range(2)]
    _, legend = drawn(experiment(runs), OVER_TIME)
    assert legend == ["private CD\n(ε claimed 1, verified 0.93, δ=0.0067)", "coordinate descent"]


def test_a_claim_below_what_was_verified_is_marked(experiment):
    figure, legend = drawn(experiment(), OVER_TIME)
    assert legend[2] == "private CD\n⚠ ε claimed 0.15 < verified 37.2, δ=0.0067"
    entries = figure.legends[0].get_texts()
    assert [text.get_color() == ALARM for text in entries] == [False, False, True]
    assert {text.get_fontweight() for text in entries} == {"normal"}  # a claim is not to outweigh the plot


def test_the_users_matplotlib_settings_neither_matter_nor_change(experiment):
    root = experiment(figures=[OVER_TIME])
    before = [path.read_bytes() for path in redraw(root)]
    with mpl.rc_context({"font.size": 30, "axes.grid": False, "savefig.bbox": "tight"}):
        mine = dict(mpl.rcParams)
        assert [path.read_bytes() for path in redraw(root)] == before
        assert dict(mpl.rcParams) == mine


def test_the_time_axis_has_the_unit_of_the_scenario(experiment):
    root = experiment(time_unit="30 s")
    assert numbers(root)["x"].max() == 300
    assert drawn(root, OVER_TIME)[0].axes[0].get_xlabel() == "time (s)"
    root = experiment()
    assert drawn(root, OVER_TIME)[0].axes[0].get_xlabel() == "time (expected wake-ups)"
    scales = {"30 s": (30.0, "s"), "0.5min": (0.5, "min"), "hours": (1.0, "hours"), 30: (30.0, "s")}
    assert {text: time_scale(text) for text in scales} == scales


@pytest.mark.parametrize(
    ("spec", "axis"),
    [
        ({"x": "vectors"}, "x"),
        ({"x": "messages", "x_label": "communications"}, "x"),
        ({"x": "bytes"}, "x"),
        ({"y": "vectors", "x": "time"}, "y"),
        ({"y": "vectors_to_target", "x": "protocol"}, "y"),
        ({"y": "messages_to_target", "x": "protocol", "y_label": "communications"}, "y"),
        ({"kind": "frontier", "x": "vectors"}, "x"),
    ],
    ids=str,
)
@pytest.mark.parametrize("started", [True, False])
def test_an_axis_of_messages_says_that_start_vectors_are_not_counted_where_there_are_some(
    experiment, spec, axis, started
):
    runs = [make_run(p) for p in ("local", "cd")]
    runs[1].manifest["totals"] = {"start_vectors": 60 * started}
    axes = drawn(experiment(runs), {"y": "accuracy", **spec})[0].axes[0]
    label = getattr(axes, f"get_{axis}label")().replace("\n", " ")
    assert label.endswith(" (start vectors not counted)") == started
    assert label.startswith(spec.get(f"{axis}_label", spec[axis].removesuffix("_to_target")))


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"y": "acuracy"}, "did you mean accuracy"),
        ({"x": "tim"}, "did you mean time"),
        ({"statistic": "worst_decil"}, "did you mean worst_decile"),
        ({"protocols": ["cd_ep"]}, "did you mean cd_eps"),
        ({"interval": "wide"}, "must be '95%', 'seeds' or 'none'"),
        ({"x": "samples", "y": "agent"}, "is not known per agent"),
    ],
)
def test_a_figure_of_what_was_not_recorded_is_one_sentence(experiment, wrong, sentence):
    with pytest.raises(InputError, match=sentence) as caught:
        redraw(experiment(figures=[{**OVER_TIME, **wrong}]))
    assert "\n" not in str(caught.value)


def test_a_name_cannot_lead_out_of_the_figures_folder(experiment):
    root = experiment(figures=[{**OVER_TIME, "name": "../../loot"}])
    with pytest.raises(InputError, match=r"figures.0.name"):
        redraw(root)
    assert not (root.parents[1] / "loot.png").exists()
