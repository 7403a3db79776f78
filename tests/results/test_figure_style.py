"""Figures look as scenario, figure, command or Python ask for, and say what they show and what data it is from."""

from __future__ import annotations

import io
import json
import math
import re

import numpy as np
import pandas as pd
import pytest
from hushnet.agents.errors import InputError
from hushnet.agents.tasks.names import is_stand_in
from hushnet.simulator.analysis.results import load_all
from hushnet.simulator.api import Result
from hushnet.simulator.audit.figure import draw as draw_profile
from hushnet.simulator.audit.figure import save_figure as save_profile
from hushnet.simulator.cli import main
from hushnet.simulator.figures import drawings, redraw
from hushnet.simulator.figures.files import drawing, few_colours, picture
from hushnet.simulator.figures.series_style import house_style, tick_places
from hushnet.simulator.figures.style import read_style
from hushnet.simulator.figures.words import axis_label
from hushnet.simulator.language.figure_style import FigureStyle
from hushnet.simulator.language.loading import load, shipped
from hushnet.simulator.storage.store import Store
from matplotlib.figure import Figure
from PIL import Image

from .synthetic import FALSE, HONEST, LABELS, make_run
from .writing import written

OVER_TIME = {"y": "accuracy", "x": "time", "name": "accuracy"}
ALONG = {"y": "accuracy", "x": "network.loss", "name": "loss"}
SCENARIO = {
    "schema": 1,
    "scenario": "styled",
    "task": {"kind": "linear_classification", "agents": 4, "dimension": 2, "samples": [10, 10]},
    "topology": {"kind": "ring"},
    "protocols": {"local": {"kind": "local"}},
    "stop": {"time": 2.0},
    "sweep": {"network.loss": [0.0, 0.1]},
}


def swept(**options):
    return [
        make_run(p, seed, grid={"network.loss": loss}, **options)
        for p in LABELS
        for seed in range(2)
        for loss in (0.1, 0.2)
    ]


def drawn(root, spec, **style):
    return drawing(load_all(root), spec, "figure", FigureStyle(**style))


def texts(found):
    return [text for text, _ in written(found.figure)]


def caption(found):
    return next(t for legend in found.figure.legends if (t := legend.get_title().get_text())).replace("\n", " ")


def test_every_figure_is_a_png_a_pdf_and_an_svg_unless_it_is_asked_for_others(experiment):
    root = experiment(figures=[OVER_TIME])
    assert [path.suffix for path in redraw(root)] == [".png", ".pdf", ".svg", ".csv"]
    assert [path.suffix for path in redraw(root, style=FigureStyle(formats=["svg"]))] == [".svg", ".csv"]
    assert (root / "figures" / "accuracy.svg").read_text().startswith("<?xml")


@pytest.mark.parametrize(
    ("width", "inches"), [("one column", 3.5), ("two columns", 7.16), (12, 12 / 2.54), ("12.5 cm", 12.5 / 2.54)]
)
def test_a_figure_is_as_wide_as_it_is_asked_to_be_and_nothing_is_cut_off(experiment, width, inches):
    found = drawn(experiment(), OVER_TIME, width=width)
    assert found.figure.get_size_inches()[0] == pytest.approx(inches)
    right, top = found.figure.bbox.size
    for text, box in written(found.figure):
        assert min(box.x0, box.y0) >= 0, text
        assert box.x1 <= right, text
        assert box.y1 <= top, text
    with Image.open(io.BytesIO(picture(found, "png"))) as image:
        assert image.width == pytest.approx(300 * inches, abs=1)


@pytest.mark.parametrize("legend", ["below", "above", "right", "inside", "none"])
@pytest.mark.parametrize("spec", [OVER_TIME, {**ALONG, "facet": "protocol", "title": "A title"}], ids=["one", "panels"])
def test_wherever_the_legend_is_nothing_covers_anything_and_marks_are_explained(experiment, legend, spec):
    root = experiment(swept() if spec is not OVER_TIME else None)
    found = drawn(root, spec, legend=legend, width=17 if legend == "right" else None)
    assert "seeds (thin)" in caption(found)
    boxes = [legend.get_window_extent() for legend in found.figure.legends]
    panels = [axes.get_tightbbox() for axes in found.figure.axes]
    right, top = found.figure.bbox.size
    for box in boxes:
        assert min(box.x0, box.y0) >= -1
        assert box.x1 <= right + 1
        assert box.y1 <= top + 1
        assert not any(box.padded(-1).overlaps(panel.padded(-1)) for panel in panels)
    assert len(boxes) < 2 or not boxes[0].overlaps(boxes[1])
    named = {text.get_text() for at in found.figure.legends for text in at.get_texts()}
    assert bool(named) == (legend in ("below", "above", "right"))
    assert (found.figure.axes[0].get_legend() is not None) == (legend == "inside")


