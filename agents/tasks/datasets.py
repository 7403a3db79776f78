"""Published data sets that tasks read from a data directory; nothing here downloads anything."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import InputError
from ..input_files import MOST_STREAMED, at_home, beside, open_text
from ..packed import located

ENVIRONMENT_VARIABLE = "HUSHNET_DATA"
PATH = ("task", "path")
BLOCK = 2**20
"""Bytes of a file that are held at once."""


@dataclass(frozen=True)
class Dataset:
    """A data set that users fetch themselves."""

    title: str
    folder: str
    """Folder inside the data directory."""
    files: dict[str, str | None]
    """Files that must be in the folder, with the md5 of each as published, None where none is; empty where their names
    are not fixed."""
    licence: str
    """What the licence allows, in a sentence."""
    hint: str
    """How to get it."""


class Found(NamedTuple):
    """Result of looking for one data set in a data directory."""

    name: str
    path: Path | None
    """The data set's folder, or None if a file of it is missing."""
    intact: bool | None
    """Whether every file has its published checksum; None if a file is missing, or there is none to compare with."""
    hint: str
    """How to get the data set."""


DATASETS: dict[str, Dataset] = {
    "ml-100k": Dataset(
        title="MovieLens-100K",
        folder="ml-100k",
        files={"u.data": "da202c352323416d7f4b3fad43b92d09"},
        licence="Research use with acknowledgement (Harper and Konstan 2015); no redistribution, no commercial use.",
        hint="unpack https://files.grouplens.org/datasets/movielens/ml-100k.zip into the data directory",
    ),
    "adult": Dataset(
        title="UCI Adult",
        folder="adult",
        files={
            "adult.data": "5d7c39d7b8804f071cdd1f2a7c460872",
            "adult.test": "35238206dfdf7f1fe215bbb874adecdc",
        },
        licence="CC BY 4.0 (Becker and Kohavi 1996, UCI Machine Learning Repository).",
        hint="unpack https://archive.ics.uci.edu/static/public/2/adult.zip into the folder adult of the data directory",
    ),
    "a9a": Dataset(
        title="LIBSVM a9a",
        folder="a9a",
        files={"a9a": "fb3596510d780aaf76a06dc721d49662", "a9a.t": "f0bb16cf1ee3e80ff560e9d132ee647e"},
        licence="Derived from UCI Adult, CC BY 4.0 (Platt 1998, by way of LIBSVM).",
        hint=(
            "put a9a and a9a.t from https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary/ "
            "into the folder a9a of the data directory"
        ),
    ),
    "gisette": Dataset(
        title="LIBSVM gisette",
        folder="gisette",
        files={"gisette_scale": None, "gisette_scale.t": None},
        licence="CC BY 4.0 (Guyon, Gunn, Ben-Hur, Dror 2004, UCI Machine Learning Repository, by way of LIBSVM).",
        hint=(
            "put gisette_scale.bz2 and gisette_scale.t.bz2 from "
            "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary/ into the folder gisette of the data "
            "directory; they are read as they are, or unpacked"
        ),
    ),
    "epsilon": Dataset(
        title="LIBSVM epsilon",
        folder="epsilon",
        files={"epsilon_normalized": None, "epsilon_normalized.t": None},
        licence="Published for the Pascal large scale learning challenge 2008, by way of LIBSVM; no licence is stated.",
        hint=(
            "put epsilon_normalized.bz2 and epsilon_normalized.t.bz2 (12 GB and 3 GB unpacked) from "
            "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary/ into the folder epsilon of the data "
            "directory; they are read as they are, or unpacked"
        ),
    ),
    "mnist": Dataset(
        title="MNIST",
        folder="mnist",
        files={
            "train-images-idx3-ubyte": None,
            "train-labels-idx1-ubyte": None,
            "t10k-images-idx3-ubyte": None,
            "t10k-labels-idx1-ubyte": None,
        },
        licence="CC BY-SA 3.0 (LeCun, Cortes); Fashion-MNIST, in files of the same names, is MIT (Xiao et al. 2017).",
        hint=(
            "put its four idx files, from https://storage.googleapis.com/cvdf-datasets/mnist/, into the folder mnist "
            "of the data directory; they are read as they are (.gz), or unpacked"
        ),
    ),
    "femnist": Dataset(
        title="FEMNIST of LEAF",
        folder="femnist",
        files={},
        licence="Derived from NIST Special Database 19, which is public; LEAF is BSD 2-clause (Caldas et al. 2018).",
        hint=(
            "make the folders train and test with data/femnist/preprocess.sh -s niid --sf 0.05 -k 0 -t sample of "
            "https://github.com/TalwalkarLab/leaf, and put them into the folder femnist of the data directory"
        ),
    ),
}


