"""Figures look as scenario, figure, command or Python ask for, with labels and units wherever names stand."""

from __future__ import annotations

import io
import json
import re

import pytest
from hushnet.agents.errors import InputError
from hushnet.agents.tasks.task_names import is_stand_in
from hushnet.simulator import Result, run
from hushnet.simulator.analysis.labels import column_name, named, swept_name, words_of
from hushnet.simulator.analysis.results import load_all
from hushnet.simulator.cli import main
from hushnet.simulator.figures import drawings
from hushnet.simulator.figures.figure_files import drawing, picture
from hushnet.simulator.language.figure_style import FigureStyle
from hushnet.simulator.language.loading import load
from hushnet.simulator.metrics import more_is_better, own_metric
from hushnet.simulator.metrics.metric import OWN
from hushnet.simulator.storage.store import Store
from PIL import Image

from .synthetic import LABELS, make_run
from .writing import caption, written

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


PANELS = {**ALONG, "facet": "protocol", "title": "A title"}


@pytest.mark.parametrize(
    ("legend", "spec"),
    [("below", OVER_TIME), ("above", PANELS), ("right", PANELS), ("inside", OVER_TIME), ("none", PANELS)],
)
def test_wherever_the_legend_is_nothing_covers_anything_and_marks_are_explained(experiment, legend, spec):
    root = experiment(swept() if spec is not OVER_TIME else None)
    found = drawn(root, spec, legend=legend, width=17 if legend == "right" else None)
    assert "seeds (thin)" in caption(found.figure)
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
    for made in runs:
        made.manifest["task"] = {"name": "synthetic stand-in for gisette"}
    root = experiment(runs)
    bars, frontier = {**OVER_TIME, "x": "protocol"}, {**OVER_TIME, "kind": "frontier", "x": "vectors"}
    for spec, legend in ((OVER_TIME, "below"), (bars, "right"), (frontier, "none")):
        assert caption(drawn(root, spec, legend=legend, width=18).figure).startswith("synthetic stand-in for gisette ")
    assert is_stand_in("synthetic stand-in for MovieLens")
    assert not is_stand_in("UCI Adult")


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


OWN_FILE = """\
from hushnet.simulator.metrics import own_metric

@own_metric("spread of the models", unit="mm", better="less")
def spread(snapshot):
    return float(snapshot.models.std())

def plain(snapshot):
    return snapshot.now
"""
LABELLED = """\
schema: 1
scenario: labelled
task: {kind: mean_estimation, agents: 4}
topology: {kind: complete}
network: {latency: {kind: constant, value: 0.1}}
protocols: {alone: {kind: local}, cd: {kind: model_propagation, alpha: 0.5}}
stop: {time: 3}
record: {every: 1, metrics: [./mine.py:spread, ./mine.py:plain, mse]}
seeds: 3
sweep: {network.loss: [0.0, 0.2]}
style: {labels: {network.loss: lost messages}, units: {network.loss: share}, formats: [svg]}
figures: [{y: ./mine.py:spread, x: time}]
"""


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """Results with words of a style and of a user's own metrics, beside their scenario."""
    folder = tmp_path_factory.mktemp("labelled")
    (folder / "mine.py").write_text(OWN_FILE)
    (folder / "labelled.yaml").write_text(LABELLED)
    out = folder / "results" / "labelled"
    assert main(["run", str(folder / "labelled.yaml"), "--trust-code", "--quiet", "--out", str(out)]) == 0
    return out


@pytest.fixture
def results(finished, monkeypatch):
    monkeypatch.chdir(finished.parents[1])
    monkeypatch.setenv("COLUMNS", "80")
    OWN.clear()  # as in a process that has only the files
    return finished


def test_words_of_styles_and_of_own_metrics_are_in_every_output(results, capsys):
    Result.open(results)
    assert more_is_better("./mine.py:spread") is False
    assert more_is_better("./mine.py:plain") is None
    outputs = {}
    for name, words in {
        "summary": ("run", "labelled.yaml", "--trust-code", "--quiet"),
        "compare": ("compare", str(results), "--measure", "all"),
        "verbose": ("compare", str(results), "--verbose"),
        "report": ("report", str(results)),
        "replay": ("replay", str(results), "--run", "cd,network.loss=0.2", "--trust-code"),
    }.items():
        assert main([*words]) == 0
        outputs[name] = capsys.readouterr().out
    outputs["latex"] = (results / "compare" / "differences.tex").read_text()
    outputs |= {name: (results / f"{name}.html").read_text() for name in ("report", "replay")}
    for name, text in outputs.items():
        flat = " ".join(text.split())
        assert "./mine.py" not in flat.replace("kind: ./mine.py", "") or name == "report", name
        assert "spread of the models (mm)" in flat or name in ("summary", "replay"), name
        assert "lost messages" in flat or (name == "verbose" and "lost" in flat), name
    assert "seed 0, lost messages 0.2 share;" in outputs["replay"]
    about = json.loads((results / "dataset" / "dataset.json").read_text())["names"]
    assert about["network.loss"] == {"label": "lost messages", "unit": "share"}
    assert about["./mine.py:spread"] == {"label": "spread of the models", "unit": "mm", "better": "less"}
    assert set(about) == {"network.loss", "./mine.py:spread", "./mine.py:plain"}


def test_labels_come_from_style_and_functions(results):
    collection = Result.open(results).collection
    assert swept_name(collection, "network.loss") == "lost messages (share)"
    assert named(collection, "network.loss", "loss") == "lost messages (share)"
    assert column_name(collection, "./mine.py:spread") == words_of("./mine.py:spread") == "spread of the models (mm)"
    assert column_name(collection, "./mine.py:plain") == "plain"
    assert column_name(collection, "mse") == "mse"
    assert column_name(collection, "objective", "gap") == "objective gap"


def test_a_function_of_python_is_described_alike(tmp_path):
    @own_metric("largest coordinate", better="more")
    def largest(snapshot):
        return float(snapshot.models.max())

    given = {
        "schema": 1,
        "scenario": "little",
        "task": {"kind": "mean_estimation", "agents": 4},
        "topology": {"kind": "complete"},
        "protocols": {"alone": {"kind": "local"}},
        "stop": {"time": 2},
        "record": {"every": 1, "metrics": ["mse"]},
    }
    found = run(given, out=tmp_path, metrics={"largest": largest})
    assert found.manifests[0]["own_metrics"] == {
        "largest": {"label": "largest coordinate", "unit": "", "better": "more"}
    }
    assert words_of("largest") == "largest coordinate"
    with pytest.raises(ValueError, match="better = 'most': must be 'more', 'less' or None"):
        own_metric("x", better="most")  # pyright: ignore[reportArgumentType]