def test_a_long_legend_beside_a_low_panel_makes_the_figure_higher(experiment):
    runs = [make_run("cd", label=f"protocol {k}") for k in range(12)]
    for k, run in enumerate(runs):
        run.manifest["protocol"] = run.trace["protocol"] = run.agents["protocol"] = f"p{k}"
    root = experiment(runs, labels={f"p{k}": f"protocol {k}" for k in range(12)})
    figure = drawn(root, OVER_TIME, legend="right", height=2.5, width=15).figure
    low, high = (legend.get_window_extent() for legend in figure.legends)
    assert not low.overlaps(high)
    assert high.y0 >= 0
    assert high.y1 <= figure.bbox.height


@pytest.mark.parametrize("style", [{"font_size": 24}, {"width": 4, "font_size": 14}, {"height": 2, "font_size": 20}])
def test_letters_that_leave_no_room_are_refused_in_one_sentence(experiment, style):
    with pytest.raises(InputError, match=r"points do not fit into [\d.]+ cm; take smaller|do not fit into a legend"):
        drawn(experiment(), OVER_TIME, **style)


def test_letters_have_the_font_and_size_that_is_asked_for(experiment):
    usual, large = (drawn(experiment(), OVER_TIME, **style) for style in ({}, {"font_size": 12, "font": "serif"}))
    assert usual.figure.axes[0].xaxis.label.get_size() == 8
    assert large.figure.axes[0].xaxis.label.get_size() == 12
    assert large.figure.axes[0].xaxis.label.get_family()[0] == "serif"
    small, big = (found.figure.legends[0].get_texts()[0].get_size() for found in (usual, large))
    assert big == pytest.approx(1.5 * small)
    assert b"DejaVuSerif" in picture(large, "pdf")


def test_a_font_that_is_not_installed_is_one_sentence(experiment):
    with pytest.raises(InputError, match=r"style\.font = 'STIXGenera': is not installed; did you mean 'STIXGeneral'\?"):
        drawn(experiment(), OVER_TIME, font="STIXGenera")


def test_swept_parameters_have_labels_and_units_on_axes_in_titles_and_in_legends(experiment):
    root = experiment(swept())
    style = {"labels": {"loss": "share lost"}, "units": {"network.loss": "of all"}}
    assert drawn(root, ALONG, **style).figure.axes[0].get_xlabel() == "share lost (of all)"
    panels = drawn(root, {**OVER_TIME, "facet": "network.loss"}, **style).figure.axes
    assert [axes.get_title() for axes in panels] == ["share lost 0.1 of all", "share lost 0.2 of all"]
    legend = drawn(root, {**OVER_TIME, "protocols": ["cd"]}, **style).figure.legends[0]
    assert legend.get_texts()[0].get_text() == "coordinate descent, share lost 0.1 of all"


def test_a_figures_style_is_above_the_scenarios_and_the_commands_above_both(experiment):
    root = experiment(swept(), figures=[{**OVER_TIME, "style": {"width": 10.0, "labels": {"network.loss": "own"}}}])
    store = Store(root)
    index = store.index()
    style = {"width": 6.0, "font_size": 9.0, "units": {"network.loss": "%"}}
    store.write_index(**{**index, "style": style})
    own, above = drawings(load_all(root))[0], drawings(load_all(root), style=FigureStyle(width=14))[0]
    assert own.style == FigureStyle(width=10, font_size=9, labels={"network.loss": "own"}, units={"network.loss": "%"})
    assert above.style == own.style.model_copy(update={"width": 14.0})


