"""Images from idx files and from LEAF's JSON files: what they hold is what agents have, and one sentence otherwise."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest
from hushnet.agents.errors import InputError
from hushnet.agents.tasks import TASKS
from hushnet.agents.tasks.datasets import DATASETS, find

SIDE = 3


def idx(values):
    """Bytes of an idx file, after http://yann.lecun.com/exdb/mnist: 0, 0, type, dimensions, sizes, values."""
    head = bytes([0, 0, 8, values.ndim]) + b"".join(size.to_bytes(4, "big") for size in values.shape)
    return head + values.astype(np.uint8).tobytes()


def write_mnist(folder, rows=24, seed=0):
    """Four idx files of small images in three classes; one file is compressed."""
    rng, written = np.random.default_rng(seed), []
    folder.mkdir(parents=True, exist_ok=True)
    for images, labels in zip(*[iter(DATASETS["mnist"].files)] * 2, strict=True):
        written += [rng.integers(256, size=(rows, SIDE, SIDE)), np.arange(rows) % 3]
        (folder / f"{images}.gz").write_bytes(gzip.compress(idx(written[-2])))
        (folder / labels).write_bytes(idx(written[-1]))
    return written


def write_femnist(folder, writers=5, seed=0):
    """Two files of LEAF for training, and one for testing, without images of the last writer."""
    rng, users = np.random.default_rng(seed), {}
    for number in range(writers):
        users[f"f{number:04}"] = {
            "x": rng.integers(2, size=(number + 2, SIDE**2)).tolist(),
            "y": [(k + number) % 3 for k in range(number + 2)],
        }
    names = list(users)
    for part, named, which in (("train", "b", names[3:]), ("train", "a", names[:3]), ("test", "a", names[:-1])):
        (folder / part).mkdir(parents=True, exist_ok=True)
        text = json.dumps({"users": which, "user_data": {name: users[name] for name in which}})
        (folder / part / f"{named}.json").write_text(text)
    return users


WRITERS = {"mnist": write_mnist, "femnist": write_femnist}


def build(kind, data_dir, **fields):
    task = TASKS[kind].model_validate({"kind": kind, "classes": 3, **fields})
    return task.build(rng=np.random.default_rng(0), data_dir=data_dir)


def test_images_of_idx_files_are_dealt_with_their_labels(tmp_path):
    images, labels, tested, _ = write_mnist(tmp_path / "mnist")
    task = build("mnist", tmp_path, split={"kind": "shards", "agents": 4}, rows=20)
    expected = np.append(images[:20].reshape(20, -1) / 255, np.ones((20, 1)), axis=1)
    order = [np.argsort(rows @ 2.0 ** np.arange(SIDE**2 + 1)) for rows in (task.train.features, expected)]
    np.testing.assert_allclose(task.train.features[order[0]], expected[order[1]], rtol=1e-6)
    assert (task.train.labels[order[0]] == labels[:20][order[1]]).all()
    assert (task.agents, task.classes, len(task.test.labels), task.train.features.dtype) == (4, 3, 24, np.float32)
    assert task.test.features.sum() == pytest.approx(tested.sum() / 255 + 24, rel=1e-5)
    assert np.linalg.norm(task.train.features, axis=1).max() <= task.bounds["l2"]
    assert [one.path is not None for one in find(tmp_path) if one.name in WRITERS] == [True, False]


def test_writers_of_leaf_are_agents_with_their_own_rows(tmp_path):
    users = write_femnist(tmp_path / "femnist")
    task = build("femnist", tmp_path, agents=5, intercept=False, precision="float64")
    assert task.ids == sorted(users)
    for agent, name in enumerate(task.ids):
        assert task.train.shard(agent).features.tolist() == users[name]["x"]
        assert task.train.shard(agent).labels.tolist() == users[name]["y"]
    assert task.test.counts.tolist() == [2, 3, 4, 5, 0]
    assert build("femnist", None, agents=2, path=str(tmp_path / "femnist")).ids == ["f0000", "f0001"]


