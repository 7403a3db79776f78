"""Rules that deal rows: every row once, as skewed as their papers say; digits, and tables of several classes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hushnet.agents.errors import InputError
from hushnet.agents.tables import Table
from hushnet.agents.tasks import TASKS
from hushnet.agents.tasks.digits import read_digits
from hushnet.agents.tasks.partition import Partition
from hushnet.agents.tasks.splits import Dealt, SplitParameters, split_notes
from pydantic import TypeAdapter, ValidationError

AGENTS, ROWS = 10, 1000
SKEWS = {
    "even": ({"kind": "even"}, "iid"),
    "dirichlet, nearly even": ({"kind": "dirichlet", "concentration": 1e4}, "iid"),
    "dirichlet": ({"kind": "dirichlet", "concentration": 0.3}, "labels"),
    "shards": ({"kind": "shards", "shards": 2}, "labels"),
    "quantity": ({"kind": "quantity", "concentration": 0.5}, "sizes"),
    "by_feature": ({"kind": "by_feature", "feature": "b"}, "feature"),
}


def rows_of(seed=0):
    rng = np.random.default_rng(seed)
    return Dealt(rng.normal(size=(ROWS, 2)), rng.integers(5, size=ROWS).astype(float), True, ("a", "b"))


def made(fields, seed=1, rows=None, agents=AGENTS):
    split = TypeAdapter(SplitParameters).validate_python({"agents": agents, **fields})
    rows = rows or rows_of()
    return rows, split.owners(rows, rng=np.random.default_rng(seed))


@pytest.mark.parametrize("name", SKEWS)
def test_a_split_deals_every_row_once_and_is_skewed_in_what_it_says(name):
    """Seed 1. Even shares of 5 classes among 100 rows are off by some .07 in total variation, shards by .6 to .8."""
    fields, what = SKEWS[name]
    rows, owners = made(fields)
    assert owners.shape == (ROWS,)
    assert set(owners) <= set(range(AGENTS))
    notes = split_notes(Table.from_owners(rows.features, rows.labels, owners, AGENTS), 5)
    low, _, high = notes["rows"]
    assert (high - low > 50) == (what == "sizes" or name == "dirichlet")
    assert (notes["label_skew"] > 0.3) == (what == "labels")
    means = [rows.features[owners == agent, 1].mean() for agent in set(owners)]
    assert (np.ptp(means) > 2) == (what == "feature")
    assert not np.array_equal(owners, made(fields, seed=2)[1]) or what == "feature"
    np.testing.assert_array_equal(owners, made(fields)[1])


def test_an_agent_of_two_shards_has_the_classes_of_two_stretches():
    """1,000 rows of 5 classes in 20 shards of 50: a shard has at most two classes."""
    rows, owners = made({"kind": "shards", "shards": 2})
    assert max(len(set(rows.labels[owners == agent])) for agent in range(AGENTS)) <= 4
    assert (np.bincount(owners) == 100).all()


def test_quantities_are_in_dirichlet_proportions():
    """100 agents of concentration 2: the variance of a share is (1/n)(1 - 1/n)/(n a + 1), seen to a third."""
    _, owners = made({"kind": "quantity", "concentration": 2.0}, agents=100)
    shares = np.bincount(owners, minlength=100) / ROWS
    assert shares.var() == pytest.approx(0.01 * 0.99 / 201, rel=1 / 3)


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"kind": "shards", "shards": 200}, "agents times shards, 2000, must be at most the number of rows, 1000"),
        ({"kind": "even", "agents": 1001}, "1001 must be at most the number of rows, 1000"),
        ({"kind": "by_feature", "feature": "c"}, "there is no feature 'c'; admissible: a, b"),
        ({"kind": "by_feature", "feature": 2}, "2 must be below the number of features, 2"),
    ],
)
def test_rows_that_cannot_be_dealt_so_are_one_sentence(fields, sentence):
    with pytest.raises(InputError, match=sentence):
        made(fields)


def test_a_partition_is_by_rows_or_columns_or_by_a_rule():
    read = TypeAdapter(Partition).validate_python
    assert read({"by": "rows", "agents": 3}).agents == 3
    assert read({"by": "columns", "parts": [3]}).parts == [3]
    assert read({"kind": "shards", "agents": 3}).shards == 2
    for wrong in ({"by": "row"}, {"kind": "shard"}, {"agents": 3, "by": "rows", "kind": "even"}):
        with pytest.raises(ValidationError):
            read(wrong)


DRAWN = {
    "epsilon_like": {"samples": 50, "dimension": 4},
    "linear_classification": {"samples": [30, 70], "dimension": 4, "targets": "common", "precision": "float32"},
}


def drawn(kind, **fields):
    given = {"kind": kind, "agents": AGENTS, **DRAWN[kind], **fields}
    return TASKS[kind].model_validate(given).build(rng=np.random.default_rng(1), data_dir=None)


@pytest.mark.parametrize("kind", DRAWN)
def test_rows_that_are_drawn_are_dealt_by_a_rule_and_are_the_same_rows(kind):
    alone = drawn(kind)
    for split, what in SKEWS.values():
        if what != "feature":
            task = drawn(kind, split={"agents": AGENTS, **split})
            assert sorted(map(tuple, task.train.features.tolist())) == sorted(map(tuple, alone.train.features.tolist()))
            assert (task.notes["split"]["label_skew"] > 0.2) == (what == "labels")
            assert task.train.features.dtype == alone.train.features.dtype
            np.testing.assert_array_equal(task.test.counts, alone.test.counts)
    sizes = [5] * 9 + [0]
    task = drawn(kind, split={"kind": "by_size", "sizes": sizes})
    assert task.train.counts.tolist() == sizes
    assert task.regularisation[-1] == 0


@pytest.mark.parametrize(
    ("kind", "fields", "sentence"),
    [
        ("epsilon_like", {"agents": 9}, "deals to 10 agents; the task has 9 by its field agents"),
        ("linear_classification", {"agents": 9}, "deals to 10 agents; the task has 9 by its field agents"),
        ("linear_classification", {"targets": "personal"}, "needs targets: common"),
    ],
)
def test_a_split_that_does_not_fit_what_is_drawn_is_one_sentence(kind, fields, sentence):
    with pytest.raises(ValidationError, match=sentence):
        drawn(kind, split={"kind": "even", "agents": AGENTS}, **fields)


def test_digits_have_ten_classes_and_their_sums():
    """Golden: scikit-learn 1.9.1's load_digits, whose data sum to 561,718 and whose first row is a zero."""
    features, labels = read_digits()
    assert features.shape == (1797, 64)
    assert features.sum() * 16 == 561718
    assert np.bincount(labels.astype(int)).tolist() == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]
    assert labels[:10].tolist() == list(range(10))


