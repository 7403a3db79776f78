"""Pages say what was measured, never what was hoped for; one figure's failure stops no other."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hushnet.agents.errors import InputError
from hushnet.agents.tasks.datasets import DATASETS
from hushnet.simulator.cli import main
from hushnet.simulator.experiment import hire, perform
from hushnet.simulator.language.loading import load
from hushnet.simulator.reproduction.bellet2018_claims import noise_against_signal
from hushnet.simulator.reproduction.claims import (
    Claim,
    Finding,
    Number,
    Paper,
    PaperFigure,
    Promise,
    Statement,
    measured,
)
from hushnet.simulator.reproduction.comparisons import ahead, promises
from hushnet.simulator.reproduction.pages import (
    RESOLUTION,
    Report,
    Row,
    Section,
    judged,
    number_text,
    page,
    trivial_predictions,
)
from hushnet.simulator.reproduction.papers import papers
from hushnet.simulator.reproduction.plan import expected_seconds, scenario_of, select
from hushnet.simulator.reproduction.reproduce import Place, finished, judge_paper, reproduce, write_page
from hushnet.simulator.reproduction.runs import Runs
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
PICTURES = ("accuracy-by-size",)
FIGURES = [(paper, figure) for paper in papers() for figure in paper.figures]


def tiny_figure(name="tiny-fig1", **changed):
    settings = {"scenario": "bellet2018-fig3", "quick": TINY, "quick_seeds": 2, "pictures": PICTURES, **changed}
    return PaperFigure(name, "Figure 1", "A tiny run.", **settings)


def gain(runs):
    lead = runs.final("cd", "accuracy") - runs.final("local", "accuracy")
    return Finding((measured("gain", lead, above=0),), f"it is {lead.mean():.3f}")


def tiny_paper(*figures, statements=()):
    figures = figures or (tiny_figure(),)
    claims = tuple(Claim(figure.name, "Collaboration helps.", gain) for figure in figures)
    return Paper("tiny", "Nobody", 2000, "Nothing", "Nowhere", ("As printed.",), figures, claims, statements)


@pytest.mark.parametrize(
    ("value", "half_width", "low", "high", "verdict"),
    [
        (1.0, 0.5, 0.0, math.inf, "holds"),
        (1.0, 1.5, 0.0, math.inf, "holds in part"),
        (1.0, math.nan, 0.0, math.inf, "holds in part"),
        (-1.0, 5.0, 0.0, math.inf, "does not hold"),
        (0.0, 0.0, 0.0, math.inf, "does not hold"),
        (0.95, 0.01, 0.93, 0.97, "holds"),
        (0.95, 0.03, 0.93, 0.97, "holds in part"),
        (math.inf, 0.0, -math.inf, 1.0, "does not hold"),
    ],
)
def test_a_number_holds_with_its_whole_interval_and_in_part_with_its_mean(value, half_width, low, high, verdict):
    assert Number("x", value, half_width, low, high).verdict == verdict


GOOD, BAD, IN_PART = Number("a", 1.0, low=0.0), Number("b", -1.0, low=0.0), Number("c", 1.0, 1.5, low=0.0)


def test_a_claim_without_a_kind_counts_the_numbers_that_hold():
    assert Finding((GOOD, GOOD)).verdict == "holds"
    assert Finding((BAD, BAD)).verdict == "does not hold"
    found = Finding((GOOD, BAD, GOOD))
    assert (found.verdict, found.words) == ("k of n", "holds in 2 of 3")
    assert Finding((GOOD, IN_PART)).words == "holds in 1 of 2"


@pytest.mark.parametrize("kind", ["for all", "all of these parts", "ordering"])
def test_one_violated_number_refutes_what_says_something_of_all(kind):
    found = Finding((GOOD, BAD, GOOD), kind=kind)
    assert (found.verdict, found.words) == ("does not hold", "does not hold (2 of 3 hold)")
    assert Finding((GOOD, IN_PART), kind=kind).verdict == "holds in part"
    assert Finding((GOOD, GOOD), kind=kind).words == "holds"


def test_one_setting_of_which_all_numbers_hold_suffices_where_there_is_said_to_be_one():
    def of(setting, *numbers):
        return tuple(replace(number, setting=setting) for number in numbers)

    kind = "exists a setting"
    assert Finding(of("q = 1", GOOD, BAD) + of("q = 2", GOOD, GOOD), kind=kind).verdict == "holds"
    assert Finding(of("q = 1", GOOD, BAD) + of("q = 2", BAD, GOOD), kind=kind).verdict == "does not hold"
    assert Finding(of("q = 1", BAD) + of("q = 2", IN_PART), kind=kind).verdict == "holds in part"


def test_a_theorem_with_one_counterexample_does_not_hold():
    """Two of the three cases of theorem 2 of Bellet et al. (2018) violate the printed bound, one does not."""
    (statement,) = [s for s in papers()[0].statements if s.place == "Theorem 2"]
    row = judged(statement.text, statement.check, statement.kind)
    assert statement.kind == "for all"
    assert {number.verdict for number in row.finding.numbers} == {"holds", "does not hold"}
    assert row.finding.verdict == "does not hold"


def test_every_claim_of_a_paper_has_a_kind_or_is_a_promise():
    for paper in papers():
        for claim in paper.claims:
            assert claim.kind or "promise" in claim.check.__name__ or "theorem" in claim.check.__name__, claim.text


def test_the_page_prints_how_numbers_decide_and_what_refutes_a_promise():
    ordered = Row("A before B.", Finding((GOOD, BAD), kind="ordering"))
    promised = Row("Private.", Finding((Promise("epsilon", 5.0, high=1.0, at_least=2.5),), kind="for all"))
    counted = Row("Better.", Finding((GOOD, BAD)))
    text = page(Report(tiny_paper(), (Section(tiny_figure(), (ordered, promised, counted)),), (), False))
    assert "**does not hold (1 of 2 hold)**<br>ordering |" in text
    assert "epsilon: 5, at least 2.5 | < 1 | **refuted** |" in text
    assert "**holds in 1 of 2** |" in text


def test_a_page_has_the_trivial_predictions_of_its_runs(pretended):
    figure, place = pretended
    runs = finished(figure, place)
    for manifest in runs.collection.manifests:
        manifest["baselines"] = {"accuracy": {"majority class": 0.9}}
    assert trivial_predictions(runs) == [
        "Trivial predictions: majority class 0.9 (accuracy).",
        "Nobody beats a trivial prediction: majority class, accuracy 0.9.",
    ]


def test_what_a_zero_model_comes_to_is_called_a_gap(pretended):
    """Its objective less the minimum, so not the objective."""
    figure, place = pretended
    runs = finished(figure, place)
    for manifest in runs.collection.manifests:
        manifest["baselines"] = {"objective": {"zero model": 684.0}}
    runs.collection.trace.loc[:, "metric"] = "objective"
    assert trivial_predictions(runs)[0] == "Trivial predictions: zero model 684 (objective gap)."


def test_a_table_of_a_figure_stands_on_its_page(pretended):
    figure, place = pretended
    shown, runs = (
        replace(figure, table=lambda runs: [["runs", "seeds"], ["all", str(runs.seeds())]]),
        finished(figure, place),
    )
    text = page(Report(tiny_paper(shown), (Section(shown, (), runs),), (), quick=False))
    assert f"| runs | seeds |\n| --- | --- |\n| all | {runs.seeds()} |\n" in text


def test_the_noise_that_a_why_names_is_that_of_the_runs():
    def why(*changed):
        loaded = load("bellet2018-fig2a", overrides=changed, seeds=2)
        return noise_against_signal(Runs(pretended_collection(loaded)), "eps-0-15")

    shipped = why()
    assert " 10 updates " in shipped
    assert "composition by advanced_composition" in shipped
    scale = float(re.search(r"noise of scale (\S+) to", shipped)[1])
    more = why("protocols.eps-0-15.privacy.updates=20", "protocols.eps-0-15.privacy.budget.by=basic")
    assert " 20 updates " in more
    assert "composition by basic_composition" in more
    assert float(re.search(r"noise of scale (\S+) to", more)[1]) > scale


def test_protocols_whose_numbers_are_of_two_kinds_are_not_held_against_each_other():
    runs = Runs(pretended_collection(load("bellet2018-fig1", seeds=2)))
    for manifest in runs.collection.manifests:
        given = {"function": "Q", "scale": "unknown", "identity": manifest["protocol"]}
        manifest["measures"] = {"objective": given}
    with pytest.raises(InputError, match="not of one kind"):
        ahead(runs, "cd", "admm", "gap")
    assert len(ahead(runs, "cd", "admm", "accuracy")) == 2


def test_leads_are_paired_by_seed_and_not_by_place():
    """The second protocol's numbers come in another order of seeds: each lead is still that of one seed."""
    first, second = pd.Series({0: 1.0, 1: 2.0, 2: 4.0}), pd.Series({2: 3.0, 0: 0.5, 1: 1.75})

    class Given(Runs):
        def final(self, protocol, metric, statistic=None, *, point=None):
            return first if protocol == "first" else second

    runs = Given(pretended_collection(load("bellet2018-fig3", seeds=2)))
    assert dict(ahead(runs, "first", "second", "accuracy")) == {0: 0.5, 1: 0.25, 2: 1.0}
    assert dict(ahead(runs, "first", "second", "accuracy", higher_is_better=False)) == {0: -0.5, 1: -0.25, 2: -1.0}