def test_a_scenario_says_how_its_figures_look_and_the_index_keeps_it(tmp_path):
    from hushnet.simulator.api import run

    style = {"width": "two columns", "formats": ["pdf"], "labels": {"network.loss": "lost"}}
    scenario = {
        **SCENARIO,
        "style": style,
        "figures": [{"y": "accuracy", "x": "network.loss", "style": {"legend": "right"}}],
    }
    result = run(scenario, out=tmp_path / "out")
    assert result.collection.index["style"] == style
    assert [path.suffix for path in result.save_figures()] == [".pdf", ".csv"]
    (figure,) = result.figures()
    assert figure.axes[0].get_xlabel() == "lost"


@pytest.mark.parametrize(
    ("style", "said"),
    [
        ({"width": "three columns"}, "style.width = 'three columns': must be one column, two columns, or centimetres"),
        ({"width": 3}, "style.width = 3: must be at least 4"),
        ({"legend": "left"}, "style.legend = 'left': is not admissible; admissible: below, above"),
        ({"formats": ["jpg"]}, r"style.formats\[0\] = 'jpg'"),
        ({"formats": ["png", "png"]}, "names a format twice"),
        ({"font_size": 100}, "style.font_size = 100: must be at most 24"),
        ({"colour": "red"}, "unknown field 'colour'"),
        ({"labels": {"network.los": "x"}}, "style.labels.network.los = 'x': is not swept; did you mean 'network.loss'"),
    ],
)
def test_a_style_that_is_none_is_one_sentence(style, said):
    with pytest.raises(InputError, match=said) as caught:
        load({**SCENARIO, "style": style})
    assert "\n" not in str(caught.value)


def test_a_style_of_the_command_line_is_a_file_or_a_mapping(tmp_path):
    (tmp_path / "style.yaml").write_text("width: two columns\nfont_size: 9\n")
    assert read_style(str(tmp_path / "style.yaml")) == FigureStyle(width="two columns", font_size=9)
    assert read_style("{legend: right}") == FigureStyle(legend="right")
    (tmp_path / "wrong.yaml").write_text("width: 9\nfontsize: 9\n")
    with pytest.raises(InputError, match=r"wrong\.yaml:2: .*fontsize.*did you mean 'font_size'"):
        read_style(str(tmp_path / "wrong.yaml"))
    with pytest.raises(InputError, match="must be a mapping"):
        read_style(str(tmp_path / "text.yaml")) if (tmp_path / "text.yaml").write_text("wide") else None


def test_plot_draws_what_its_options_ask_for(experiment, tmp_path, capsys):
    root = experiment(figures=[OVER_TIME, {"y": "objective", "x": "time", "name": "gap"}])
    out = tmp_path / "out"
    asked = ["--only", "gap", "--format", "svg,pdf", "--width", "9.5", "--style", "{font_size: 10, width: 6}"]
    assert main(["plot", str(root), *asked, "--out", str(out)]) == 0
    assert sorted(path.name for path in out.iterdir()) == ["gap.csv", "gap.pdf", "gap.svg"]
    points = float(re.search(r'width="([\d.]+)pt"', (out / "gap.svg").read_text())[1])
    assert points == pytest.approx(72 * 9.5 / 2.54, abs=0.1)
    assert capsys.readouterr().out == f"figure: {out / 'gap.pdf'}\n"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--only", ""], "give at least one name of a figure; admissible: gap"),
        (["--only", "gapp"], "there is no figure 'gapp'; did you mean 'gap'? admissible: gap"),
        (["--format", "jpg"], "--format: formats[0] = 'jpg'"),
        (["--width", "wide"], "--width: width = 'wide': must be one column, two columns, or centimetres"),
        (["--style", "{width: wide}"], "--style: width = 'wide': must be one column"),
        (["--style", "nowhere.yaml"], "nowhere.yaml: cannot be read"),
        (["--style", "{labels: {depth: x}}"], "style.labels 'depth' is no axis of these results"),
    ],
)
def test_an_option_that_is_not_admissible_is_one_sentence(experiment, options, said, capsys):
    root = experiment(swept(), figures=[{"y": "objective", "x": "time", "name": "gap"}])
    assert main(["plot", str(root), *options]) == 2
    complaint = capsys.readouterr().err
    assert said in complaint
    assert complaint.count("\n") == 1


