"""Figures come from files alone, say what was claimed and verified, and are drawn anew where anything differs."""

from __future__ import annotations

import json
import math
import shutil
import subprocess
import sys
import warnings

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from hushnet.agents.errors import InputError
from hushnet.simulator.analysis.aggregate import time_scale
from hushnet.simulator.analysis.results import load_all
from hushnet.simulator.cli import main
from hushnet.simulator.compare.measures import measures
from hushnet.simulator.figures import current, plots, redraw
from hushnet.simulator.figures.current import FILE, drawn_already
from hushnet.simulator.figures.figure_files import drawing
from hushnet.simulator.figures.numbers import NothingToDraw, finals
from hushnet.simulator.figures.series_style import ALARM
from hushnet.simulator.storage.run_folder import read_manifest
from scipy import special, stats

from .synthetic import HONEST, LABELS, TIMES, accuracy, make_run
from .writing import figure_of

OVER_TIME = {"y": "accuracy", "x": "time", "by": "protocol", "statistic": "mean", "interval": "95%"}


def drawn(root, spec):
    """The figure, its legend's texts and everything written on it."""
    figure = figure_of(load_all(root), spec)
    legend = [text.get_text() for text in figure.legends[0].get_texts()]
    return figure, legend


def numbers(root, **spec):
    shutil.rmtree(root / "figures", ignore_errors=True)
    (plot,) = plots(load_all(root), {**OVER_TIME, **spec})
    return plot.points


def test_the_csv_beside_a_curve_holds_means_intervals_and_seeds(experiment):
    written = redraw(experiment(figures=[{**OVER_TIME, "style": {"formats": ["svg"]}}]))
    assert [path.name for path in written] == ["1-accuracy-vs-time.svg", "1-accuracy-vs-time.csv"]
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
    root = experiment(figures=[{"y": "objective", "x": "vectors", "log": "y", "name": "gap"}])
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
    root = experiment(figures=[{**OVER_TIME, "style": {"formats": ["svg"]}}])
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
    ("spec", "axis", "started"),
    [
        ({"x": "vectors"}, "x", True),
        ({"x": "messages", "x_label": "communications"}, "x", True),
        ({"x": "bytes"}, "x", False),
        ({"y": "vectors", "x": "time"}, "y", True),
        ({"y": "vectors_to_target", "x": "protocol"}, "y", True),
        ({"y": "messages_to_target", "x": "protocol", "y_label": "communications"}, "y", False),
        ({"kind": "frontier", "x": "vectors"}, "x", True),
    ],
    ids=str,
)
def test_an_axis_of_messages_says_that_start_vectors_are_not_counted_where_there_are_some(
    experiment, spec, axis, started
):
    runs = [make_run(p) for p in ("local", "cd")]
    runs[1].manifest["totals"] = {"start_vectors": 60 * started}
    axes = drawn(experiment(runs), {"y": "accuracy", **spec})[0].axes[0]
    label = getattr(axes, f"get_{axis}label")().replace("\n", " ")
    assert label.endswith(" (start vectors not counted)") == started
    assert label.startswith(spec.get(f"{axis}_label", spec[axis].removesuffix("_to_target")))


def test_a_run_that_broke_off_before_its_target_never_reached_it_in_figures_as_in_comparisons(experiment):
    status = {("cd", 1): "diverged", ("cd", 2): "limited", ("local", 0): "failed"}
    runs = [make_run(p, seed, status=status.get((p, seed), "complete")) for p in ("local", "cd") for seed in range(3)]
    runs[4].trace.loc[runs[4].trace["statistic"] == "gap", "value"] = 1.0
    root = experiment(runs)
    collection = load_all(root)
    measure = next(one for one in measures(collection) if one.name == "time_to_target")
    found = finals(collection, {"y": "time_to_target"})[2]
    shown, known = found.set_index("run")["value"].sort_index(), measure.values.dropna().sort_index()
    pd.testing.assert_series_equal(shown, known, check_names=False)
    mine = found[found["protocol"] == "cd"].set_index("seed")["value"]
    assert list(mine.index) == [0, 1]
    assert mine[1] == math.inf


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


TEXT = """\
schema: 1
scenario: little
seeds: 2
task: {kind: mean_estimation, agents: 4}
topology: {kind: complete}
protocols: {alone: {kind: local, label: alone}, cd: {kind: coordinate_descent}}
stop: {time: 2}
record: {every: 1, metrics: [objective], objective_of: cd}
figures: [{name: one, y: objective, x: time}]
style: {formats: [png]}
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("made")
    (folder / "little.yaml").write_text(TEXT)
    assert main(["run", str(folder / "little.yaml"), "--out", str(folder / "out"), "--quiet"]) == 0
    return folder


@pytest.fixture
def finished(made, tmp_path):
    folder = shutil.copytree(made, tmp_path / "drawn")
    return folder / "little.yaml", folder / "out"


def pictures(out):
    return {file.name: file.stat().st_mtime_ns for file in (out / "figures").glob("one.[ps]*g")}


def draws(path, out, *more):
    """Whether the same command, given once more, writes a picture anew."""
    before = pictures(out)
    assert main(["run", str(path), "--out", str(out), "--quiet", *more]) == 0
    return pictures(out) != before


def test_nothing_is_drawn_where_nothing_has_changed(finished):
    path, out = finished
    before = {file: file.stat().st_mtime_ns for file in (out / "figures").iterdir()}
    program = (
        "import sys; from hushnet.simulator.cli import main; code = main(sys.argv[1:]);"
        "print('DREW' if 'matplotlib.figure' in sys.modules else 'KEPT', code)"
    )
    arguments = ["run", str(path), "--out", str(out), "--quiet"]
    done = subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=True)
    said = done.stdout.splitlines()
    assert said[-1] == "KEPT 0"
    assert f"figure: {out / 'figures'}: one.png" in said
    assert {file: file.stat().st_mtime_ns for file in (out / "figures").iterdir()} == before
    assert not draws(path, out)


@pytest.mark.parametrize(
    "change",
    [
        lambda out: (out / "figures" / "one.png").unlink(),
        lambda out: (out / "figures" / "one.csv").write_text("mine"),
        lambda out: (out / "figures" / FILE).unlink(),
        lambda out: (out / "figures" / FILE).write_text("[]"),
        lambda out: (out / "figures" / FILE).write_text(json.dumps({"made_of": "another", "files": {}})),
    ],
    ids=["a file is gone", "a file is another", "nobody knows", "it is damaged", "of other runs"],
)
def test_it_is_drawn_again_where_anything_differs(finished, change):
    path, out = finished
    whole = {file.name: file.read_bytes() for file in (out / "figures").iterdir()}
    change(out)
    assert draws(path, out)
    assert {file.name: file.read_bytes() for file in (out / "figures").iterdir()} == whole


def test_what_a_checkout_knows_of_its_commit_draws_nothing(finished, monkeypatch):
    _, out = finished
    assert drawn_already(out, load_all(out)) is not None

    def elsewhere(folder):
        manifest, checksums = read_manifest(folder)
        return {**manifest, "commit": "of another checkout"}, checksums

    monkeypatch.setattr(current, "read_manifest", elsewhere)
    assert drawn_already(out, load_all(out)) is not None