def test_a_promise_is_that_of_the_worst_run():
    runs = Runs(pretended_collection(load("bellet2018-fig2a", seeds=2)))
    (found,) = promises(runs, ["eps-1-05"], at_least=lambda key: 0.5).numbers
    assert found.value == runs.final("eps-1-05", "epsilon_verified", "worst").max()
    assert found.value > runs.final("eps-1-05", "epsilon_verified", "worst").min()
    assert found.high == runs.final("eps-1-05", "epsilon_claimed", "worst").max()


def test_a_measured_number_is_a_mean_with_a_t_interval():
    """Of 1, 2, 3: t(.975, 2) / sqrt(3) = 4.302653 / 1.732051 (any table of Student's t)."""
    found = measured("x", [1.0, 2.0, 3.0], near=(2.5, 1.0))
    assert (found.value, found.low, found.high) == (2.0, 1.5, 3.5)
    assert found.half_width == pytest.approx(4.302653 / 1.732051, abs=1e-6)
    assert math.isnan(measured("x", [1.0], above=0).half_width)


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
    assert number_text(Number("x", value, half_width)) == text


def looked_at(paper, place):
    report, failures = judge_paper(paper, place, say=lambda _: None)
    assert failures == []
    return report


@pytest.fixture
def pretended(tmp_path):
    """A figure whose full runs are pretended, and its place."""
    figure, place = tiny_figure(), Place(tmp_path, quick=False)
    pretend(scenario_of(figure, quick=False), place.runs(figure))
    return figure, place


