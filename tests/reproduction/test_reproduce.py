"""Pages say what was measured, never what was hoped for; one figure's failure stops no other."""

from __future__ import annotations

import math
import re
from copy import deepcopy
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hushnet.agents.errors import InputError
from hushnet.agents.tasks.datasets import DATASETS
from hushnet.simulator.analysis.results import load_all
from hushnet.simulator.cli import main
from hushnet.simulator.experiment import perform, start_workers
from hushnet.simulator.language.loading import load
from hushnet.simulator.reproduction import reproduce as module
from hushnet.simulator.reproduction.findings import judged
from hushnet.simulator.reproduction.judge import Finding, Number, measured
from hushnet.simulator.reproduction.pages import (
    RESOLUTION,
    Report,
    Row,
    Section,
    margin_text,
    moved,
    number_text,
    page,
    trivial_predictions,
)
from hushnet.simulator.reproduction.papers import Claim, Paper, PaperFigure, papers
from hushnet.simulator.reproduction.reproduce import (
    Place,
    finished,
    judge_paper,
    reproduce,
    select,
    wanted_seeds,
    write_page,
)
from hushnet.simulator.reproduction.reproduction_runs import Runs
from PIL import Image

from .pretend import PretendedRuns, number, pretend, pretended_collection

TINY = (
    "task.agents=8",
    "task.dimension=2",
    "topology={kind: ring}",
    "stop.updates=2",
    "protocols={local: {kind: local}, cd: {kind: coordinate_descent, updates: 2}}",
    "record={activations: 8, metrics: [accuracy]}",
)
ABSENT = object()
PICTURES = ["accuracy-by-size"]
FIGURES = [(paper, figure) for paper in papers() for figure in paper.figures]
GAIN = {"name": "gain", "value": "lead('cd', 'local', 'accuracy')", "above": 0.0}


def tiny_figure(name="tiny-fig1", **changed):
    settings = {"of": "bellet2018-fig3", "quick": list(TINY), "quick_seeds": 2, "pictures": PICTURES, **changed}
    return PaperFigure(name=name, title="Figure 1", shows="A tiny run.", **settings)


def claim_of(figure, says="Collaboration helps.", **fields):
    why = ["it is {mean(lead('cd', 'local', 'accuracy')):.3f}"]
    return Claim.model_validate({"says": says, "on": [figure.name], "numbers": [GAIN], "why": why, **fields})


def tiny_paper(*figures, claims=None):
    figures = figures or (tiny_figure(),)
    if claims is None:
        claims = [claim_of(figure, f"Collaboration helps in {figure.name}.") for figure in figures]
    head = {"name": "tiny", "authors": "Nobody", "year": 2000, "title": "Nothing", "venue": "Nowhere"}
    return Paper(**head, remarks=["As printed."], figures=list(figures), claims=claims)


def test_the_page_prints_how_numbers_decide_and_what_refutes_a_promise():
    figure, good, bad = tiny_figure(), Number("a", 1.0, low=0.0), Number("b", -1.0, low=0.0)
    promise = Number("epsilon", 5.0, high=1.0, claimed=True, at_least=2.5)
    claims = [claim_of(figure, says) for says in ("A before B.", "Private.")]
    rows = (Row(claims[0], Finding((good, bad), "ordering")), Row(claims[1], Finding((promise,))))
    text = page(Report(tiny_paper(figure, claims=claims), (Section(figure, rows),), (), quick=False))
    assert "**does not hold (1 of 2 hold)**<br>ordering |" in text
    assert "epsilon: 5, at least 2.5 | < 1 | **refuted** |" in text


