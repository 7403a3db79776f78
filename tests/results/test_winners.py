"""Who wins where: every protocol against every other, certain or not, and why not."""

from __future__ import annotations

import numpy as np
import pytest
from hushnet.simulator.analysis.results import load_all
from hushnet.simulator.compare.winners import standings
from hushnet.simulator.storage.store import Store

from ..report.made import LABELS, make_run


def results(folder, worth, *, seeds=6, grid=({},), labels=None):
    """Runs whose final accuracy is ``worth(protocol, seed, point)``, by ``labels``; those there are kept."""
    store = Store(folder).claimed()
    names, points = [], []
    for rank, point in enumerate(grid):
        for seed in range(seeds):
            for protocol in labels or ("local", "cd", "cd_eps"):
                names.append(f"{rank:08x}{seed:04x}{[*LABELS].index(protocol):04x}")
                points.append(point)
                if (folder / names[-1]).exists():
                    continue
                made = make_run(protocol, seed, grid=point, privacy=None)
                last = (made.trace["metric"] == "accuracy") & (made.trace["time"] == made.trace["time"].max())
                made.trace.loc[last, "value"] = worth(protocol, seed, point)
                store.save(names[-1], made)
    shown = {key: LABELS[key] for key in labels or LABELS}
    store.write_index(scenario="made", runs=names, grids=points, figures=[], labels=shown)
    return load_all(folder)


def noisy(means, scale=0.01):
    rng = np.random.default_rng(5)
    draws = {}

    def worth(protocol, seed, point):
        key = (protocol, seed, repr(point))
        draws.setdefault(key, rng.normal(0, scale))
        return means(protocol, point) + draws[key]

    return worth


def accuracy(collection):
    return next(found for found in standings(collection, 9) if found.measure == "accuracy")


@pytest.mark.parametrize("seeds", [2, 6, 24])
def test_the_order_of_the_protocols_decides_nothing(seeds, tmp_path):
    worth = noisy(lambda p, _: {"local": 0.5, "cd": 0.512, "cd_eps": 0.53}[p])
    said = []
    for labels in (("local", "cd", "cd_eps"), ("cd_eps", "local", "cd"), ("cd", "cd_eps", "local")):
        (place,) = accuracy(results(tmp_path, worth, seeds=seeds, labels=labels)).places
        duels = {frozenset((d.one, d.other)): (d.ahead, d.cause, d.n, round(d.p, 10)) for d in place.duels}
        said.append((place.winner, frozenset(place.leaders), duels, place.means))
    assert all(each == said[0] for each in said)


def test_each_way_of_being_open_has_its_own_name(tmp_path):
    same = results(tmp_path / "same", lambda p, *_: {"local": 0.5, "cd": 0.6}[p], labels=("local", "cd"))
    assert accuracy(same).places[0].causes == ("nothing to test",)
    alone = results(tmp_path / "alone", lambda p, *_: {"local": 0.5, "cd": 0.6}[p], labels=("local", "cd"), seeds=1)
    assert accuracy(alone).places[0].causes == ("too few pairs",)
    level = results(tmp_path / "level", noisy(lambda *_: 0.5), labels=("local", "cd"))
    assert accuracy(level).places[0].causes == ("open",)


def measured(folder, quantities, *, seeds=6):
    """Runs of two protocols whose objective gaps lie far apart, and measure what is given."""
    store = Store(folder).claimed()
    names, rng = [], np.random.default_rng(2)
    for seed in range(seeds):
        for protocol, quantity in quantities.items():
            made = make_run(protocol, seed, privacy=None)
            made.manifest["measures"] = {} if quantity is None else {"objective": quantity}
            own = made.trace["metric"] == "objective"
            made.trace.loc[own, "value"] *= rng.normal(1, 0.01)
            store.save(f"{len(names):016x}", made)
            names.append(f"{len(names):016x}")
    labels = {key: LABELS[key] for key in quantities}
    store.write_index(scenario="made", runs=names, grids=[{}] * len(names), figures=[], labels=labels)
    return load_all(folder)


MEAN = {"function": "Q", "scale": "mean over agents", "identity": "one for all"}
ANOTHER = {"function": "R", "scale": "mean over agents", "identity": "another"}


@pytest.mark.parametrize(
    ("theirs", "cause"),
    [
        (MEAN, ""),
        (None, "kinds unknown"),
        (ANOTHER, "not of one kind"),
    ],
)
def test_nobody_is_ahead_by_numbers_that_are_not_known_to_be_of_one_kind(tmp_path, theirs, cause):
    collection = measured(tmp_path, {"local": MEAN, "cd": theirs})
    found = {each.measure: each for each in standings(collection, 9) if each.measure.startswith("objective")}
    duels = [duel for each in found.values() for place in each.places for duel in place.duels]
    assert duels
    if not cause:
        assert [duel.ahead for duel in duels] == ["cd"] * len(duels)
    else:
        assert all(not duel.ahead and duel.cause == cause for duel in duels), duels
        assert not any(place.winner for each in found.values() for place in each.places)