def test_a_page_is_computed_from_the_runs_files(pretended):
    figure, place = pretended
    text = write_page(looked_at(tiny_paper(figure), place), place).read_text()
    leads = [number(1, seed, 5, {}) - number(0, seed, 5, {}) for seed in range(5)]
    assert f"| Collaboration helps. | gain: {number_text(measured('', leads))} | > 0 | **holds** | " in text
    assert f"it is {np.mean(leads):.3f}" in text
    assert "25 runs, 5 seeds." in text
    assert "Runs by hushnet 0.0+pretended, commit unknown." in text
    for name in re.findall(r"!\[.*?\]\((.*?)\)", text):
        assert 0 < (place.pages / name).stat().st_size <= 60_000
        with Image.open(place.pages / name) as picture:
            assert picture.width == pytest.approx(RESOLUTION * 3.5, abs=1)
    assert write_page(looked_at(tiny_paper(figure), place), place).read_text() == text


def test_a_quick_page_says_so_and_gives_no_verdict(tmp_path):
    row = Row("It holds.", Finding((Number("x", 1.0, low=0.0),), "why"))
    section = Section(tiny_figure(), (row,))
    shown = {quick: page(Report(tiny_paper(), (section,), (row,), quick)) for quick in (False, True)}
    assert "**holds**" in shown[False]
    assert "verdict |" in shown[False]
    assert "quick" not in shown[False]
    assert shown[True].startswith("# Nobody: Nothing (quick runs)")
    assert "| It holds. | x: 1 | > 0 | why |" in shown[True]
    assert not any(verdict in shown[True] for verdict in ("**holds", "does not hold", "holds in part"))


