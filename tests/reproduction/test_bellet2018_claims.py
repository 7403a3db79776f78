"""Claims about Bellet et al. 2018 on numbers that are given: which of them are compared, and how they decide."""

from __future__ import annotations

import pandas as pd
import pytest
from hushnet.protocols.privacy.budget import Privacy
from hushnet.simulator.language.loading import load
from hushnet.simulator.reproduction import bellet2018_claims, bellet2018_statements, bellet2018_table1
from hushnet.simulator.reproduction.pages import judged
from hushnet.simulator.reproduction.runs import Runs

from .pretend import pretended_collection

SEEDS = (0, 1, 2)


class GivenRuns:
    """Runs whose final numbers are given: by ``finals(key, point)`` and ``sizes[key]``, the same for three seeds."""

    def __init__(self, **given):
        self.given = given

    def values(self, name):
        return list(self.given["counts"][name])

    def final(self, key, metric, point=None):
        return pd.Series(self.given["finals"](key, point or {}), index=SEEDS, dtype=float)

    def by_size(self, key, metric):
        small, large = self.given["sizes"][key]
        return pd.DataFrame({"small": small, "large": large}, index=SEEDS, dtype=float)


@pytest.mark.parametrize(
    ("objectives", "verdicts"),
    [
        ({1: 5.0, 2: 3.0, 20: 9.0}, ["holds", "holds"]),
        ({1: 3.0, 2: 5.0, 20: 9.0}, ["does not hold", "holds"]),
        ({1: 9.0, 2: 5.0, 20: 3.0}, ["holds", "does not hold"]),
    ],
    ids=["valley", "rises", "falls"],
)
def test_a_trade_off_over_updates_needs_a_fall_and_a_rise(monkeypatch, objectives, verdicts):
    monkeypatch.setattr(bellet2018_claims, "noise_against_signal", lambda runs, key: "")
    claim = bellet2018_claims.trade_off("eps-1-05")
    runs = GivenRuns(counts={"T": objectives}, finals=lambda key, point: objectives[point["T"]])
    finding = judged(claim.text, lambda: claim.check(runs), claim.kind).finding
    assert [number.verdict for number in finding.numbers] == verdicts
    assert finding.verdict == ("holds" if verdicts == ["holds", "holds"] else "does not hold")


def test_to_lose_less_than_others_is_no_gain():
    """Little data: .6 to .5. Much data: .7 to .4. The loss is smaller, and nobody gains."""
    sizes = dict.fromkeys(bellet2018_claims.REGIMES, (0.5, 0.4)) | {"local": (0.6, 0.7)}
    finding = bellet2018_claims.small_gain_most(GivenRuns(sizes=sizes))
    gains, differences = finding.numbers[::2], finding.numbers[1::2]
    assert {number.verdict for number in gains} == {"does not hold"}
    assert {number.verdict for number in differences} == {"holds"}
    assert judged("Gains.", lambda: finding, "for all").finding.verdict == "does not hold"


def test_gains_of_little_data_are_held_against_those_of_much():
    sizes = dict.fromkeys(bellet2018_claims.REGIMES, (0.8, 0.8)) | {"local": (0.6, 0.7)}
    sizes["eps-0-15"] = (0.65, 0.8)
    numbers = bellet2018_claims.small_gain_most(GivenRuns(sizes=sizes)).numbers
    assert [number.verdict for number in numbers[1::2]] == ["holds", "holds", "holds", "holds", "does not hold"]
    assert {number.verdict for number in numbers[::2]} == {"holds"}
    assert (numbers[0].value, numbers[1].value) == (pytest.approx(0.2), pytest.approx(0.1))


def test_a_reading_of_table_1_must_give_both_of_its_errors(monkeypatch):
    """Two readings with one right error each are no reading that gives both."""
    monkeypatch.setattr(bellet2018_table1, "users_mean", lambda runs: "the user's mean")
    grid = {"task.als_regularisation": (0.01, 0.2), "task.feature_scaling": ("none",)}
    printed = bellet2018_table1.PRINTED_RMSE
    claim = next(claim for claim in bellet2018_table1.CLAIMS if claim.figure == "bellet2018-table1-readings")

    def verdict(right):
        def finals(key, point):
            return printed[key] + (0.0 if (key, point["task.als_regularisation"]) in right else 0.2)

        runs = GivenRuns(counts=grid, finals=finals)
        return judged(claim.text, lambda: claim.check(runs), claim.kind).finding.verdict

    assert verdict({("local", 0.01), ("cd", 0.2)}) == "does not hold"
    assert verdict({("local", 0.01), ("cd", 0.01)}) == "holds"


def test_proposition_1_is_reached_where_agents_are_alike_and_remark_4_fails_for_large_epsilons():
    """Two agents with L_i = 1 + a shrink by exactly C; the printed Gaussian noise is as strong as it says or not."""
    rate = {number.name: number.value for number in bellet2018_statements.proposition_1().numbers}
    assert all(0.5 < value <= 1 + 1e-12 for value in rate.values())
    found = bellet2018_statements.remark_4()
    epsilons = [number.value for number in found.numbers]
    assert epsilons[0] < 1
    assert epsilons[1] > 10
    assert epsilons[2] > 100
    assert epsilons[3] < epsilons[0] / 100
    assert judged("remark 4", lambda: found).finding.verdict == "refuted"


