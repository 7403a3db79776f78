"""Bundle of an experiment in one file: what a reviewer needs to run it again and to check its numbers."""

from __future__ import annotations

import io
import os
import platform
import shlex
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd
from rich.console import Console
from rich.text import Text

from ...agents.errors import HushnetError, InputError
from ...agents.tasks.task_registry import is_published
from ..analysis.claimed_privacy import MARK
from ..analysis.results import Collection, load_all
from ..compare.comparison_tables import number
from ..experiment.sources import FOLDER, LEFT_OUT, kept_files, left_out, left_out_contents
from ..storage.files import checksum, json_text, put_file, read_json, writing
from ..storage.plain_text import csv_text
from ..storage.provenance import code_version
from ..storage.store import Store
from .claims import check_claims, claims, minutes, read_claims, read_rows_of
from .lock import lock_file
from .wheel import wheel_files

WHEN = (1980, 1, 1, 0, 0, 0)
"""Date of all files in a bundle: the same results give the same bytes."""

CHECK = "hushnet bundle results --check claims.csv"
SCRIPT = """#!/bin/sh
# Runs the experiment again and holds its numbers against claims.csv. Options are those of hushnet run:
# --jobs 4, --data-dir DIR.
set -e
cd "$(dirname "$0")"
{run} "$@"
{check}
"""
README = """# {scenario}: artifact

What was measured, how to measure it again, and whether it holds.

1. Install Python {python} and, in an environment of its own, the same versions of everything:
   `pip install -r requirements.txt`.
2. {install}
3. `sh rerun.sh` runs the experiment (about {minutes:.1f} minutes of one processor core; `sh rerun.sh --jobs 4` uses
   four) and says for each of the {claims} numbers in claims.csv whether it holds. It ends with exit code 0 if all do.

A number holds if it differs from the one in claims.csv by no more than the tolerance there: half its 95 % interval
over seeds. The run has the same seeds, so on the same versions the numbers are the same to the last digit; the check
says how many of the tables are the same byte by byte.

| file | what it is |
| --- | --- |
{files}

{data}
{notes}"""
IN_HERE = """Install the hushnet that ran the experiment{commit}, which is in here:
   `pip install --no-deps {wheel}`. The check says so if another code than {code} runs."""
ELSEWHERE = """Install the hushnet that ran the experiment, {code}{commit}. It is not in here, because another version
   has packed this bundle; the check says so if another code runs."""
NOTHING_TO_GET = "They are drawn anew from the seeds; nothing has to be downloaded."
PUBLISHED = (
    "They are not in here; data.csv has their checksums. `hushnet data` says where to get data sets, and "
    "`sh rerun.sh --data-dir DIR` where they are."
)
BY_PATH = (
    "They are in here, where scenario.yaml looks for them, but for those named below; data.csv has their checksums."
)
BRING = "Not in here: `{path}`{sum}, which the experiment reads, {why}. Bring it to where scenario.yaml looks for it."
GET = "Not in here: the published data set {name}; `hushnet data` says where to get it."
HOME = "experiment/"
"""Folder of the scenario in a bundle in which other files need the top, or a place above the scenario."""
RESULTS = "results"
SCENARIO = ("scenario.yaml", "resolved.json")
ABOUT = {
    "scenario.yaml": "the experiment, as it was written",
    "resolved.json": "the same with all defaults",
    "claims.csv": "claim, value, tolerance, command, minutes",
    "requirements.txt": "exact versions of all that hushnet needs",
    "data.csv": "checksums of the data that the runs used",
    "tables.csv": "checksums of the tables of every run",
    "made-with.json": "versions of hushnet, its numeric libraries and Python",
    "rerun.sh": "runs and checks",
    "SHA256SUMS": "checksums of these files: sha256sum -c SHA256SUMS",
}