def test_ten_lines_say_what_holds_what_does_not_and_what_nobody_should_copy():
    figure, numbers = tiny_figure(), {"Good.": 1.0, "Bad.": -1.0}
    claims = [claim_of(figure, says) for says in (*numbers, "Open.", "Private.", "Unknown.")]
    found = [Finding((Number("x", value, low=0.0),)) for value in numbers.values()]
    found += [Finding((Number("x", 1.0, 1.5, 9, low=0.0),))]
    found += [Finding((Number("epsilon", 5.0, high=1.0, claimed=True, at_least=2.5),)), None]
    rows = tuple(Row(claim, finding) for claim, finding in zip(claims, found, strict=True))
    report = Report(tiny_paper(figure, claims=claims), (Section(figure, rows),), (), quick=False)
    lines = report.in_short()
    assert lines == [
        "- Looked at are 5 claims.",
        "- **Holds** (1): Good.",
        "- **Does not hold** (1): Bad.",
        f"- **Undecided so far** (1): Open. ({found[2].needed} seeds would decide.)",
        "- **Privacy that nobody should copy, refuted or not proved** (1): Private.",
        "- **Not measured** (1): Unknown.",
    ]
    assert "\n".join(lines) in page(report)


def test_ten_lines_are_enough_for_every_paper(tmp_path):
    for paper in papers():
        report, _ = judge_paper(paper, Place(tmp_path, quick=False), run={}, say=lambda _: None)
        assert 2 <= len(report.in_short()) <= 10


def test_a_page_has_the_trivial_predictions_of_its_seeds(pretended):
    """A seed counts once, however many protocols ran with it: five values, t(.975, 4), not twenty-five.

    What a zero model comes to is its objective less the minimum, so not the objective.
    """
    runs = finished(*pretended)
    for manifest in runs.collection.manifests:
        manifest["baselines"] = {"accuracy": {"majority class": 0.9 + 0.01 * manifest["seed"], "guess": 2.0}}
    interval = number_text(measured("", [0.9 + 0.01 * seed for seed in range(5)]))
    assert trivial_predictions(runs) == [
        f"Trivial predictions: majority class {interval} (accuracy), guess 2 (accuracy).",
        "Nobody beats a trivial prediction: guess, accuracy 2.",
    ]
    runs = finished(*pretended)
    for manifest in runs.collection.manifests:
        manifest["baselines"] = {"objective": {"zero model": 684.0}}
    runs.collection.trace.loc[:, "metric"] = "objective"
    assert trivial_predictions(runs)[0] == "Trivial predictions: zero model 684 (objective gap)."


def test_protocols_whose_numbers_are_of_two_kinds_are_not_held_against_each_other():
    runs = Runs(pretended_collection(load("bellet2018-fig1", seeds=2)))
    for manifest in runs.collection.manifests:
        given = {"function": "Q", "scale": "unknown", "identity": manifest["protocol"]}
        manifest["measures"] = {"objective": given}
    with pytest.raises(InputError, match="not of one kind"):
        runs.lead("cd", "admm", "gap")
    assert len(runs.lead("cd", "admm", "accuracy")) == 2


def test_leads_are_paired_by_seed_and_not_by_place():
    """The second protocol's numbers come in another order of seeds: each lead is still that of one seed."""
    first, second = pd.Series({0: 1.0, 1: 2.0, 2: 4.0}), pd.Series({2: 3.0, 0: 0.5, 1: 1.75})

    class Given(Runs):
        def final(self, key, metric, statistic=None, *, at=None):
            return first if key == "first" else second

    runs = Given(pretended_collection(load("bellet2018-fig3", seeds=2)))
    assert dict(runs.lead("first", "second", "accuracy")) == {0: 0.5, 1: 0.25, 2: 1.0}
    assert dict(runs.lead("first", "second", "mse")) == {0: -0.5, 1: -0.25, 2: -1.0}


def test_a_promise_is_that_of_the_worst_run():
    runs = Runs(pretended_collection(load("bellet2018-fig2a", seeds=2)))
    for which in ("claimed", "verified"):
        ends = runs.final("eps-1-05", f"epsilon_{which}", "worst")
        assert runs.epsilon(which, "eps-1-05") == ends.max() > ends.min()