def test_digits_are_dealt_by_a_rule_and_tested_on_all_classes():
    kind = TASKS["digits"].model_validate({"kind": "digits", "split": {"kind": "shards", "agents": 20}})
    task = kind.build(rng=np.random.default_rng(1), data_dir=None)
    assert (task.classes, len(task.train.labels), len(task.test.labels)) == (10, 1438, 359)
    assert set(task.test.counts) == {17, 18}
    assert task.notes["split"]["classes"][1] <= 4
    assert len(set(task.test.labels)) == 10
    with pytest.raises(ValidationError, match="tells two classes"):
        TASKS["digits"].model_validate({"kind": "digits", "model": {"kind": "linear"}})


def table_of(tmp_path: Path, **fields):
    text = "colour,size,owner\n" + "".join(f"{['red', 'green', 'blue'][k % 3]},{k},{k % 2}\n" for k in range(30))
    (tmp_path / "rows.csv").write_text(text)
    given = {"kind": "csv", "path": "rows.csv", "label": "colour", "agent": "owner", **fields}
    return TASKS["csv"].model_validate(given).build(rng=np.random.default_rng(1), data_dir=None, base=tmp_path)


def test_a_table_of_three_classes_needs_a_model_with_a_score_for_each(tmp_path):
    task = table_of(tmp_path, model={"kind": "softmax"})
    assert task.classes == 3
    assert task.notes["labels"] == {"0": "blue", "1": "green", "2": "red"}
    assert set(task.train.labels) == {0.0, 1.0, 2.0}
    with pytest.raises(
        InputError, match=r"3 distinct values .* needs two classes; set task.model to \{kind: softmax\}"
    ):
        table_of(tmp_path)
    split = {"kind": "by_feature", "agents": 3, "feature": "size"}
    task = table_of(tmp_path, model={"kind": "softmax"}, agent=None, drop=["owner"], split=split)
    ends = [task.train.shard(agent).features[:, 0] for agent in range(3)]
    assert [own.max() for own in ends[:2]] < [own.min() for own in ends[1:]]