def write_bundle(
    results: Path,
    out: Path | None = None,
    *,
    with_data: bool = False,
    say: Callable[[str], object] = lambda sentence: None,
) -> Path:
    """Pack what it takes to run an experiment again and to check its numbers; the same results give the same bytes.

    The file is ``results/<scenario>/<scenario>-bundle.zip`` by default. Files of the experiment's own that lie outside
    the scenario's folder or are large are packed `with_data`; a sentence is said about each file that it reads and the
    bundle lacks. Raises `InputError` if there are no results, some are missing, they came of different versions, or
    data to pack have changed since.
    """
    collection = load_all(results)
    _check_whole(collection, results)
    origin = kept_files(results / FOLDER)
    if not set(SCENARIO) <= set(origin):
        raise InputError(f"{results}: does not say what it was made from; run the scenario again")
    origin.pop(LEFT_OUT, None)
    absent = left_out(results / FOLDER)
    if with_data:
        packed, absent = left_out_contents(results / FOLDER)
        origin |= packed
    # A file of the experiment's may bear a name that bundles use: data.csv is a usual one.
    tops = {name.partition("/")[0] for name in origin}
    above = max(Path(name).parts.count("..") for name in origin)
    clear = not above and tops.isdisjoint({*ABOUT, "README.md", RESULTS} - set(SCENARIO))
    place = "" if clear else HOME * (above + 1)
    contents = {os.path.normpath(place + name): content for name, content in origin.items()}
    if collection.manifests[0].get("code") == code_version():
        wheel, files = wheel_files()
        contents[wheel] = _zipped(files)
    contents |= {name: text.encode() for name, text in _texts(collection, contents, place, absent).items()}
    contents["tables.csv"] = csv_text(tables(results)).encode()
    sums = "".join(f"{checksum(content)}  {name}\n" for name, content in sorted(contents.items()))
    contents["SHA256SUMS"] = sums.encode()
    name = str(collection.index.get("scenario") or results.resolve().name)
    path = out or results / f"{name}-bundle.zip"
    with writing(path):
        put_file(_zipped(contents), path, within=None if out is not None else results)
    for sentence in _not_packed(collection, absent):
        say(sentence)
    return path


def check_bundle(results: Path, table: Path, console: Console | None = None) -> None:
    """Print for each claim of a bundle's ``claims.csv`` whether ``results/<scenario>`` bears it out.

    Raises `HushnetError` if a claim does not hold.
    """
    console = console or Console()
    found = check_claims(results, read_claims(table))
    for row in found.to_dict("records"):
        said = f"claimed {number(row['value'], row['tolerance'])} \N{PLUS-MINUS SIGN} {row['tolerance']:.2g}"
        verdict = "holds" if row["holds"] else "DOES NOT HOLD"
        line = f"{verdict}: {row['claim']}: {said}, measured {number(row['measured'], row['tolerance'])}"
        console.print(Text(line, style="" if row["holds"] else "bold red"), soft_wrap=True)
    expected = table.with_name("tables.csv")
    if expected.is_symlink() or expected.exists():
        alike, number_of = same_tables(results, expected)
        console.print(f"{alike} of {number_of} tables are the same, byte by byte", highlight=False)
    for sentence in _differences(table.with_name("made-with.json"), made_with(load_all(results))):
        console.print(Text(f"{MARK} {sentence}", style="yellow"), soft_wrap=True)
    broken = int((~found["holds"]).sum())
    if broken:
        raise HushnetError(f"{broken} of {len(found)} claims do not hold")
    console.print(f"all {len(found)} claims hold", highlight=False)


def tables(results: Path) -> pd.DataFrame:
    """A row for every table of every run: protocol, seed and swept values as they are in words, and its checksum."""
    rows = [
        {**_place(entry.manifest), "table": name, "sha256": value}
        for entry in Store(results).entries()
        for name, value in sorted(entry.checksums.items())
        if name.endswith(".parquet")
    ]
    return pd.DataFrame(rows)


def _place(manifest: Mapping[str, Any]) -> dict[str, Any]:
    grid = json_text(dict(sorted((manifest.get("grid") or {}).items())), indent=None)
    return {"protocol": manifest["protocol"], "seed": manifest["seed"], "grid": grid}


def same_tables(results: Path, expected: Path) -> tuple[int, int]:
    """Count a bundle's tables: those that are there with the same bytes, and all that it names."""
    there = tables(results)
    known = set(there.astype(str).itertuples(index=False, name=None))
    wanted = read_rows_of(expected, list(there.columns), "as a table of checksums")
    return sum(row in known for row in wanted.itertuples(index=False, name=None)), len(wanted)


def made_with(collection: Collection) -> dict[str, Any]:
    """Versions that decide a run's numbers."""
    manifest = collection.manifests[0]
    versions = {**dict(_versions(collection)), "Python": platform.python_version()}
    return {"hushnet": manifest.get("code"), "commit": manifest.get("commit"), "versions": versions}


def _versions(collection: Collection) -> set[tuple[str, Any]]:
    """Libraries of all runs, each with its version; runs of some models have more of them than others."""
    return {one for m in collection.manifests for one in (m.get("versions") or {}).items()}


def _check_whole(collection: Collection, results: Path) -> None:
    unfinished = collection.missing + len(collection.index.get("failed") or [])
    if unfinished:
        raise InputError(f"{results}: {unfinished} runs are missing or failed; run the scenario to its end first")
    made = _versions(collection) | {("hushnet", m.get("code")) for m in collection.manifests}
    if len(made) > len(dict(made)):
        raise InputError(f"{results}: its runs came of different versions of the code; run the scenario again")


