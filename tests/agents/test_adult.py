"""UCI Adult: reading, dealing, and the sums that two independent readings of Zhang et al. 2018 agree on."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from hushnet.agents.errors import InputError
from hushnet.agents.tasks.adult import Adult, prepared, read_rows

ROW = "39, {work}, {weight}, Bachelors, 13, Single, Sales, Wife, White, {sex}, 0, 0, 40, {country}, {label}"
DEFAULTS = {"work": "Private", "weight": "100", "sex": "Male", "country": "Cuba", "label": "<=50K"}


def line(**fields) -> str:
    return ROW.format(**{**DEFAULTS, **fields})


def write(folder: Path, train: list[str], test: list[str]) -> Path:
    (folder / "adult.data").write_text("\n".join(train) + "\n\n")
    (folder / "adult.test").write_text("\n".join(["|1x3 Cross validator", *test]) + "\n")
    return folder


def build(folder: Path, **fields):
    spec = Adult.model_validate({"kind": "adult", "path": str(folder), "agents": 1, **fields})
    return spec.build(rng=np.random.default_rng(1), data_dir=None)


@pytest.fixture
def many(tmp_path) -> Path:
    rows = [line(weight=str(k + 1), label=(">50K" if k % 3 else "<=50K")) for k in range(40)]
    return write(tmp_path, rows[:25], [row + "." for row in rows[25:]])


def test_a_category_that_occurs_in_incomplete_rows_alone_becomes_a_column_of_zeros(tmp_path):
    folder = write(tmp_path, [line(), line(work="Never-worked", country="?"), line(work="?")], [line(label=">50K.")])
    rows = read_rows([folder / "adult.data", folder / "adult.test"])
    features, labels = prepared(rows)
    assert labels.tolist() == [-1.0, 1.0]
    # age, two kinds of work, final weight, education, years, status, occupation, relationship, race, sex, gain, loss,
    # hours, country
    assert features.shape == (2, 15)
    assert (features[:, 1] == 0).all()
    assert (features[:, 2] > 0).all()


def test_numeric_columns_are_divided_by_their_maximum_and_long_rows_by_their_norm(tmp_path):
    folder = write(tmp_path, [line(weight="50"), line(weight="200"), line(weight="900", work="?")], [line()])
    features, _ = prepared(read_rows([folder / "adult.data", folder / "adult.test"]))
    np.testing.assert_allclose(np.linalg.norm(features, axis=1), 1.0, rtol=1e-15)
    # Before rows are divided, the age column is 1 in every row, and the weights 50, 200 and 100 are divided by 200.
    np.testing.assert_allclose(features[:, 2] / features[:, 0], [0.25, 1.0, 0.5], rtol=1e-15)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ("39, Private", "adult.data:2: has 2 cells; 14 attributes and a label are needed"),
        (line(label="50K"), "adult.data:2: label '50K' must be one of <=50K, >50K"),
        (line(weight="much"), "adult.data:2: column 3 has 'much', not a number >= 0"),
        (line(weight="-1"), "adult.data:2: column 3 has '-1', not a number >= 0"),
        (line(weight="inf"), "adult.data:2: column 3 has 'inf', not a number >= 0"),
    ],
)
def test_a_bad_line_is_refused_with_file_line_and_value(tmp_path, bad, message):
    write(tmp_path, [line(), bad], [])
    with pytest.raises(InputError) as caught:
        build(tmp_path)
    assert message in str(caught.value)
    assert caught.value.field == ("task", "path")


def test_files_without_a_complete_row_or_with_fewer_rows_than_agents_are_refused(tmp_path):
    write(tmp_path, [line(work="?")], [])
    with pytest.raises(InputError, match="no row without a missing value"):
        build(tmp_path)
    write(tmp_path, [line()], [line()])
    with pytest.raises(InputError, match="3 must be at most the number of rows, 2") as caught:
        build(tmp_path, agents=3)
    assert caught.value.field == ("task", "agents")


def test_rows_are_dealt_as_consecutive_parts_of_a_permutation(many):
    task = build(many, agents=3, shuffle=5)
    features, labels = prepared(read_rows([many / "adult.data", many / "adult.test"]))
    for agent, part in enumerate(np.array_split(np.random.default_rng(5).permutation(40), 3)):
        np.testing.assert_array_equal(task.train.shard(agent).features, features[part])
        np.testing.assert_array_equal(task.train.shard(agent).labels, labels[part])
    np.testing.assert_allclose(task.regularisation, 1 / task.train.counts)
    assert task.bounds == {"l2": 1.0}


def test_uneven_sizes_are_in_arithmetic_progression_and_use_every_row(many):
    counts = build(many, agents=4, size_ratio=4.0).train.counts
    assert counts.tolist() == [4, 8, 12, 16]


def test_the_published_files_give_the_sums_of_45222_rows_and_105_columns():
    folder = os.environ.get("HUSHNET_DATA")
    if not folder or not (Path(folder) / "adult/adult.test").is_file():
        pytest.skip("UCI Adult is needed: HUSHNET_DATA names no folder that holds adult/adult.test")
    task = Adult(kind="adult").build(rng=np.random.default_rng(0), data_dir=Path(folder))
    features = task.train.features
    assert features.shape == (45_222, 105)
    assert features.sum() == pytest.approx(146400.35920184, abs=1e-7)
    assert (features**2 @ np.arange(1, 106)).sum() == pytest.approx(2012637.24667055, abs=1e-6)
    assert task.train.counts.tolist() == [9045, 9045, 9044, 9044, 9044]
    assert (features == 0).all(axis=0).sum() == 1
    assert task.notes["as_published"]