def test_runs_of_a_changed_scenario_are_not_taken_for_the_figures(pretended):
    figure, place = pretended
    assert finished(figure, place) is not None
    pretend(load("bellet2018-fig3", overrides=["stop.updates=3"]), place.runs(figure))
    assert finished(figure, place) is None


def test_a_figure_without_its_data_is_not_run_and_its_rows_say_what_it_needs(tmp_path):
    figure, lines = tiny_figure(data="ml-100k"), []
    paper = tiny_paper(figure, tiny_figure("tiny-fig2", scenario="bellet2018-fig2a", quick=(*TINY, "figures=[]")))
    assert reproduce([paper], quick=True, results=tmp_path, data_dir=tmp_path / "none", say=lines.append) == []
    text = (tmp_path / "reproduction/tiny-quick.md").read_text()
    assert "| Collaboration helps. | not run: needs MovieLens-100K (unpack https://" in text
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
    from hushnet.simulator.reproduction import reproduce as module

    other = tiny_figure("tiny-fig2", scenario="bellet2018-fig2a", quick=(*TINY, "figures=[]"))
    papers, hired, used = [tiny_paper(tiny_figure(), other)], [], []

    def hiring(jobs):
        hired.append((jobs, hire(jobs)))
        return hired[-1][1]

    def performing(experiment, *, workers, on_run):
        used.append(workers)
        return perform(experiment, workers=workers, on_run=on_run)

    monkeypatch.setattr(module, "hire", hiring)
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
    from hushnet.simulator.reproduction import reproduce as module

    asked = []
    monkeypatch.setattr(module, "reproduce", lambda *_, jobs, **__: asked.append(jobs) or [])
    for jobs in ("3", "auto"):
        assert main(["reproduce", "--jobs", jobs]) == 0
    assert asked == [3, "auto"]
    assert main(["reproduce", "--jobs", "0"]) == 2
    assert "--jobs 0: must be a number from 1, or auto" in capsys.readouterr().err


def test_one_figures_failure_stops_no_other_and_is_named_at_the_end(tmp_path):
    broken = tiny_figure("tiny-fig0", quick=("task.agents=0",), scenario="bellet2018-fig2c")
    failures = reproduce([tiny_paper(broken, tiny_figure())], quick=True, results=tmp_path, say=lambda _: None)
    assert [(failure.figure, failure.exit_code) for failure in failures] == [("tiny-fig0", 2)]
    assert "task.agents=0: must be at least 1" in str(failures[0])
    text = (tmp_path / "reproduction/tiny-quick.md").read_text()
    assert "task.agents=0: must be at least 1" in text
    assert "gain: " in text


def test_an_unforeseen_error_in_one_figure_stops_no_other(tmp_path, monkeypatch):
    from hushnet.simulator.reproduction import reproduce as module

    def fail(experiment, workers, on_run):
        raise KeyError("surprise")

    monkeypatch.setattr(module, "perform", fail)
    (failure,) = reproduce([tiny_paper()], quick=True, results=tmp_path, say=lambda _: None)
    assert (failure.exit_code, str(failure)) == (1, "tiny-fig1: KeyError: 'surprise'")


def test_a_fault_in_one_claim_is_a_failure_of_its_figure_alone(pretended):
    figure, place = pretended
    claims = (Claim(figure.name, "A.", lambda runs: 1 / 0),)
    paper = Paper("tiny", "Nobody", 2000, "Nothing", "Nowhere", (), (figure,), claims)
    report, failures = judge_paper(paper, place, say=lambda _: None)
    assert [str(failure) for failure in failures] == ["tiny-fig1: ZeroDivisionError: division by zero"]
    assert "| A. | division by zero |" in page(report)


