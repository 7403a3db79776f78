"""Strangers' folders and bundles: whatever stands in one, every command says a sentence and stays inside.

What is behind a link is neither shown nor changed, nothing is written anywhere else, and little memory is taken.

``python -m tests.campaigns.strangers [--seed 0] [--cases 300] [--replay 17]``
"""

from __future__ import annotations

import copy
import json
import os
import random
import shutil
import socket
import tempfile
import zipfile
from functools import cache
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from .campaign import campaign, command, exit_with
from .folders import FOREIGN, damage
from .hostile import mutate

SECRET = "5up3r-53cr37-of-somebody-else"
SCENARIO = """\
schema: 1
scenario: parcel
task: {kind: csv, path: rows.csv, label: y, agent: who}
topology: {kind: edge_list, path: edges.csv}
protocols: {a: {kind: local}, b: {kind: solitary, steps: 1}}
stop: {time: 2}
record: {every: 1.0, metrics: [accuracy, traffic]}
engine: event
seeds: 2
figures:
  - {y: accuracy, x: time, name: curve, style: {formats: [png], resolution: 60}}
"""
TEXTS = [
    b"", b"\0" * 50, b"\xff\xfe\xff", b"a,b\n1\n1,2,3\n", b'a,"b\n1', b"a\n" * 9000, b"x" * 2**21, b"a,a,a\n1,2,3\n",
    b"\r\r\r", b"claim,value,tolerance\n", b"claim,value,tolerance\nx,nan,0\n",
    b"claim,value,tolerance\nx,1e999,1e999\n", b"claim,value,tolerance\n\x1b[2Jx,1,1\n",
    b"claim,value,tolerance\nfinal accuracy of a,9,-1\n", b"protocol,seed,grid,table,sha256\n",
    *(text.encode() for text in FOREIGN), b'{"versions": 5}', b'{"versions": [1]}', b'{"versions": {"numpy": {}}}',
    b'{"files": 3}', b'{"files": [{"path": "rows.csv", "at": "/dev/zero", "why": "x"}]}', b'{"files": [{"path": 1}]}',
]  # fmt: skip
ALLOWED = {"--check": "ends with code 1", "replay": "ends with code 3"}
NAMES = ["../../out", "/tmp/out", "..", ".", "", "a/b", "~", "http://x", "x" * 300, "\n", "con.zip", "\x1b[2J"]


@cache
def parcel() -> Path:
    """A folder of results and its bundle, unpacked, made once."""
    folder = Path(tempfile.mkdtemp(dir="/tmp", prefix="hushnet-campaign-"))
    (folder / "s.yaml").write_text(SCENARIO)
    rows = "".join(f"{k % 5},{k % 3},{'xy'[k % 7 > 3]},{k % 3}\n" for k in range(30))
    (folder / "rows.csv").write_text("u,v,y,who\n" + rows)
    (folder / "edges.csv").write_text("source,target,weight\n0,1,1\n1,2,2\n")
    for arguments in (
        ["run", str(folder / "s.yaml"), "--out", str(folder / "parcel" / "results"), "--quiet"],
        ["report", str(folder / "parcel" / "results")],
        ["bundle", str(folder / "parcel" / "results"), "--out", str(folder / "b.zip")],
    ):
        code, said, _ = command(arguments, seconds=600)
        assert code == 0, said
    with zipfile.ZipFile(folder / "b.zip") as archive:
        archive.extractall(folder / "parcel" / "bundle")
    return folder


def bomb(path: Path, rng: random.Random) -> None:
    """A table of the same columns that declares far more rows than its bytes can be worth."""
    schema = pq.read_schema(path)
    piece = pa.table([pa.nulls(2_000_000, field.type) for field in schema], schema=schema)
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for _ in range(rng.choice([5, 50])):
            writer.write_table(piece)


def special(path: Path, rng: random.Random, secrets: Path) -> str:
    """Put something in the place of a file or folder that is none, or is somebody else's."""
    kind = rng.choice(["pipe", "socket", "folder", "link", "link", "link", "device", "dangling", "circle", "sparse"])
    whole = path.is_dir() and not path.is_symlink()
    if path.exists() or path.is_symlink():
        path.rename(secrets / "moved") if rng.random() < 0.3 else shutil.rmtree(path) if whole else path.unlink()
    path.parent.mkdir(parents=True, exist_ok=True)
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as open_socket:
            open_socket.bind(os.path.relpath(path)) if len(os.path.relpath(path)) < 100 else path.touch()
    elif kind == "folder":
        path.mkdir()
    elif kind == "sparse":
        with path.open("wb") as stream:
            stream.truncate(2**41)
    else:
        moved, own = secrets / "moved", secrets / ("folder" if whole else "secret.txt")
        places = {"link": moved if moved.exists() else own, "device": Path("/dev/zero"), "circle": path}
        path.symlink_to(places.get(kind, secrets / "gone"))
    return kind