def folder_of(dataset: str, path: str | None, data_dir: Path | None, base: Path | None) -> Path:
    """Folder of a data set: the path that a task names, relative to `base`, or its own in the data directory.

    Raises `InputError` if neither is named.
    """
    known, there = DATASETS[dataset], data_directory(data_dir)
    if path is not None:
        return beside(base, path)
    if there is None:
        raise InputError(
            f"needs {known.title}: set task.path, --data-dir or HUSHNET_DATA to where it is, or {known.hint}",
            field=PATH,
        )
    return there / known.folder


def files_of(dataset: str, path: str | None, data_dir: Path | None, base: Path | None) -> dict[str, Path]:
    """Files of a data set, compressed or not, by name; see `folder_of`.

    Raises `InputError` if one is missing, or nobody says where they are.
    """
    known, folder = DATASETS[dataset], folder_of(dataset, path, data_dir, base)
    files = {name: located(folder, name) or folder / name for name in known.files}
    for file in files.values():
        if not file.is_file():
            raise InputError(f"{file}: no such file; {known.hint}", field=PATH)
    return files


def data_directory(explicit: Path | None = None) -> Path | None:
    """The data directory: the explicit one, else the one that HUSHNET_DATA names, else None."""
    named = explicit if explicit is not None else os.environ.get(ENVIRONMENT_VARIABLE)
    return at_home(Path(named)) if named else None


def md5(path: Path) -> str:
    """The md5 of what a file holds, unpacked, in hexadecimal: published checksums are md5."""
    digest = hashlib.md5(usedforsecurity=False)
    with open_text(path, most=MOST_STREAMED) as (stream, _):
        while block := stream.read(BLOCK):
            digest.update(block)
    return digest.hexdigest()


def checksums(files: dict[str, Path], published: dict[str, str | None]) -> dict[str, Any]:
    """Return the checksums of a data set's files, as manifests record them; what is empty is left out.

    They are ``md5`` of the files of which one is published, and ``as_published``: whether all of these are equal;
    ``not_verified``: the files without one, which are not summed, for they are huge.
    """
    found = {name: md5(file) for name, file in files.items() if published[name]}
    unknown = [name for name in files if not published[name]]
    summed = {"md5": ", ".join(found.values()), "as_published": all(found[name] == published[name] for name in found)}
    return (summed if found else {}) | ({"not_verified": unknown} if unknown else {})


def find(data_dir: Path | None) -> list[Found]:
    """Look for all data sets in a data directory, if there is one; a result for each, in the order of `DATASETS`."""
    found = []
    for name, dataset in DATASETS.items():
        folder = None if data_dir is None else data_dir / dataset.folder
        files = {file: folder and located(folder, file) for file in dataset.files}
        there = {file: path for file, path in files.items() if path is not None}
        if folder is None or not folder.is_dir() or len(there) < len(files):
            found.append(Found(name, None, None, dataset.hint))
            continue
        found.append(Found(name, folder, checksums(there, dataset.files).get("as_published"), dataset.hint))
    return found