def test_a_row_that_cannot_be_measured_says_what_is_missing(pretended):
    figure, place = pretended
    claims = (Claim(figure.name, "A.", lambda runs: Finding((measured("x", runs.final("admm", "accuracy")),))),)
    paper = Paper("tiny", "Nobody", 2000, "Nothing", "Nowhere", (), (figure,), claims)
    assert "| A. | not measured: no finished run of admm recorded accuracy |" in page(looked_at(paper, place))


def test_full_runs_say_before_they_start_what_will_run_and_for_how_long(tmp_path, monkeypatch):
    from hushnet.simulator.reproduction import reproduce as module

    lines = []
    monkeypatch.setattr(module, "perform", lambda experiment, **_: lines.append("running") or [])
    reproduce([tiny_paper()], results=tmp_path, say=lines.append)
    before = lines[: lines.index("running")]
    assert before == [
        "tiny-fig1: 25 runs of bellet2018-fig3, about 30 s on 2 cores",
        "in all about 30 s; what is complete is not run again",
    ]


def test_runs_that_two_figures_share_are_counted_once(tmp_path, monkeypatch):
    from hushnet.simulator.reproduction import reproduce as module

    lines = []
    monkeypatch.setattr(module, "perform", lambda experiment, **_: lines.append("running") or [])
    figures = tiny_figure(), tiny_figure("tiny-fig2"), tiny_figure("tiny-fig3", seeds=10)
    reproduce([tiny_paper(*figures)], results=tmp_path, say=lines.append)
    assert lines[: lines.index("running")] == [
        "tiny-fig1: 25 runs of bellet2018-fig3, about 30 s on 2 cores",
        "tiny-fig2: the same runs of bellet2018-fig3",
        "tiny-fig3: 50 runs of bellet2018-fig3, about 60 s on 2 cores",
        "in all about 2 min; what is complete is not run again",
    ]


def test_long_runs_give_signs_of_life(tmp_path, monkeypatch):
    from hushnet.simulator.reproduction import reproduce as module

    lines = []
    monkeypatch.setattr(module, "REPORT_INTERVAL", 0.0)
    monkeypatch.setattr(module, "perform", lambda *_, on_run, **__: on_run() or on_run() or [])
    reproduce([tiny_paper()], quick=True, results=tmp_path, say=lines.append)
    assert lines[1:3] == ["tiny-fig1: run 1 of 4", "tiny-fig1: run 2 of 4"]


def test_values_are_found_along_an_axis():
    runs = Runs(pretended_collection(load("bellet2018-fig3")))
    assert list(runs.at(250, "cd", "accuracy", "activations")) == [number(1, seed, 2, {}) for seed in range(5)]
    assert runs.first(number(1, 0, 3, {}), "cd", "accuracy", "vectors")[0] == 3000
    assert np.isinf(runs.first(2.0, "cd", "accuracy", "vectors")).all()
    assert runs.common_end(["cd", "local"], "accuracy", "activations") == 500
    assert runs.lowest("cd", "accuracy", "activations") == 0
    sizes = runs.by_size("cd", "accuracy")
    assert (sizes["small"] > sizes["large"]).all()
    with pytest.raises(InputError, match="does not sweep"):
        runs.values("task.dimension")


def test_a_value_that_depends_on_the_grid_needs_its_point():
    runs = Runs(pretended_collection(load("bellet2018-fig2c")))
    with pytest.raises(InputError, match=r"accuracy of cd depends on task\.dimension"):
        runs.final("cd", "accuracy")
    point = {"task.dimension": 50}
    assert runs.final("cd", "accuracy", point=point)[0] == pytest.approx(number(1, 0, 5, point))


def test_names_mean_everything_a_paper_or_a_figure():
    known = papers()
    assert [paper for paper, _ in select(known, None)] == list(known)
    assert select(known, "bellet2018") == [(known[0], known[0].figures)]
    assert select(known, "bellet2018-fig2a")[0][1][0].title == "Figure 2a"