@pytest.mark.parametrize(
    ("value", "half_width", "text"),
    [
        (0.89123, 0.0042, "0.8912 ± 0.0042"),
        (31234.5, 320.0, "31234 ± 320"),
        (5.0, math.nan, "5"),
        (math.inf, 0.0, "∞"),
        (-2.5, 0.0, "-2.5"),
    ],
)
def test_numbers_are_shown_to_the_digits_that_they_deserve(value, half_width, text):
    assert number_text(Number("x", value, half_width, 5)) == text


def looked_at(paper, place):
    report, failures = judge_paper(paper, place, run={}, say=lambda _: None)
    assert failures == []
    return report


@pytest.fixture
def pretended(tmp_path):
    """A figure whose full runs are pretended, and its place."""
    figure, place = tiny_figure(), Place(tmp_path, quick=False)
    pretend(place.scenario(figure), place.runs(figure))
    return figure, place


def test_a_page_is_computed_from_the_runs_files(pretended):
    figure, place = pretended
    text = write_page(looked_at(tiny_paper(figure), place), place).read_text()
    leads = [number(1, seed, 5, {}) - number(0, seed, 5, {}) for seed in range(5)]
    gain = number_text(measured("", leads))
    assert f"| Collaboration helps in tiny-fig1. | gain: {gain} | > 0 | **holds**<br>for all | " in text
    assert f"it is {np.mean(leads):.3f}" in text
    assert "25 runs, 5 seeds." in text
    assert "Runs by hushnet 0.0+pretended, commit unknown." in text
    for name in re.findall(r"!\[.*?\]\((.*?)\)", text):
        assert 0 < (place.pages / name).stat().st_size <= 60_000
        with Image.open(place.pages / name) as picture:
            assert picture.width == pytest.approx(RESOLUTION * 3.5, abs=1)
    assert write_page(looked_at(tiny_paper(figure), place), place).read_text() == text


def test_a_quick_page_says_so_and_gives_no_verdict():
    figure = tiny_figure()
    claim = claim_of(figure, "It holds.")
    row = Row(claim, Finding((Number("x", 1.0, low=0.0),), why="why"))
    section, paper = Section(figure, (row,)), tiny_paper(figure, claims=[claim])
    shown = {quick: page(Report(paper, (section,), (), quick)) for quick in (False, True)}
    assert "**holds**" in shown[False]
    assert "verdict |" in shown[False]
    assert "quick" not in shown[False]
    assert shown[True].startswith("# Nobody: Nothing (quick runs)")
    assert "| It holds. | x: 1 | > 0 | why |" in shown[True]
    assert not any(verdict in shown[True] for verdict in ("**holds", "does not hold", "undecided"))


def test_more_seeds_are_those_that_would_decide_and_are_run_once(tmp_path, monkeypatch):
    """What is undecided below five seeds is run with five; the page is that of all runs then, and so is the next."""
    figure = tiny_figure("tiny-fig1", seeds=2)
    made = load("bellet2018-fig3", overrides=TINY).source.data
    monkeypatch.setattr(module, "load", lambda name, **how: load(made if name == "bellet2018-fig3" else name, **how))
    lines, paper = [], tiny_paper(figure, claims=[claim_of(figure, numbers=[{**GAIN, "above": -9.0}])])
    assert reproduce([paper], more_seeds=True, results=tmp_path, say=lines.append) == []
    assert "tiny: more seeds for tiny-fig1 (5)" in lines
    text = (tmp_path / "reproduction/tiny.md").read_text()
    assert "10 runs, 5 seeds." in text
    reproduce([paper], results=tmp_path, say=lines.append)
    assert (tmp_path / "reproduction/tiny.md").read_text() == text
    assert wanted_seeds([looked_at(paper, Place(tmp_path, quick=False))], [figure]) == {}
    reproduce([paper], anew=100, results=tmp_path, say=lines.append)
    assert "10 runs, 5 seeds." in (tmp_path / "anew-100/reproduction/tiny.md").read_text()
    reproduce([paper], more_seeds=True, anew=100, results=tmp_path / "both", say=lines.append)
    counts = [len(load_all(Place(tmp_path / "both", False, anew).runs(figure)).runs) for anew in (0, 100)]
    assert counts == [10, 10], "both sets of seeds are as many"