def test_stand_ins_say_so_on_every_figure(experiment):
    runs = [make_run(p, seed) for p in LABELS for seed in range(2)]
    for run in runs:
        run.manifest["task"] = {"name": "synthetic stand-in for gisette"}
    root = experiment(runs)
    for spec in (OVER_TIME, {**OVER_TIME, "x": "protocol"}, {**OVER_TIME, "kind": "frontier", "x": "vectors"}):
        for legend in ("below", "right", "none"):
            found = drawn(root, spec, legend=legend, width=18)
            assert caption(found).startswith("synthetic stand-in for gisette ")
    assert is_stand_in("synthetic stand-in for MovieLens")
    assert not is_stand_in("UCI Adult")


@pytest.mark.parametrize("one", [True, False])
def test_a_figure_says_where_a_metric_is_another_function_at_other_values_of_a_sweep(experiment, one):
    runs = [make_run(p, seed, grid={"network.loss": loss}) for p in LABELS for seed in range(2) for loss in (0.0, 0.2)]
    for run in runs:
        identity = "one" if one else str(run.manifest["grid"])
        run.manifest["measures"] = {"accuracy": {"function": "Q", "scale": "unknown", "identity": identity}}
    root = experiment(runs)
    for spec in (ALONG, OVER_TIME):
        assert ("another function at each loss" in caption(drawn(root, spec))) == (not one)
    assert "another function" not in caption(drawn(root, {**ALONG, "y": "vectors"}))


def test_the_figure_of_an_audit_says_that_it_is_of_a_stand_in(tmp_path):
    rows = [("a", "a", "verified", epsilon, math.exp(-epsilon)) for epsilon in (0.5, 1.0, 2.0)]
    profile = pd.DataFrame(rows, columns=["protocol", "label", "curve", "epsilon", "delta"])
    with house_style():
        figure = draw_profile(profile, "synthetic stand-in for gisette")
    assert figure.legends[0].get_title().get_text() == "synthetic stand-in for gisette"
    written = save_profile(profile, tmp_path / "profile")
    assert [path.suffix for path in written] == [".png", ".pdf", ".svg", ".csv"]


def test_a_font_that_is_not_installed_is_said_before_hours_of_runs(tmp_path, capsys):
    text = json.dumps({**SCENARIO, "figures": [{"y": "accuracy", "style": {"font": "No Such Font"}}]})
    (tmp_path / "mine.yaml").write_text(text)
    assert main(["run", str(tmp_path / "mine.yaml"), "--quiet", "--out", str(tmp_path / "out")]) == 2
    assert "style.font = 'No Such Font': is not installed" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("kind", ["epsilon_like", "gisette_like", "synthetic_ratings"])
def test_every_task_that_is_a_stand_in_is_called_one(kind):
    from hushnet.agents.tasks import TASKS

    small = {
        "epsilon_like": {"agents": 2, "samples": 5, "dimension": 3, "test_samples": 2},
        "gisette_like": {"rows": 20, "test_rows": 5, "dimension": 6, "split": {"by": "rows", "agents": 2}},
        "synthetic_ratings": {"users": 4, "items": 30, "ratings": [5, 9], "features": 2},
    }[kind]
    task = TASKS[kind].model_validate({"kind": kind, **small}).build(rng=np.random.default_rng(0), data_dir=None)
    assert is_stand_in(task.name)


@pytest.mark.parametrize("width", [None, "two columns"])
def test_claims_are_shortened_before_they_are_longer_than_the_plot(experiment, width):
    private = {f"p{k}": FALSE if k % 2 else HONEST for k in range(6)}
    runs = []
    for key, privacy in private.items():
        run = make_run("cd", privacy=privacy, label=f"private coordinate descent number {key}")
        run.manifest["protocol"] = run.trace["protocol"] = run.agents["protocol"] = key
        run.manifest["contract"] = {"status": "passed", "text": "passed (shipped)"}
        runs.append(run)
    labels = {run.manifest["protocol"]: run.manifest["label"] for run in runs}
    found = drawn(experiment(runs, labels=labels), OVER_TIME, width=width)
    legend = found.figure.legends[0]
    assert legend.get_window_extent().height < found.figure.axes[0].get_window_extent().height
    entries = [text.get_text() for text in legend.get_texts()]
    assert [("\N{WARNING SIGN}" in text) for text in entries] == [key in ("p1", "p3", "p5") for key in private]
    if width is None:
        assert "claims less ε than is verified (up to 37.2)" in caption(found)
        assert "contract" not in caption(found)