def disturb(root: Path, rng: random.Random, secrets: Path) -> str:
    """Do something to a parcel; what, in words."""
    results = root / "results"
    files = [path for path in sorted(root.rglob("*")) if path.suffix != ".whl" and path.name != "SHA256SUMS"]
    folders = [path for path in files if path.is_dir() and path.parent != root]  # those a user names may be links
    plain = [path for path in files if path.is_file()]
    texts = [path for path in plain if path.suffix in (".csv", ".json", ".yaml", ".txt", ".html")]
    kind = rng.choice(["special", "special", "folder", "text", "text", "json", "name", "bomb", "old", "extra"])
    if kind in ("special", "folder"):
        path = rng.choice(plain if kind == "special" else folders)
        return f"{kind}: {special(path, rng, secrets)} {path.relative_to(root)}"
    if kind == "text":
        path = rng.choice(texts)
        path.write_bytes(rng.choice(TEXTS))
    elif kind == "json":
        path = rng.choice([path for path in texts if path.suffix == ".json"])
        content = copy.deepcopy(json.loads(path.read_text()))
        said = [mutate(content, rng) for _ in range(rng.choice([1, 1, 3]))]
        path.write_text(json.dumps(content))
        return f"json: {path.relative_to(root)}: {said}"
    elif kind == "name":
        path = results / "index.json"
        content = json.loads(path.read_text())
        content[rng.choice(["scenario", "style", "time_unit"])] = rng.choice(NAMES)
        content["figures"][0]["name"] = rng.choice(NAMES)
        path.write_text(json.dumps(content))
    elif kind == "bomb":
        path = rng.choice([path for path in plain if path.suffix == ".parquet"])
        bomb(path, rng)
        if rng.random() < 0.5:
            for manifest in results.glob("*/manifest.json"):
                content = json.loads(manifest.read_text())
                content.pop("checksums")
                manifest.write_text(json.dumps(content))
    elif kind == "extra":
        taken = [
            "report.html",
            "parcel-bundle.zip",
            "replay.html",
            "compare",
            "figures/curve.csv",
            "run.log",
            "compare/differences.csv",
        ]
        path = results / rng.choice(taken)
        return f"extra: {special(path, rng, secrets)} {path.relative_to(root)}"
    else:
        return damage(results, rng)
    return f"{kind}: {path.relative_to(root)}"


def picture(folder: Path) -> dict[str, object]:
    """What stands in a folder, and what the files have."""
    return {str(path): path.read_bytes() if path.is_file() else None for path in sorted(folder.rglob("*"))}


def attempt(rng: random.Random, folder: Path, loud: bool) -> tuple[str, list[str]]:
    """Disturb a parcel, and have every command read it."""
    secrets, root = folder / "secrets", folder / "parcel"
    (secrets / "folder").mkdir(parents=True)
    for path in (secrets / "secret.txt", secrets / "folder" / "scenario.yaml", secrets / "folder" / "manifest.json"):
        path.write_text(f"{SECRET}\n")
    shutil.copytree(parcel() / "parcel", root)
    what = disturb(root, rng, secrets)
    before, here = picture(secrets), sorted(path.name for path in folder.iterdir())
    results, bundle = str(root / "results"), root / "bundle"
    wrong, codes = [], []
    for arguments in (
        ["plot", results], ["compare", results], ["report", results], ["bundle", results], ["replay", results],
        ["bundle", results, "--check", str(bundle / "claims.csv")],
        ["run", str(bundle / "scenario.yaml"), "--out", str(root / "again"), "--quiet"],
        ["run", str(parcel() / "s.yaml"), "--out", results, "--quiet"],
    ):  # fmt: skip
        code, said, failures = command(arguments, seconds=120)
        codes.append(code)
        # A replay may differ from what was saved, and claims need not hold.
        allowed = ALLOWED.get("--check" if "--check" in arguments else arguments[0], "-")
        failures = [failure for failure in failures if not failure.startswith(allowed)]
        wrong += [f"{what}: {arguments[0]} {failure}" for failure in failures]
        if loud:
            print(f"{what}: {arguments[0]}: {code} {said}")
    if picture(secrets) != before:
        wrong.append(f"{what}: changes what is behind a link")
    if sorted(path.name for path in folder.iterdir()) != here:
        wrong.append(f"{what}: writes elsewhere")
    for path in root.rglob("*"):
        made = path.suffix in (".html", ".zip", ".csv", ".tex", ".svg", ".json") and not path.is_symlink()
        if made and path.is_file() and shown(path):
            wrong.append(f"{what}: {path.relative_to(root)} has another file's lines")
    return f"{what.split(':')[0]}: {'read' if not any(codes) else 'refused'}", wrong


def shown(path: Path) -> bool:
    """Whether a file, or one that is packed in it, has somebody else's secret."""
    if path.stat().st_size > 2**27:
        return False
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            return any(SECRET.encode() in archive.read(name) for name in archive.namelist())
    return SECRET.encode() in path.read_bytes()


if __name__ == "__main__":
    try:
        exit_with(campaign("strangers", attempt, cases=300))
    finally:
        shutil.rmtree(parcel(), ignore_errors=True)
