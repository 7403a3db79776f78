"""Compressed data are read as what they hold where their name says so, and named where it does not."""

from __future__ import annotations

import bz2
import gzip
import lzma
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hushnet.agents.errors import InputError
from hushnet.agents.input_files import read_lines
from hushnet.agents.tasks import TASKS
from hushnet.agents.tasks.csv_reader import read_columns
from hushnet.agents.tasks.datasets import DATASETS, checksums, find, md5
from hushnet.agents.tasks.libsvm import read_libsvm
from hushnet.agents.tasks.libsvm_sets import Gisette
from hushnet.simulator.cli import main
from hushnet.simulator.console.words import source_line

PACK = {".bz2": bz2.compress, ".gz": gzip.compress, ".xz": lzma.compress}
LINES = "+1 1:0.5 3:-2\n-1 2:1e-3\n"


def packed(folder: Path, name: str, text: str = LINES, ending: str = ".bz2") -> Path:
    file = folder / name
    file.write_bytes(PACK[ending](text.encode()))
    return file


@pytest.mark.parametrize("ending", PACK)
def test_a_compressed_file_is_read_as_what_it_holds(tmp_path, ending):
    features, labels = read_libsvm(packed(tmp_path, f"data{ending}", ending=ending), 3)
    assert features.tolist() == [[0.5, 0, -2], [0, 1e-3, 0]]
    assert labels.tolist() == [1, -1]
    table = read_columns(packed(tmp_path, f"my.csv{ending}", "a,b\n1,2\n", ending))
    assert table.names == ["a", "b"]


@pytest.mark.parametrize("ending", PACK)
def test_a_compressed_file_under_a_plain_name_is_named_as_that(tmp_path, ending):
    file = packed(tmp_path, "data", ending=ending)
    with pytest.raises(InputError, match=rf"data: is compressed \(\w+\); unpack it, or name it data\{ending}$"):
        read_libsvm(file, 3)


def test_what_is_not_unpacked_here_is_named_whatever_it_is_called(tmp_path):
    for name in ("data", "data.zip", "data.gz"):
        (tmp_path / name).write_bytes(b"PK\x03\x04" + bytes(100))
        with pytest.raises(InputError, match=r"is compressed \(zip\); unpack it$"):
            next(read_lines(tmp_path / name))


def test_a_plain_file_under_a_compressed_name_is_named_as_that(tmp_path):
    (tmp_path / "data.gz").write_text(LINES)
    with pytest.raises(InputError, match=r"data\.gz: is not compressed by gzip, as its name says; rename it"):
        read_libsvm(tmp_path / "data.gz", 3)


@pytest.mark.parametrize("ending", PACK)
@pytest.mark.parametrize("harm", ["cut", "flipped"])
def test_what_is_cut_off_or_damaged_is_one_sentence(tmp_path, ending, harm):
    rng = np.random.default_rng(0)
    text = "".join(f"+1 1:{value}\n" for value in rng.normal(size=5000))
    content = bytearray(PACK[ending](text.encode()))
    if harm == "cut":
        content = content[: len(content) // 2]
    else:
        content[len(content) // 2] ^= 0xFF
    (tmp_path / f"data{ending}").write_bytes(content)
    with pytest.raises(InputError) as caught:
        read_libsvm(tmp_path / f"data{ending}", 1)
    assert "\n" not in str(caught.value)


def test_a_small_file_that_unpacks_to_a_huge_one_fills_no_memory(tmp_path):
    with gzip.open(tmp_path / "bomb.gz", "wb") as stream:
        stream.write((b"+1 1:1" + b" " * 993 + b"\n") * 50_000)
    tracemalloc.start()
    with pytest.raises(InputError, match="which no table is packed to"):
        for _ in read_lines(tmp_path / "bomb.gz", most=2 * 10**7):
            pass
    assert tracemalloc.get_traced_memory()[1] < 2e6
    tracemalloc.stop()


def test_checksums_are_of_what_is_packed(tmp_path):
    (tmp_path / "plain").write_text(LINES)
    assert md5(packed(tmp_path, "data.bz2")) == md5(tmp_path / "plain")


def test_a_data_set_is_found_compressed_and_said_to_be_unverified_where_no_checksum_is_published(tmp_path, capsys):
    folder = tmp_path / "gisette"
    folder.mkdir()
    for name in ("gisette_scale", "gisette_scale.t"):
        packed(folder, f"{name}.bz2")
    task = Gisette.model_validate({"kind": "gisette", "split": {"by": "rows", "agents": 2}}).build(
        rng=np.random.default_rng(0), data_dir=tmp_path
    )
    assert source_line({"notes": task.notes}) == (
        "data: LIBSVM gisette, gisette_scale and gisette_scale.t, gisette_scale and gisette_scale.t not verified "
        "(no checksum is published)"
    )
    assert {found.name: found.intact for found in find(tmp_path)}["gisette"] is None
    assert main(["data", "--data-dir", str(tmp_path)]) == 0
    assert f"{folder}, not verified (no checksum is published)\n" in capsys.readouterr().out


def test_files_with_and_without_a_published_checksum_are_told_apart(tmp_path):
    (tmp_path / "a").write_text("a")
    files = {"a": tmp_path / "a", "b": tmp_path / "a"}
    said = checksums(files, {"a": "0cc175b9c0f1b6a831c399e269772661", "b": None})
    assert said == {"md5": "0cc175b9c0f1b6a831c399e269772661", "as_published": True, "not_verified": ["b"]}


BY_ROWS = {"split": {"by": "rows", "agents": 2}}
PUBLISHED = {"adult": {}, "movielens": {}, "femnist": {"agents": 3}, "mnist": {"split": {"kind": "even", "agents": 4}}}


@pytest.mark.parametrize(
    ("kind", "fields"), [*PUBLISHED.items(), *((k, BY_ROWS) for k in ("a9a", "gisette", "epsilon"))]
)
def test_a_data_set_that_is_not_there_is_asked_for_with_where_to_get_it(kind, fields, tmp_path, monkeypatch):
    monkeypatch.delenv("HUSHNET_DATA", raising=False)
    known = DATASETS["ml-100k" if kind == "movielens" else kind]
    task = TASKS[kind].model_validate({"kind": kind, **fields})
    asked = f"needs {known.title}: set task.path, --data-dir or HUSHNET_DATA to where it is, or {known.hint}"
    for folder, said in ((None, asked), (tmp_path, f": {'has no' if kind == 'femnist' else 'no such'} file")):
        with pytest.raises(InputError) as refused:
            task.build(rng=np.random.default_rng(0), data_dir=folder)
        assert said in str(refused.value)
        assert str(refused.value).endswith(known.hint)