@pytest.mark.parametrize(
    ("name", "drawn"),
    [
        ("vanhaesebrouck2017-fig2-right", [(k, 0) for k in range(12)]),
        ("vanhaesebrouck2017-fig1", [(k, k) for k in range(12)]),
        ("hu2019-fig1", [(0, k) for k in range(12)]),
    ],
)
def test_seeds_are_added_where_they_were_drawn(tmp_path, name, drawn):
    figure = next(figure for _, figure in FIGURES if figure.name == name)
    added = Place(tmp_path, quick=False).scenario(figure, seeds=12).scenario.seed_pairs()
    assert [pair[1:] for pair in added] == drawn


def test_seeds_that_are_raised_are_run_apart_and_the_verdicts_that_move_are_listed(tmp_path):
    """With other seeds A still holds, B does not, C is open, and D has the same number: of three rows two move."""
    figure, rows = tiny_figure(), []
    claims = [claim_of(figure, says) for says in "ABCD"]
    for ends in ((1.0, 1.0, 1.0, 1.0), (2.0, -1.0, 0.0, 1.0)):
        found = [Finding((Number("x", end, 0.1, 5, low=0.0),)) for end in ends]
        pairs = zip(claims, found, strict=True)
        rows.append(Section(figure, tuple(Row(claim, finding) for claim, finding in pairs)))
    text = moved([tuple(Report(tiny_paper(figure, claims=claims), (section,), (), quick=False) for section in rows)])
    assert text.startswith(
        "Of 3 rows that decide and whose numbers are others with other seeds, 2 have another verdict: 1 move to or "
        "from *undecided*, 1 between "
    )
    assert "| Nobody, B | holds | does not hold |\n| Nobody, C | holds | undecided |" in text
    large = tiny_figure("tiny-fig0")
    claim = claim_of(figure, "E", on=[large.name, figure.name])
    decided, open_ = (Row(claim, Finding((Number("x", end, 0.1, 5, low=0.0),))) for end in (1.0, 0.0))
    pairs = [
        (Section(large, (first,)), Section(figure, (row,)))
        for first, row in ((decided, decided), (Row(claim, None), open_))
    ]
    text = moved([[Report(tiny_paper(large, figure, claims=[claim]), sections, (), quick=False) for sections in pairs]])
    assert text.startswith("Of 0 rows"), "a stand-in beside the paper's size decides nothing"
    place = Place(tmp_path, quick=False, anew=100)
    assert place.runs(figure) == tmp_path / "anew-100" / "bellet2018-fig3"
    drawn = {figure.name: place.scenario(figure).scenario.seed_pairs() for _, figure in FIGURES}
    assert [pair[1:] for pair in drawn["hu2019-fig1"]] == [(100, 100 + k) for k in range(5)]
    assert [pair[1:] for pair in drawn["vanhaesebrouck2017-fig1"]] == [(100 + k, 100 + k) for k in range(10)]


@pytest.mark.parametrize(
    ("part", "changes", "counted"),
    [
        (None, {}, True),
        (None, {"observers": ABSENT}, True),
        ("task", {"loss": ABSENT, "label_noise": ABSENT}, True),
        ("task", {"label_noise": 0.25}, False),
        ("task", {"no_more": 1}, False),
    ],
)
def test_runs_count_as_run_if_with_todays_defaults_they_are_the_figures(pretended, monkeypatch, part, changes, counted):
    """As those of a version without some fields; but not with another value, or a field that there is no more."""
    figure, place = pretended
    there = load_all(place.runs(figure))
    manifests = [deepcopy(manifest) for manifest in there.manifests]
    for manifest in manifests:
        fields = manifest["scenario"][part] if part else manifest["scenario"]
        assert all(fields.pop(name, ABSENT) != value for name, value in changes.items())
        fields |= {name: value for name, value in changes.items() if value is not ABSENT}
    monkeypatch.setattr(module, "load_all", lambda _: replace(there, manifests=manifests))
    assert (finished(figure, place) is not None) == counted


