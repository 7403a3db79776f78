"""Published data sets that tasks read from a data directory; nothing here downloads anything."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

ENVIRONMENT_VARIABLE = "HUSHNET_DATA"


@dataclass(frozen=True)
class Dataset:
    """A data set that users fetch themselves.

    Parameters
    ----------
    title : str
    folder : str
        Folder inside the data directory.
    files : dict of str to str or None
        Files that must be in the folder, with the md5 of each as published; None where none is.
    licence : str
        What the licence allows, in a sentence.
    hint : str
        How to get it.
    """

    title: str
    folder: str
    files: dict[str, str | None]
    licence: str
    hint: str


class Found(NamedTuple):
    """What a data directory holds of one data set."""

    name: str
    path: Path | None
    """The data set's folder, or None if a file of it is missing."""
    intact: bool | None
    """Whether every file with a published checksum has it; None if a file is missing."""
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
            "unpack gisette_scale.bz2 and gisette_scale.t.bz2 from "
            "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary/ into the folder gisette of the data "
            "directory"
        ),
    ),
    "epsilon": Dataset(
        title="LIBSVM epsilon",
        folder="epsilon",
        files={"epsilon_normalized": None, "epsilon_normalized.t": None},
        licence="Published for the Pascal large scale learning challenge 2008, by way of LIBSVM; no licence is stated.",
        hint=(
            "unpack epsilon_normalized.bz2 and epsilon_normalized.t.bz2 (12 GB and 3 GB) from "
            "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary/ into the folder epsilon of the data "
            "directory"
        ),
    ),
}


def data_directory(explicit: Path | None = None) -> Path | None:
    """The data directory: the explicit one, else the one that HUSHNET_DATA names, else None."""
    if explicit is not None:
        return explicit
    named = os.environ.get(ENVIRONMENT_VARIABLE)
    return Path(named) if named else None


def md5(path: Path) -> str:
    """The md5 of a file's content, in hexadecimal: published checksums are md5."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()


def find(data_dir: Path | None) -> list[Found]:
    """What a data directory holds, one entry a data set in the order of `DATASETS`.

    Parameters
    ----------
    data_dir : Path or None
        None finds nothing.
    """
    found = []
    for name, dataset in DATASETS.items():
        folder = None if data_dir is None else data_dir / dataset.folder
        if folder is None or not all((folder / file).is_file() for file in dataset.files):
            found.append(Found(name, None, None, dataset.hint))
            continue
        intact = all(md5(folder / file) == published for file, published in dataset.files.items() if published)
        found.append(Found(name, folder, intact, dataset.hint))
    return found