def test_a_caption_says_that_contracts_have_passed_where_something_private_is_shown(experiment):
    runs = []
    for key, privacy, contract in [
        ("local", None, {"status": "passed", "text": "passed: 4 small worlds"}),
        ("cd", HONEST, {"status": "passed", "text": "passed: 4 small worlds"}),
        ("cd_eps", None, {"status": "failed", "text": "failed: a long reason"}),
    ]:
        run = make_run(key, privacy=privacy)
        run.manifest["contract"] = contract
        runs.append(run)

    def said(*keys):
        found = drawn(experiment(runs), {**OVER_TIME, "protocols": list(keys)})
        return [text for text in caption(found).replace("\n", " ").split("; ") if "contract" in text]

    assert said("local") == []
    assert said("local", "cd") == ["privacy contract passed: 4 small worlds"]
    assert said("local", "cd_eps") == ["privacy contract failed"]
    runs[1].manifest["contract"] = {"status": "shipped", "text": "passed (shipped)"}
    assert said("local", "cd") == []


SCHEMA = {"network": {"latency": {"kind": "lognormal", "mean": 0.5}}, "clock": {"kind": "poisson"}, "protocols": {}}
UNITS = [
    ("network.latency.mean", "latency mean (time units)", "latency mean 0.1 time units"),
    ("network.latency.sigma", "latency sigma", "latency sigma 0.1"),
    ("network.latency", "latency (time units)", "latency 0.1 time units"),
    ("clock.rate", "rate (per time unit)", "rate 0.1 per time unit"),
    ("protocols.cd.schedule.patience", "patience", "patience 0.1"),
    ("delay", "delay", "delay 0.1"),
]


def over(path):
    """Runs of a sweep over a field."""
    runs = []
    for value in (0.1, 0.3, 1.0, 3.0):
        run = make_run("cd")
        run.manifest |= {"grid": {path: value}, "scenario": {"schema": 1, "scenario": "synthetic", **SCHEMA}}
        if path == "network.latency":
            run.manifest["scenario"]["network"] = {"latency": {"kind": "constant", "value": value}}
        runs.append(run)
    return runs


@pytest.mark.parametrize(("path", "axis", "place"), UNITS)
def test_a_swept_field_is_called_and_counted_as_the_schema_says(experiment, path, axis, place):
    root = experiment(over(path))
    (axes,) = drawn(root, {"y": "accuracy", "x": path}).figure.axes
    assert axes.get_xlabel() == axis
    panels = drawn(root, {"y": "accuracy", "x": "time", "facet": path}).figure.axes
    assert panels[0].get_title().replace("\n", " ") == place


def test_a_unit_of_time_is_said_where_the_scenario_has_one_and_a_style_has_the_last_word(experiment):
    root = experiment(over("network.latency.mean"), time_unit="30 s")
    along = {"y": "accuracy", "x": "network.latency.mean"}
    assert drawn(root, along).figure.axes[0].get_xlabel() == "latency mean (time units of 30 s)"
    styled = {**along, "style": {"units": {"mean": "h"}}}
    assert drawn(root, styled).figure.axes[0].get_xlabel() == "latency mean (h)"


def test_ticks_of_a_logarithmic_sweep_stand_at_the_swept_values(experiment):
    found = drawn(experiment(over("network.latency.mean")), {"y": "accuracy", "x": "network.latency.mean", "log": "x"})
    (axes,) = found.figure.axes
    assert list(axes.get_xticks()) == [0.1, 0.3, 1.0, 3.0]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["0.1", "0.3", "1", "3"]
    assert not len(axes.get_xticks(minor=True))