def test_a_figure_without_its_data_is_not_run_and_its_rows_say_what_it_needs(tmp_path):
    figure, lines = tiny_figure(data="ml-100k"), []
    paper = tiny_paper(figure, tiny_figure("tiny-fig2", of="bellet2018-fig2a", quick=[*TINY, "figures=[]"]))
    assert reproduce([paper], quick=True, results=tmp_path, data_dir=tmp_path / "none", say=lines.append) == []
    text = (tmp_path / "reproduction/tiny-quick.md").read_text()
    assert "| Collaboration helps in tiny-fig1. | not run: needs MovieLens-100K (unpack https://" in text
    assert "gain: " in text
    assert any(line.startswith("tiny-fig1: not run: needs MovieLens-100K") for line in lines)


def test_every_data_set_that_a_figure_needs_is_known():
    for _, figure in FIGURES:
        assert figure.data is None or figure.data in DATASETS


def test_reproducing_runs_what_is_missing_and_writes_the_page(tmp_path):
    lines = []
    assert reproduce([tiny_paper()], "tiny", quick=True, results=tmp_path, say=lines.append) == []
    page_path, runs = tmp_path / "reproduction/tiny-quick.md", tmp_path / "quick/bellet2018-fig3"
    assert lines[0] == "tiny-fig1: 4 runs of bellet2018-fig3"
    assert lines[-1] == f"page: {page_path}"
    manifests = {path: path.read_bytes() for path in runs.glob("*/manifest.json")}
    assert len(manifests) == 4
    written = page_path.read_bytes()
    reproduce([tiny_paper()], "tiny-fig1", quick=True, results=tmp_path, say=lines.append)
    assert {path: path.read_bytes() for path in runs.glob("*/manifest.json")} == manifests
    assert page_path.read_bytes() == written


def test_two_processes_that_are_hired_once_run_all_figures_and_write_the_same_page(tmp_path, monkeypatch):
    other = tiny_figure("tiny-fig2", of="bellet2018-fig2a", quick=[*TINY, "figures=[]"])
    papers, hired, used = [tiny_paper(tiny_figure(), other)], [], []

    def hiring(jobs):
        hired.append((jobs, start_workers(jobs)))
        return hired[-1][1]

    def performing(experiment, *, workers, on_run):
        used.append(workers)
        return perform(experiment, workers=workers, on_run=on_run)

    monkeypatch.setattr(module, "start_workers", hiring)
    monkeypatch.setattr(module, "perform", performing)
    pages = []
    for jobs in (1, 2):
        root = tmp_path / str(jobs)
        assert reproduce(papers, quick=True, results=root, jobs=jobs, say=lambda _: None) == []
        pages.append((root / "reproduction/tiny-quick.md").read_bytes())
    assert [jobs for jobs, _ in hired] == [1, 2]
    assert used == [hired[0][1], hired[0][1], hired[1][1], hired[1][1]]
    assert pages[0] == pages[1]


def test_the_shell_takes_a_number_of_processes_or_auto(monkeypatch, capsys):
    asked = []
    monkeypatch.setattr(module, "reproduce", lambda *_, jobs, **__: asked.append(jobs) or [])
    for jobs in ("3", "auto"):
        assert main(["reproduce", "--jobs", jobs]) == 0
    assert asked == [3, "auto"]
    assert main(["reproduce", "--jobs", "0"]) == 2
    assert "--jobs 0: must be a number from 1, or auto" in capsys.readouterr().err


def test_one_figures_failure_stops_no_other_and_is_named_at_the_end(tmp_path):
    broken = tiny_figure("tiny-fig0", quick=["task.agents=0"], of="bellet2018-fig2c")
    failures = reproduce([tiny_paper(broken, tiny_figure())], quick=True, results=tmp_path, say=lambda _: None)
    assert [(failure.figure, failure.exit_code) for failure in failures] == [("tiny-fig0", 2)]
    assert "task.agents=0: must be at least 1" in str(failures[0])
    text = (tmp_path / "reproduction/tiny-quick.md").read_text()
    assert "task.agents=0: must be at least 1" in text
    assert "gain: " in text


