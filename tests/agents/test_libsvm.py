"""LIBSVM's format, the published data sets in it, their stand-ins, and how rows and columns are spread."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from hushnet.agents.errors import InputError
from hushnet.agents.tasks.datasets import DATASETS
from hushnet.agents.tasks.libsvm import read_libsvm
from hushnet.agents.tasks.libsvm_sets import A9a, Epsilon, Gisette
from hushnet.agents.tasks.partition import ByColumns, partitioned
from hushnet.agents.tasks.stand_ins import EpsilonLike, GisetteLike

DATA = os.environ.get("HUSHNET_DATA")
needs_a9a = pytest.mark.skipif(
    not (DATA and (Path(DATA) / "a9a" / "a9a").is_file()), reason="needs HUSHNET_DATA with the folder a9a"
)
LINES = "+1 1:0.5 3:-2\n-1 2:1e-3\n1\n-1 4:1 \n"


def written(folder: Path, text: str, name: str = "data") -> Path:
    file = folder / name
    file.write_text(text)
    return file


def some_rows(count: int = 7, dimension: int = 5) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.normal(size=(count, dimension)), np.where(rng.random(count) < 0.5, 1.0, -1.0)


def spread(split, train=None, test=None):
    return partitioned(
        train or some_rows(),
        test or some_rows(4),
        split,
        name="some",
        loss="logistic",
        bounds={},
        notes={},
        rng=np.random.default_rng(1),
    )


def test_what_a_line_does_not_name_is_zero(tmp_path):
    features, labels = read_libsvm(written(tmp_path, LINES), 4)
    assert features.tolist() == [[0.5, 0, -2, 0], [0, 1e-3, 0, 0], [0, 0, 0, 0], [0, 0, 0, 1]]
    assert labels.tolist() == [1, -1, 1, -1]


def test_only_the_rows_asked_for_are_read(tmp_path):
    """What comes later may even be nonsense: a part of a huge file is read without looking at the rest."""
    features, labels = read_libsvm(written(tmp_path, LINES + "nonsense\n"), 4, rows=2)
    assert features.shape == (2, 4)
    assert labels.tolist() == [1, -1]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("0 1:1", "'0 1:1' is not a label of -1 or [+]1"),
        ("+1 1:x", "is not a label"),
        ("+1 1.5:2", "is not a label"),
        ("+1 1:2:3", "is not a label"),
        ("+1 12", "is not a label"),
        ("", "is not a label"),
        ("+1 0:1", "indices must ascend from 1 to at most 4"),
        ("+1 5:1", "indices must ascend from 1 to at most 4"),
        ("+1 2:1 2:1", "indices must ascend"),
        ("+1 1:nan", "values must be finite"),
    ],
)
def test_a_wrong_line_is_named_with_its_number(tmp_path, line, said):
    with pytest.raises(InputError, match=f":2: .*{said}") as caught:
        read_libsvm(written(tmp_path, f"+1 1:1\n{line}\n-1 1:1\n"), 4)
    assert caught.value.field == ("task", "path")


def test_an_empty_or_missing_file_is_one_sentence(tmp_path):
    with pytest.raises(InputError, match="is empty"):
        read_libsvm(written(tmp_path, ""), 4)
    with pytest.raises(InputError, match="cannot be read"):
        read_libsvm(tmp_path / "absent", 4)


def test_columns_go_to_parties_and_labels_to_the_centre():
    features, labels = some_rows()
    task = spread(ByColumns(by="columns", parts=[2, 1]))
    assert task.agents == 3
    assert task.dimension == 3
    assert np.array_equal(task.train.features, features[:, :3])
    assert task.shard(0).features.shape == (7, 0)
    assert np.array_equal(task.shard(0).labels, labels)
    assert np.array_equal(task.shard(1).features, features[:, :2])
    assert np.array_equal(task.shard(2).features, features[:, 2:3])
    assert all(len(task.shard(party).labels) == 0 for party in (1, 2))
    assert task.test.counts.tolist() == [4, 0, 0]


@pytest.mark.parametrize(
    ("kind", "names", "dimension"),
    [
        (Gisette, ("gisette_scale", "gisette_scale.t"), 5000),
        (Epsilon, ("epsilon_normalized", "epsilon_normalized.t"), 2000),
    ],
)
def test_gisette_and_epsilon_are_read_from_small_files_in_their_format(tmp_path, kind, names, dimension):
    folder = tmp_path / kind.dataset
    folder.mkdir()
    for name in names:
        written(folder, f"+1 1:0.6 {dimension}:0.8\n-1 2:-1\n-1 3:1\n", name)
    spec = kind.model_validate({"kind": kind.dataset, "rows": 2, "split": {"by": "rows", "agents": 2}})
    task = spec.build(rng=np.random.default_rng(0), data_dir=tmp_path)
    assert (task.agents, task.dimension) == (2, dimension)
    assert task.notes["rows"] == [2, 3]
    assert np.linalg.norm(task.train.features, axis=1) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("kind", "lines", "said"),
    [
        (Epsilon, "+1 1:0.6 2:0.8\n-1 3:6 4:8\n", "row 2 has l2 norm 10, above 1"),
        (A9a, "+1 1:1\n-1 1:1 2:50\n", "row 2 has l1 norm 51, above 14"),
    ],
)
def test_rows_beyond_the_bounds_that_epsilons_rest_on_are_refused(tmp_path, kind, lines, said):
    """Sensitivities are proved from the bounds of a known data set, so a file must keep to them."""
    for name in DATASETS[kind.dataset].files:
        written(tmp_path, lines, name)
    spec = kind.model_validate({"kind": kind.dataset, "path": str(tmp_path), "split": {"by": "rows", "agents": 2}})
    with pytest.raises(InputError, match=said) as caught:
        spec.build(rng=np.random.default_rng(0), data_dir=None)
    assert caught.value.field == ("task", "path")


@needs_a9a
def test_a9a_has_its_published_shape():
    split = {"by": "columns", "parts": [66, 57]}
    task = A9a.model_validate({"kind": "a9a", "split": split}).build(rng=np.random.default_rng(0), data_dir=Path(DATA))
    assert task.train.features.shape == (32561, 123)
    assert task.test.features.shape == (16281, 123)
    assert (np.sum(task.train.labels > 0), np.sum(task.test.labels > 0)) == (7841, 3846)
    assert set(np.unique(task.train.features)) == {0.0, 1.0}
    assert np.linalg.norm(task.train.features, axis=1).max() <= task.bounds["l2"]
    assert [len(held) for held in task.columns] == [0, 66, 57]


def test_stand_ins_say_so_and_keep_to_their_bounds():
    """Labels of both stand-ins can be learned, but not perfectly: the least-squares direction tells."""
    epsilon = EpsilonLike(kind="epsilon_like", agents=4, samples=200, dimension=30)
    gisette = GisetteLike(kind="gisette_like", rows=400, test_rows=100, dimension=60, factors=5)
    for spec in (epsilon, gisette):
        task = spec.build(rng=np.random.default_rng(0), data_dir=None)
        assert "stand-in" in task.name
        assert np.linalg.norm(task.train.features, axis=1).max() <= task.bounds["l2"] * (1 + 1e-12)
        direction = np.linalg.lstsq(task.train.features, task.train.labels, rcond=None)[0]
        accuracy = np.mean(np.sign(task.test.features @ direction) == task.test.labels)
        assert 0.7 < accuracy < 0.995


def test_the_spectrum_of_the_epsilon_stand_in_decays_as_stated():
    """Before rows are scaled, coordinate j has variance j^-1/2: ratios of second moments stay close to that."""
    spec = EpsilonLike(kind="epsilon_like", agents=2, samples=20_000, dimension=200)
    task = spec.build(rng=np.random.default_rng(3), data_dir=None)
    moments = np.mean(task.train.features**2, axis=0)
    ratios = moments / moments[0] * np.sqrt(np.arange(1, 201))
    assert np.abs(ratios - 1).max() < 0.1