def test_where_not_all_swept_values_have_numbers_the_first_and_the_last_do():
    figure = Figure(figsize=(1.2, 1.5), dpi=100)
    axes = figure.subplots()
    axes.set_xscale("log")
    axes.set_xlim(0.8, 1250)
    with house_style():
        swept = [1, 3, 10, 30, 100, 300, 1000]
        tick_places(axes, swept, [str(value) for value in swept])
    labels = [label.get_text() for label in axes.get_xticklabels()]
    assert labels[0] == "1"
    assert labels[-1] == "1000"
    assert "" in labels
    assert len([text for text in labels if text]) >= 3


def test_levels_across_a_panel_are_told_apart_by_marks_where_lines_repeat(experiment):
    """Six levels of one protocol have five kinds of lines, but marks of their own, in the legend as well."""
    runs = []
    for value in range(6):
        run = make_run("local", grid={"depth": value})
        run.trace = run.trace[run.trace["time"] == 0]
        runs += [run, make_run("cd", grid={"depth": value})]
    found = drawn(experiment(runs), {"y": "accuracy", "x": "time", "interval": "none"})
    levels = found.figure.legends[0].legend_handles[:6]
    assert len({(handle.get_linestyle(), handle.get_marker()) for handle in levels}) == 6
    (axes,) = found.figure.axes
    across = [line for line in axes.lines if len(set(line.get_ydata())) == 1 and len(line.get_ydata()) > 2]
    assert len(across) == 6
    assert all(line.get_marker() not in ("None", "", None) for line in across)
    assert axes.get_xlim()[1] > 1.5  # marks stand at shares of the panel, not at times


def test_a_gap_is_not_followed_into_its_rounding(experiment):
    run = make_run("cd")
    gap = (run.trace["metric"] == "objective") & (run.trace["statistic"] == "gap")
    rows = run.trace[gap].index
    run.trace.loc[rows, "value"] = [1.0, 1e-3, 1e-6, 1e-9, 1e-12, 1e-16, 0.0, 1e-17, -1e-16, 0.0, 1e-16]
    found = drawn(experiment([run]), {"y": "objective", "statistic": "gap", "x": "time", "log": "y"})
    assert found.figure.axes[0].get_ylim()[0] > 1e-14
    assert np.isnan(found.figure.axes[0].lines[0].get_ydata()[5:]).all()


def test_pictures_of_pages_keep_their_size_in_few_colours(experiment):
    found = drawn(experiment(), OVER_TIME, resolution=150)
    whole = picture(found, "png")
    small = few_colours(whole)
    assert len(small) < 0.6 * len(whole)
    with Image.open(io.BytesIO(whole)) as one, Image.open(io.BytesIO(small)) as other:
        assert one.size == other.size
        assert other.info["dpi"] == pytest.approx((150, 150), abs=0.1)
        difference = np.abs(np.asarray(one.convert("RGB"), int) - np.asarray(other.convert("RGB"), int))
    assert np.quantile(difference, 0.999) < 30


def test_figures_are_matplotlibs_and_a_notebook_shows_them(experiment):
    from matplotlib.figure import Figure

    root = experiment(figures=[OVER_TIME, {"y": "objective", "x": "time", "name": "gap"}])
    figures = Result.open(root).figures()
    assert [type(figure) for figure in figures] == [Figure, Figure]
    assert [figure.get_label() for figure in figures] == ["accuracy", "gap"]
    assert len(re.findall(r'<img alt="\w+" width="350" src="data:image/png;base64,', figures._repr_html_())) == 2
    (one,) = Result.open(root).figures("gap", style={"width": "two columns"})
    assert one.get_size_inches()[0] == pytest.approx(7.16)
    assert not (root / "figures").exists()
    with pytest.raises(InputError, match=r"style: width = 'wide': must be"):
        Result.open(root).figures(style={"width": "wide"})


SHIPPED = [(name, figure) for name in shipped() for figure in load(name).scenario.figures if "-vs-" in str(figure.name)]


@pytest.mark.parametrize(("scenario", "figure"), SHIPPED, ids=lambda part: getattr(part, "name", part))
def test_the_axis_of_a_shipped_figure_says_what_its_name_says(experiment, scenario, figure):
    """A figure of epochs called them time."""
    label = figure.x_label or axis_label(load_all(experiment([make_run("cd")])), figure.x)
    assert str(figure.name).rpartition("-vs-")[2] in label