@pytest.mark.parametrize(
    ("found", "verdict"), [({3: 0.95, 30: 1.2}, "holds"), ({3: 1.0, 30: 1.2}, "does not hold")], ids=["one", "none"]
)
def test_a_private_row_of_table_1_needs_one_number_of_updates_that_gives_it(monkeypatch, found, verdict):
    monkeypatch.setattr(bellet2018_table1, "users_mean", lambda runs: "the user's mean")
    monkeypatch.setattr(bellet2018_table1, "noise_of_row", lambda runs, key: "")
    claim = bellet2018_table1.private_row("eps-1")
    grid = {"reading": ("task default", "printed local error"), "T": tuple(found)}

    def finals(key, point):
        return found[point["T"]] + (0.3 if point["reading"] == "task default" else 0.0)

    runs = GivenRuns(counts=grid, finals=finals)
    finding = judged(claim.text, lambda: claim.check(runs), claim.kind).finding
    assert finding.verdict == verdict
    assert len(finding.numbers) == 2
    assert f"{min(found.values()):.4f} (printed local error, T = 3)" in finding.why
    assert "chosen on these very seeds" in finding.why
    assert "each row of the table by itself" in finding.why


def test_noise_of_a_private_row_falls_with_the_rows_and_grows_with_the_updates():
    """One update at epsilon 1: 2 C / (m epsilon), the scale of a mean's Laplace noise."""

    def privacy(updates):
        budget = {"epsilon": 1.0, "delta": 0.006737946999085467, "by": "advanced_composition"}
        given = {"mechanism": "laplace", "budget": budget, "updates": updates, "sensitivity": "clip", "clip": 10.0}
        return Privacy.model_validate(given)

    assert bellet2018_table1.noise_scale(privacy(1), 50) == pytest.approx(2 * 10 / 50, rel=1e-6)
    assert bellet2018_table1.noise_scale(privacy(1), 100) == pytest.approx(2 * 10 / 100, rel=1e-6)
    assert bellet2018_table1.noise_scale(privacy(100), 50) > 5 * bellet2018_table1.noise_scale(privacy(1), 50)


def test_the_counterfactual_names_the_divisor_that_its_runs_have():
    def found(*changed):
        loaded = load("bellet2018-fig2a-updates", overrides=changed, seeds=2)
        return bellet2018_claims.noise_that_would_do(Runs(pretended_collection(loaded)))

    assert all("noise divided by 55," in number.name for number in found().numbers)
    assert "of a budget of 1.05 is divided by 55, the middle of 10 to 100 points," in found().why
    changed = found("protocols.by-m.privacy.lipschitz=0.05", "task.samples=[10, 30]")
    assert all("noise divided by 20," in number.name for number in changed.numbers)
    assert "divided by 20, the middle of 10 to 30 points," in changed.why


def test_only_budgets_that_the_paper_has_are_held_against_printed_accuracies():
    runs = Runs(pretended_collection(load("bellet2018-fig2a-updates", seeds=2)))
    assert "like the printed ones" in bellet2018_claims.noise_against_signal(runs, "eps-0-15")
    assert "like the printed ones" not in bellet2018_claims.noise_against_signal(runs, "eps-20")


def test_a_warm_start_is_judged_beside_what_all_three_come_to():
    runs = Runs(pretended_collection(load("bellet2018-fig2b", seeds=2)))
    why = bellet2018_claims.warm_start("warm-20", 20.0).check(runs).why
    ends = [float(runs.final(key, "accuracy").mean()) for key in ("warm-20", "cold-20", "local")]
    warm, cold, local = (f"{end:.3f}" for end in ends)
    assert f"accuracy is {warm} from the warm start, {cold} from the constant one and {local} of local models" in why


def test_errors_over_readings_and_updates_stand_in_a_table_with_the_users_mean():
    loaded = load("bellet2018-movielens-updates", seeds=2)
    collection = pretended_collection(loaded)
    for manifest in collection.manifests:
        manifest["baselines"] = {"rmse": {"user's mean": 1.0138}}
    runs = Runs(collection)
    header, *rows = bellet2018_table1.errors_over_updates(runs)
    counts = runs.values("T")
    assert header == ["budget", "reading", *(f"T = {count}" for count in counts), "printed"]
    assert len(rows) == 3 * len(runs.values("reading")) + 1
    first = runs.final("eps-1", "rmse", point={"reading": runs.values("reading")[0], "T": counts[0]}).mean()
    assert rows[0][:3] == ["1", runs.values("reading")[0], f"{first:.4f}"]
    assert rows[0][-1] == "0.9527"
    assert rows[-1] == ["none", "user's mean", *["1.0138"] * len(counts), ""]