def test_an_unforeseen_error_in_one_figure_stops_no_other(tmp_path, monkeypatch):
    def fail(experiment, workers, on_run):
        raise KeyError("surprise")

    monkeypatch.setattr(module, "perform", fail)
    (failure,) = reproduce([tiny_paper()], quick=True, results=tmp_path, say=lambda _: None)
    assert (failure.exit_code, str(failure)) == (1, "tiny-fig1: KeyError: 'surprise'")


def test_a_fault_in_one_claim_is_a_failure_of_its_figure_alone(pretended):
    figure, place = pretended
    broken = claim_of(figure, "A.", numbers=[{**GAIN, "value": "1 / 0"}])
    report, failures = judge_paper(tiny_paper(figure, claims=[broken]), place, run={}, say=lambda _: None)
    assert [str(failure) for failure in failures] == ["tiny-fig1: ZeroDivisionError: division by zero"]
    assert "| A. | division by zero |" in page(report)


def test_a_row_that_cannot_be_measured_says_what_is_missing(pretended):
    figure, place = pretended
    claim = claim_of(figure, "A.", numbers=[{**GAIN, "value": "final('admm', 'accuracy')"}])
    report = looked_at(tiny_paper(figure, claims=[claim]), place)
    assert "| A. | not measured: no finished run of admm recorded accuracy |" in page(report)


def test_long_runs_give_signs_of_life(tmp_path, monkeypatch):
    lines = []
    monkeypatch.setattr(module, "REPORT_INTERVAL", 0.0)
    monkeypatch.setattr(module, "perform", lambda *_, on_run, **__: on_run() or on_run() or [])
    reproduce([tiny_paper()], quick=True, results=tmp_path, say=lines.append)
    assert lines[1:3] == ["tiny-fig1: run 1 of 4", "tiny-fig1: run 2 of 4"]


def test_values_are_found_along_an_axis():
    runs = Runs(pretended_collection(load("bellet2018-fig3")))
    assert list(runs.at(250, "cd", "accuracy", "activations")) == [number(1, seed, 2, {}) for seed in range(5)]
    target = {"metric": "accuracy", "level": number(1, 0, 3, {})}
    for before, axis, place in ((False, "vectors", 3000), (True, "vectors", 2000), (True, "vectors_with_start", 2060)):
        assert runs.first(target, "cd", axis, before=before)[0] == place
    assert runs.end(["cd", "local"], "accuracy", "activations") == 500
    assert (runs.of_size("small", "cd", "accuracy") > runs.of_size("large", "cd", "accuracy")).all()
    assert (runs.worst_lead("cd", "local", "accuracy", "activations") > 0).all()
    with pytest.raises(InputError, match="does not sweep"):
        runs.values("task.dimension")


def test_a_value_that_depends_on_the_grid_needs_its_point():
    runs = Runs(pretended_collection(load("bellet2018-fig2c")))
    with pytest.raises(InputError, match=r"accuracy of cd depends on task\.dimension"):
        runs.final("cd", "accuracy")
    point = {"task.dimension": 50}
    assert runs.final("cd", "accuracy", at=point)[0] == pytest.approx(number(1, 0, 5, point))


def test_names_mean_everything_a_paper_or_a_figure():
    known = papers()
    assert [paper for paper, _ in select(known, None)] == list(known)
    bellet = next(paper for paper in known if paper.name == "bellet2018")
    assert select(known, "bellet2018") == [(bellet, tuple(bellet.figures))]
    assert select(known, "bellet2018-fig2a")[0][1][0].title == "Figure 2a"


def test_an_unknown_name_is_one_sentence_with_the_nearest(capsys):
    assert main(["reproduce", "belet2018"]) == 2
    said = capsys.readouterr().err
    assert said.startswith("unknown paper or figure 'belet2018'; did you mean 'bellet2018'? admissible: ")
    assert said.count("\n") == 1