def _texts(
    collection: Collection, origin: Mapping[str, bytes], place: str, absent: list[dict[str, Any]]
) -> dict[str, str]:
    """Texts that a bundle holds besides the files of the origin, by file name."""
    trust = " --trust-code" if any(name.endswith(".py") for name in origin) else ""
    run = f"hushnet run {place}scenario.yaml --out {RESULTS} --quiet{trust}"
    table = claims(collection, run)
    texts = {
        "claims.csv": csv_text(table),
        "data.csv": csv_text(_data(collection)),
        "requirements.txt": lock_file(*dict(_versions(collection))),
        "made-with.json": json_text(made_with(collection)),
        "rerun.sh": SCRIPT.format(run=run, check=CHECK),
    }
    names = sorted({*origin, *texts, "tables.csv", "SHA256SUMS"})
    texts["README.md"] = _readme(collection, names, len(table), place, absent)
    return texts


def _readme(collection: Collection, names: list[str], count: int, place: str, absent: list[dict[str, Any]]) -> str:
    made = made_with(collection)
    sources = sorted({str(manifest["task"]["notes"].get("source")) for manifest in collection.manifests})
    drawn = all(source.startswith("synthetic") for source in sources)
    get = NOTHING_TO_GET if drawn else PUBLISHED if _is_published(collection) else BY_PATH
    notes = _not_packed(collection, absent)
    wheel = next((name for name in names if name.endswith(".whl")), "")
    commit = f" (commit {made['commit']})" if made["commit"] else ""
    install = (IN_HERE if wheel else ELSEWHERE).format(wheel=wheel, commit=commit, code=made["hushnet"])
    return README.format(
        scenario=collection.index.get("scenario"),
        python=made["versions"]["Python"],
        install=install,
        minutes=minutes(collection),
        claims=count,
        files="\n".join(f"| {shlex.quote(name)} | {_about(name, place)} |" for name in names),
        data=f"Data: {', '.join(sources)}. {get}",
        notes="".join(f"\n{sentence}\n" for sentence in notes),
    )


def _is_published(collection: Collection) -> bool:
    tasks = [(manifest.get("scenario") or {}).get("task") or {} for manifest in collection.manifests]
    return any(is_published(task.get("kind")) for task in tasks)


def _not_packed(collection: Collection, absent: list[dict[str, Any]]) -> list[str]:
    """Sentences about what the experiment reads and a bundle lacks."""
    tasks = [(manifest.get("scenario") or {}).get("task") or {} for manifest in collection.manifests]
    data_sets = {task["kind"] for task in tasks if is_published(task.get("kind")) and not task.get("path")}
    return [*map(_bring, absent), *(GET.format(name=name) for name in sorted(data_sets))]


def _bring(entry: Mapping[str, Any]) -> str:
    """A sentence about a file that a bundle lacks; a whole path of this machine is nobody else's business."""
    path = Path(entry["path"])
    total = f" (SHA-256 {entry['sha256']})" if entry.get("sha256") else ""
    return BRING.format(path=path.name if path.is_absolute() else path, sum=total, why=entry["why"])


def _about(name: str, place: str) -> str:
    if name.endswith(".whl"):
        return "hushnet itself"
    known = {place + own if own in SCENARIO else own: about for own, about in ABOUT.items()}
    return known.get(name, "code or data of the experiment")


def _data(collection: Collection) -> pd.DataFrame:
    """One row per data seed and grid point: a hash of what the runs read, and of the file that it came from."""
    rows = []
    for manifest in collection.manifests:
        notes = manifest["task"]["notes"]
        row = {"data_seed": manifest.get("data_seed"), **(manifest.get("grid") or {})}
        rows.append(
            {**row, "fingerprint": manifest.get("data"), "source": notes.get("source"), "md5": notes.get("md5")}
        )
    frame = pd.DataFrame(rows)
    return frame.loc[~frame.astype(str).duplicated()]


def _differences(recorded: Path, here: dict[str, Any]) -> list[str]:
    """Sentences about versions that are not those of the bundle."""
    if not (recorded.is_symlink() or recorded.exists()):
        return []
    then = read_json(recorded)
    versions = then.get("versions", {})
    if not isinstance(versions, dict):
        raise InputError(f"{recorded}: is damaged, its versions are no mapping; give the files of a bundle")
    pairs = {"hushnet": (then.get("hushnet"), here["hushnet"])}
    names = sorted({*versions, *here["versions"]})
    pairs |= {name: (versions.get(name), here["versions"].get(name)) for name in names}
    return [f"{name} is {now} here and was {was} in the bundle" for name, (was, now) in pairs.items() if was != now]


def _zipped(contents: Mapping[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in sorted(contents.items()):
            entry = zipfile.ZipInfo(name, WHEN)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o755 if name.endswith(".sh") else 0o644) << 16
            archive.writestr(entry, content)
    return stream.getvalue()
