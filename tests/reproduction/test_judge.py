"""The judge leaves open what numbers leave open, and is not to be won over by an unfair comparison."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hushnet.agents.errors import InputError
from hushnet.simulator.language.loading import load
from hushnet.simulator.reproduction.findings import judged
from hushnet.simulator.reproduction.judge import FEWEST, MOST, Finding, Number, measured
from hushnet.simulator.reproduction.pages import Report, Section, number_text, page, row_of
from hushnet.simulator.reproduction.papers import Claim, Paper, PaperFigure, read_paper
from hushnet.simulator.reproduction.reproduction_runs import Runs, jackknife
from scipy.stats import t as student

from .pretend import pretended_collection


@pytest.mark.parametrize(
    ("value", "half_width", "low", "high", "verdict"),
    [
        (1.0, 0.5, 0.0, math.inf, "holds"),
        (1.0, 1.5, 0.0, math.inf, "undecided"),
        (-1.0, 5.0, 0.0, math.inf, "undecided"),
        (-1.0, 0.5, 0.0, math.inf, "does not hold"),
        (0.0, 0.1, 0.0, math.inf, "undecided"),
        (1.0, math.nan, 0.0, math.inf, "undecided"),
        (0.95, 0.01, 0.93, 0.97, "holds"),
        (0.95, 0.03, 0.93, 0.97, "undecided"),
        (0.90, 0.01, 0.93, 0.97, "does not hold"),
        (0.90, 0.04, 0.93, 0.97, "undecided"),
    ],
)
def test_a_number_is_decided_by_its_whole_interval(value, half_width, low, high, verdict):
    assert Number("x", value, half_width, 9, low, high).verdict == verdict


@pytest.mark.parametrize(("value", "verdict"), [(1.0, "holds"), (0.0, "does not hold"), (math.inf, "holds")])
def test_what_nothing_random_enters_is_decided_by_itself(value, verdict):
    assert Number("x", value, low=0.0, high=math.inf).verdict == ("does not hold" if math.isinf(value) else verdict)


def test_below_five_seeds_a_number_is_undecided():
    verdicts = [measured("x", [1.0 + 0.01 * k for k in range(n)], low=0.0).verdict for n in range(1, 7)]
    assert verdicts == ["undecided"] * (FEWEST - 1) + ["holds"] * (7 - FEWEST)


def test_a_measured_number_is_a_mean_with_a_t_interval():
    """Of 1, 2, 3: t(.975, 2) / sqrt(3) = 4.302653 / 1.732051 (any table of Student's t)."""
    found = measured("x", [1.0, 2.0, 3.0])
    assert (found.value, found.seeds) == (2.0, 3)
    assert found.half_width == pytest.approx(4.302653 / 1.732051, abs=1e-6)
    assert math.isnan(measured("x", [1.0]).half_width)
    assert measured("x", [math.nan, math.nan], low=0.0).verdict == "undecided"


def test_the_seeds_that_would_decide_are_the_fewest_whose_interval_leaves_the_margins_ends():
    """Mean .2 and deviation 1 of 10 runs, above 0: the smallest n with t(.975, n - 1) / sqrt(n) < .2 is 99."""
    half = float(student.ppf(0.975, 9)) / math.sqrt(10)
    needed = Number("x", 0.2, half, 10, low=0.0).needed
    assert float(student.ppf(0.975, needed - 1)) / math.sqrt(needed) < 0.2
    assert float(student.ppf(0.975, needed - 2)) / math.sqrt(needed - 1) >= 0.2
    assert Number("x", 0.0001, half, 10, low=0.0).needed is None
    assert Number("x", 5.0, math.nan, 1, low=0.0).needed == FEWEST
    said = Finding((Number("x", 0.2, half, 10, low=0.0), Number("y", 9.0, half, 10, low=0.0))).reasons
    assert said == [f"Undecided by 10: about {needed} seeds would decide."]
    far = Finding((Number("x", 0.0001, half, 10, low=0.0),)).reasons
    assert far == [f"Undecided by 10: more than {MOST:,} seeds would decide."]


GOOD, BAD, OPEN = Number("a", 1.0, low=0.0), Number("b", -1.0, low=0.0), Number("c", 1.0, 1.5, 9, low=0.0)


@pytest.mark.parametrize("kind", ["for all", "ordering"])
def test_one_violated_number_refutes_what_says_something_of_all(kind):
    found = Finding((GOOD, BAD, OPEN), kind)
    assert (found.verdict, found.said) == ("does not hold", "does not hold (1 of 3 hold)")
    assert Finding((GOOD, OPEN), kind).verdict == "undecided"
    assert Finding((GOOD, GOOD), kind).said == "holds"


@pytest.mark.parametrize(
    ("numbers", "verdict"),
    [
        ((GOOD, BAD), "in part"),
        ((GOOD, BAD, OPEN), "in part"),
        ((GOOD, OPEN), "undecided"),
        ((BAD, OPEN), "undecided"),
        ((BAD, BAD), "does not hold"),
    ],
)
def test_of_several_parts_some_may_hold(numbers, verdict):
    """A verdict is given once it is the same however the undecided numbers come out."""
    assert Finding(numbers, "all of these parts").verdict == verdict


def test_one_setting_of_which_all_numbers_hold_suffices_where_there_is_said_to_be_one():
    def of(setting, *numbers):
        return tuple(replace(number, setting=setting) for number in numbers)

    kind = "exists a setting"
    assert Finding(of("q = 1", GOOD, BAD) + of("q = 2", GOOD, GOOD), kind).verdict == "holds"
    assert Finding(of("q = 1", GOOD, BAD) + of("q = 2", BAD, GOOD), kind).verdict == "does not hold"
    assert Finding(of("q = 1", BAD) + of("q = 2", OPEN), kind).verdict == "undecided"
    unfair = replace(GOOD, unfair="one side tuned")
    assert Finding(of("q = 1", GOOD, unfair) + of("q = 2", BAD), kind).verdict == "does not hold"
    assert Finding(of("q = 1", GOOD, unfair), kind).verdict == "untuned"


def test_readings_that_decide_differently_make_a_claim_depend_on_the_words_that_differ():
    def of(reading, number):
        return replace(number, reading=reading)

    words = {"one": "noise is the same", "two": "perturbation is the same"}
    found = Finding((of("one", BAD), of("two", GOOD)), words=words)
    assert found.verdict == "depends on the reading"
    assert found.said == (
        "depends on the reading: does not hold if noise is the same; holds if perturbation is the same"
    )
    assert Finding((of("one", GOOD), of("two", GOOD)), words=words).verdict == "holds"
    assert Finding((of("one", GOOD), of("two", OPEN)), words=words).verdict == "undecided"


def test_a_claim_of_privacy_is_proved_refuted_or_neither():
    proved, open_, refuted = (
        Number("epsilon", value, high=1.0, claimed=True, at_least=low) for value, low in ((0.9, 0), (3, 0.5), (3, 2))
    )
    assert [number.verdict for number in (proved, open_, refuted)] == ["proved", "not proved", "refuted"]
    assert Finding((proved, proved)).verdict == "proved"
    assert Finding((proved, open_)).verdict == "not proved"
    assert Finding((proved, open_, refuted)).said == "refuted (1 of 3 proved)"


@pytest.mark.parametrize(
    ("value", "half_width", "seeds", "word"),
    [(0.8, 0.1, 5, "proved"), (0.8, 0.1, 4, "undecided"), (0.8, 0.3, 5, "undecided"), (1.2, 0.1, 5, "not proved")],
)
def test_a_claim_about_a_mean_over_runs_goes_by_its_interval(value, half_width, seeds, word):
    number = Number("mu^2", value, half_width, seeds, high=1.0, claimed=True)
    assert (number.verdict, number_text(number)) == (word, f"{value:.2f} ± {half_width:.2f}")


def test_the_jackknife_of_a_mean_is_the_values_themselves():
    values = measured("", [1.0, 4.0, 2.0]), np.array([1.0, 4.0, 2.0])
    import pandas as pd

    found = jackknife(lambda rows: float(rows.mean()), pd.Series(values[1]))
    assert found.to_numpy() == pytest.approx(values[1])
    assert measured("", found) == values[0]


# Unfairness, planted.


def paper_of(*claims, figures=("bellet2018-fig3",), **fields):
    shown = [PaperFigure(name=f"f{k}", title=f"Figure {k}", shows="x.", of=name) for k, name in enumerate(figures)]
    head = {"name": "p", "authors": "Nobody", "year": 2000, "title": "Nothing", "venue": "Nowhere"}
    return Paper(**head, figures=shown, claims=list(claims), **fields)


def comparison(**fields):
    number = {"name": "lead of cd", "value": "lead('cd', 'local', 'accuracy')", "above": -9.0, **fields}
    return Claim.model_validate({"says": "CD is better.", "on": ["f0"], "numbers": [number]})


def runs_with(tuning, seeds=6):
    collection = pretended_collection(load("bellet2018-fig3", seeds=seeds))
    collection.index["tuning"] = tuning
    return Runs(collection)


ONE_SIDE = {"chosen": [{"protocol": "cd", "values": {"mu": 1.0}}], "trials": 8, "decided_by": "accuracy mean"}
BOTH = ONE_SIDE | {"chosen": [*ONE_SIDE["chosen"], {"protocol": "local", "values": {"x": 2.0}}]}


def test_one_side_tuned_judges_nothing():
    found = judged(paper_of(), comparison(), runs_with(ONE_SIDE))
    assert (found.verdict, found.reasons) == ("untuned", ["Untuned: cd had 8 trials, local had no trials."])
    assert judged(paper_of(), comparison(), runs_with(BOTH)).verdict == "holds"
    assert judged(paper_of(), comparison(), runs_with(None)).verdict == "holds"
    assert judged(paper_of(untunable=["local"]), comparison(), runs_with(ONE_SIDE)).verdict == "holds"


def test_both_sides_tuned_by_their_ends_are_not_judged_on_the_way():
    along = comparison(value="lead_at(300, 'cd', 'local', 'accuracy', 'activations')")
    found = judged(paper_of(), along, runs_with(BOTH))
    assert found.verdict == "untuned"
    assert found.reasons == ["Untuned: tuned by accuracy mean at the end of trials, and judged on the way."]
    whole = BOTH | {"decided_by": "accuracy mean over the run"}
    assert judged(paper_of(), along, runs_with(whole)).verdict == "holds"


def test_a_stand_in_does_not_decide_where_there_is_a_row_of_the_papers_size():
    """The stand-in's row fails, and the paper's holds; the page says who decides."""
    claim = comparison().model_copy(update={"on": ["f1", "f0"]})
    paper = paper_of(claim, figures=("bellet2018-fig3", "bellet2018-fig3"))
    good, bad = runs_with(None), runs_with(None)
    trace = bad.collection.trace
    trace.loc[trace["protocol"] == "cd", "value"] -= 99.0
    rows = {"f0": row_of(paper, claim, bad), "f1": row_of(paper, claim, good)}
    sections = tuple(Section(figure, (rows[figure.name],)) for figure in paper.figures)
    report = Report(paper, sections, (), quick=False)
    assert [rows[name].finding.verdict for name in ("f0", "f1")] == ["does not hold", "holds"]
    assert report.count() == {"holds": 1}
    assert "| does not hold | Figure 1 is nearer to the paper: it decides. |" in page(report)
    alone = Report(paper, (sections[0], Section(paper.figures[1], (row_of(paper, claim, None),))), (), quick=False)
    assert alone.deciding[claim.says][0] == "f0"
    assert "A stand-in decides, as Figure 1 was not run." in page(alone)
    assert alone.in_short()[1] == "- **Does not hold** (1): CD is better. (Of a stand-in for the paper's size.)"


def test_a_mean_outside_with_its_interval_across_refutes_nothing():
    """Zhang et al., figure 2b: -.0014 with a half-width of .0015."""
    assert Finding((Number("lead", -0.0014, 0.0015, 10, low=0.0),)).verdict == "undecided"


def written(tmp_path, claim):
    path = tmp_path / "p.yaml"
    path.write_text(
        "name: p\nauthors: A\nyear: 2000\ntitle: T\nvenue: V\n"
        "readings: {noise: {alpha: alpha is the same, overall: alpha over eta is the same}}\n"
        "figures: [{name: f, title: F, shows: S, of: bellet2018-fig3}]\nclaims:\n" + claim
    )
    return path


CLAIM = "  - {says: A., on: [f], numbers: [{name: n, value: '1'}]%s}\n"


@pytest.mark.parametrize(
    ("claim", "says"),
    [
        (CLAIM % ", why: ['It is large enough.']", "is typed; compute something in braces"),
        (CLAIM % ", why: ['It is 0.3, not {number}.']", "a number is typed in"),
        (CLAIM % ", why: [{when: '1 < 2', say: About 7.}]", "a number is typed in"),
        (CLAIM.replace("value: '1'", "value: '1', reading: alpha") % ", readings: noise", "reading 'overall', which"),
        (CLAIM % ", readings: noise", "reading '' is none of the paper's"),
        (CLAIM % ", readings: nose", "the paper has no readings of 'nose'"),
        (CLAIM.replace("value: '1'", "value: '1', reading: beta") % "", "reading 'beta' is none of the paper's"),
        (CLAIM.replace("on: [f]", "on: [g]") % "", "there is no figure 'g'"),
        ((CLAIM % "") * 2, "says what another claim says"),
        (CLAIM % ", kind: sometimes", ".kind = 'sometimes': is not admissible; admissible: for all, "),
        (CLAIM % ", color: red", ".color: unknown field 'color'; admissible: says, "),
    ],
    ids=["typed", "digits", "said-if", "left-out", "both", "no-such", "none", "figure", "twice", "kind", "field"],
)
def test_a_typed_why_a_reading_left_out_and_other_mistakes_are_one_sentence_at_their_line(tmp_path, claim, says):
    with pytest.raises(InputError) as caught:
        read_paper(written(tmp_path, claim))
    assert says in str(caught.value)
    assert str(caught.value).startswith(str(tmp_path / "p.yaml") + ":")
    assert "\n" not in str(caught.value)


def test_a_why_may_be_said_only_if_numbers_are_so(tmp_path):
    claim = CLAIM % ", why: ['There are {count(\"does not hold\")}.', {when: count('holds') > 0, say: Good.}]"
    claim = claim.replace("value: '1'", "value: '1', random: false, below: %s")
    paper = [read_paper(written(tmp_path, claim % bound)) for bound in ("2", "0")]
    assert [judged(each, each.claims[0]).why for each in paper] == ["There are 0. Good.", "There are 1."]


def test_what_is_said_to_have_nothing_random_must_be_the_same_in_all_runs():
    still = comparison(random=False)
    with pytest.raises(InputError, match="lead of cd differs from run to run, and is said to have nothing random"):
        judged(paper_of(), still, runs_with(None))
    whole = comparison(value="mean(lead('cd', 'local', 'accuracy'))")
    with pytest.raises(InputError, match="is one value of all runs; give one by run, or say `random: false`"):
        judged(paper_of(), whole, runs_with(None))