def test_the_shells_exit_code_is_that_of_the_worst_figure(tmp_path, monkeypatch, capsys):
    from hushnet.simulator.reproduction import papers as registry

    paper = tiny_paper(tiny_figure("tiny-fig0", quick=["task.agents=0"]))
    monkeypatch.setattr(registry, "papers", lambda: (paper,))
    assert main(["reproduce", "--quick", "--results", str(tmp_path)]) == 2
    assert capsys.readouterr().err.startswith("tiny-fig0: ")


def test_names_are_unique_and_every_figure_has_claims():
    names = [figure.name for _, figure in FIGURES] + [paper.name for paper in papers()]
    assert len(set(names)) == len(names)
    for paper in papers():
        own = {figure.name for figure in paper.figures}
        assert all(name.startswith(f"{paper.name}-") for name in own)
        assert {name for claim in paper.claims for name in claim.on} == own


class StillRuns(PretendedRuns):
    """Runs in which nothing is random: every seed has the numbers of the first."""

    def final(self, key, metric, statistic=None, *, at=None):
        found = super().final(key, metric, statistic, at=at)
        return found * 0 + found.iloc[0]

    def curve(self, key, metric, x):
        curves = super().curve(key, metric, x)
        return dict.fromkeys(curves, next(iter(curves.values())))


LARGE = {
    *("bellet2018-table1-updates", "bellet2018-fig2a-updates", "bellet2018-fig2b", "bellet2018-fig2c"),
    "vanhaesebrouck2017-fig3-right",
}
"""Figures whose claims are those of smaller ones, at far more points."""


@pytest.mark.parametrize(
    ("paper", "figure"),
    [
        pytest.param(paper, figure, id=figure.name, marks=[pytest.mark.slow] * (figure.name in LARGE))
        for paper, figure in FIGURES
    ],
)
def test_every_figure_has_a_shipped_scenario_whose_records_decide_all_its_claims(tmp_path, paper, figure):
    """With pretended numbers, full and quick: nothing that a claim needs is missing from the scenario."""
    sizes = []
    for quick in (False, True):
        loaded = Place(tmp_path, quick).scenario(figure)
        sizes.append(len(loaded.points) * len(loaded.scenario.seed_pairs()))
        if quick and not any(changed.startswith(("sweep", "protocols")) for changed in figure.quick):
            continue  # shorter, with fewer seeds, and the same numbers
        collection = pretended_collection(load(figure.scenario, overrides=figure.quick if quick else (), seeds=2))
        for claim in (claim for claim in paper.claims if figure.name in claim.on):
            still = any(not number.random for number in claim.numbers)
            found = judged(paper, claim, (StillRuns if still else PretendedRuns)(collection))
            assert found.numbers, claim.says
            assert "nothing" not in found.said
            asked = "; ".join(dict.fromkeys(margin_text(number) for number in found.numbers))
            assert quick or not claim.ours or [*claim.since.values()][-1] == asked, claim.says
    assert sizes[1] <= sizes[0]


@pytest.mark.parametrize(
    ("paper", "claim"),
    [(paper, claim) for paper in papers() for claim in paper.statements],
    ids=[claim.stands.replace(" ", "-") for paper in papers() for claim in paper.statements],
)
def test_every_printed_statement_is_decided(paper, claim):
    found = judged(paper, claim)
    assert found.how
    assert found.verdict in ("holds", "does not hold", "refuted")


def test_the_best_of_a_sweep_is_chosen_on_the_other_seeds():
    """The last seed would be best at T = 2, and the others' mean is at T = 1; it makes T = 2 the best of the others."""

    class Given(Runs):
        def final(self, key, metric, statistic=None, *, at=None):
            return pd.Series([3.0, 3.0, 9.0] if at["T"] == 1 else [5.0, 5.0, 1.0])

        def values(self, path):
            return [1, 2]

    runs = Given(pretended_collection(load("bellet2018-fig3", seeds=2)))
    assert list(runs.best("eps", "objective", "T")) == [5.0, 5.0, 9.0]
    assert runs.best_at("eps", "objective", "T") == [1, 2]