def test_an_unknown_name_is_one_sentence_with_the_nearest(capsys):
    assert main(["reproduce", "belet2018"]) == 2
    said = capsys.readouterr().err
    assert said.startswith("unknown paper or figure 'belet2018'; did you mean 'bellet2018'? admissible: bellet2018, ")
    assert said.count("\n") == 1


def test_the_shells_exit_code_is_that_of_the_worst_figure(tmp_path, monkeypatch, capsys):
    from hushnet.simulator.reproduction import papers as registry

    paper = tiny_paper(tiny_figure("tiny-fig0", quick=("task.agents=0",)))
    monkeypatch.setattr(registry, "papers", lambda: (paper,))
    assert main(["reproduce", "--quick", "--results", str(tmp_path)]) == 2
    assert capsys.readouterr().err.startswith("tiny-fig0: ")


def test_names_are_unique_and_claims_are_about_figures_of_their_paper():
    names = [figure.name for _, figure in FIGURES] + [paper.name for paper in papers()]
    assert len(set(names)) == len(names)
    for paper in papers():
        own = {figure.name for figure in paper.figures}
        assert all(name.startswith(f"{paper.name}-") for name in own)
        assert {claim.figure for claim in paper.claims} == own


@pytest.mark.parametrize(("paper", "figure"), FIGURES, ids=[figure.name for _, figure in FIGURES])
def test_every_figure_has_a_shipped_scenario_whose_records_decide_all_its_claims(paper, figure):
    """With pretended numbers, full and quick: nothing that a claim needs is missing from the scenario."""
    sizes = []
    for quick in (False, True):
        loaded = scenario_of(figure, quick=quick)
        sizes.append(len(loaded.points) * len(loaded.scenario.seed_pairs()))
        few = load(figure.scenario, overrides=figure.quick if quick else (), seeds=2)
        runs = PretendedRuns(pretended_collection(few))
        for claim in paper.claims_about(figure):
            assert claim.check(runs).numbers, claim.text
    assert sizes[1] <= sizes[0]


@pytest.mark.parametrize("figure", [figure for _, figure in FIGURES], ids=[figure.name for _, figure in FIGURES])
def test_every_scenario_states_its_run_time(figure):
    assert expected_seconds(figure) > 0


def test_the_expected_time_follows_the_number_of_seeds():
    assert expected_seconds(tiny_figure()) == 30
    assert expected_seconds(tiny_figure(seeds=50)) == 300


@pytest.mark.parametrize(
    "statement", [s for paper in papers() for s in paper.statements], ids=lambda s: s.place.replace(" ", "-")
)
def test_every_printed_statement_is_decided(statement: Statement):
    found = statement.check()
    assert found.numbers
    assert found.why


def test_the_record_before_a_first_hit_is_known():
    runs = Runs(pretended_collection(load("bellet2018-fig3")))
    level = number(1, 0, 3, {})
    assert runs.first(level, "cd", "accuracy", "vectors")[0] == 3000
    assert runs.before_first(level, "cd", "accuracy", "vectors")[0] == 2000
    assert runs.before_first(level, "cd", "accuracy", "vectors_with_start")[0] == 2060
    assert runs.before_first(0.0, "cd", "accuracy", "vectors")[0] == 0
    assert np.isinf(runs.before_first(2.0, "cd", "accuracy", "vectors")).all()


def test_communications_are_judged_in_both_countings():
    claims = {claim.check.__name__: claim for claim in papers()[1].claims}
    for name in ("almost_as_good", "as_good_as_synchronous", "propagation_is_faster", "linear_in_agents"):
        claim = claims[name]
        loaded = load(next(f.scenario for f in papers()[1].figures if f.name == claim.figure), seeds=2)
        names = [number.name for number in claim.check(Runs(pretended_collection(loaded))).numbers]
        counted = [each for each in names if each.endswith(", with those before the start")]
        assert len(counted) == len(names) / 2