def test_images_of_writers_are_dealt_anew_by_a_split(tmp_path):
    users = write_femnist(tmp_path / "femnist")
    split = {"kind": "shards", "agents": 3, "shards": 1}
    task = build("femnist", tmp_path, agents=4, intercept=False, precision="float64", split=split)
    written = [(tuple(x), y) for name in sorted(users)[:4] for x, y in zip(*users[name].values(), strict=True)]
    for table in (task.train, task.test):
        assert sorted(zip(map(tuple, table.features.tolist()), table.labels, strict=True)) == sorted(written)
        assert sorted(table.counts.tolist()) == [4, 5, 5]
    assert [np.ptp(task.train.shard(agent).labels) <= 1 for agent in range(3)] == [True] * 3
    assert (task.ids, task.notes["split"]["rows"]) == ([0, 1, 2], [4.0, 5.0, 5.0])
    assert {one.name for one in find(tmp_path) if one.path} == {"femnist"}


def spoil(data):
    return lambda path: path.write_bytes(data)


IMAGES, LABELS, LEAF = "mnist/train-images-idx3-ubyte", "mnist/train-labels-idx1-ubyte", "femnist/train/a.json"
WRONG = {
    "absent": ("mnist", LABELS, Path.unlink, {}, "no such file; put its four idx files"),
    "no idx": ("mnist", LABELS, spoil(b"\0\0\x09\x01\0\0\0\1\5"), {}, "is no idx file of unsigned bytes"),
    "cut off": ("mnist", LABELS, spoil(idx(np.zeros(24))[:-2]), {}, "has 22 values, and says that it has 24"),
    "other numbers": ("mnist", LABELS, spoil(idx(np.zeros(23))), {}, "as many images as labels"),
    "beyond": ("mnist", LABELS, spoil(idx(np.full(24, 3))), {}, "label 3 of image 1 must be from 0 to 2"),
    "another size": ("mnist", IMAGES, spoil(idx(np.zeros((24, 2, 2)))), {}, "has images of another size"),
    "agents": ("mnist", None, None, {"split": {"kind": "even", "agents": 25}}, "at most the number of rows, 24"),
    "no files": ("femnist", LEAF, lambda path: [one.unlink() for one in path.parent.iterdir()], {}, "has no files"),
    "no json": ("femnist", LEAF, spoil(b"{"), {}, "is no file of LEAF"),
    "a list": ("femnist", LEAF, spoil(b"[1]"), {}, "is no file of LEAF"),
    "ragged": ("femnist", LEAF, spoil(b'{"users":["a"],"user_data":{"a":{"x":[[0],[0,1]],"y":[1,1]}}}'), {}, "LEAF"),
    "fewer labels": ("femnist", LEAF, spoil(b'{"users":["a"],"user_data":{"a":{"x":[[0],[1]],"y":[1]}}}'), {}, "'a'"),
    "too bright": ("femnist", LEAF, spoil(b'{"users":["a"],"user_data":{"a":{"x":[[2]],"y":[1]}}}'), {}, "from 0 to 1"),
    "several sizes": ("femnist", LEAF, spoil(b'{"users":["a"],"user_data":{"a":{"x":[[1]],"y":[1]}}}'), {}, "several"),
    "writers": ("femnist", None, None, {"agents": 6}, "6 must be at most the number of writers"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_files_do_not_have_is_said_in_one_sentence(case, tmp_path):
    kind, name, change, fields, says = WRONG[case]
    WRITERS[kind](tmp_path / kind)
    if name is not None:
        file = tmp_path / name
        if name == IMAGES:
            file.with_name(f"{file.name}.gz").unlink()
        change(file)
    asked = {"agents": 3} if kind == "femnist" else {"split": {"kind": "even", "agents": 4}}
    with pytest.raises(InputError, match=says) as refused:
        build(kind, tmp_path, **asked | fields)
    assert "\n" not in str(refused.value)
