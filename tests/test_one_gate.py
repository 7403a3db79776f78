"""Files are read through one gate: nothing else opens, reads or has a library read a path."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
STOREYS = ("agents", "protocols", "simulator")
GATES = {
    "agents/input_files.py": "the gate",
    "agents/compilation.py": "our own sources, whose hash names the folder of compiled code",
    "agents/scratch.py": "writes what is new under a name of its own",
    "simulator/storage/files.py": "reads what hushnet wrote, by way of the gate, and syncs",
    "simulator/storage/store.py": "holds the lock's file open",
    "simulator/storage/dataset.py": "writes a table piece by piece, inside of a fresh folder",
    "simulator/cli/application.py": "the metadata of the installed package",
    "simulator/experiment/remote.py": "a file of a run that somebody is at, in a folder of its own",
    "simulator/cli/output_streams.py": "the null device in place of an output that is closed",
}
"""Who may open files, and why."""
MODULES = frozenset(
    (
        "pd",
        "pandas",
        "pq",
        "parquet",
        "pyarrow",
        "pa",
        "np",
        "numpy",
        "shutil",
        "io",
        "os",
        "tarfile",
        "zipfile",
        "mmap",
    )
)
READERS = ("read_", "load", "fromfile", "genfromtxt", "memmap", "memory_map", "copy", "fdopen", "ParquetFile")
"""How functions of those modules begin that are given paths."""
BYTES = ("np.load(io.BytesIO", "pd.read_csv(io.BytesIO", "pq.ParquetFile(pa.BufferReader", "Image.open(BytesIO")
"""Libraries that are given bytes."""
OTHERS = ("world", "self", "source", "Result")
"""Names whose ``open`` opens no path."""


def side_doors(text: str) -> list[str]:
    """The calls of a source by which a file would be read beside the gate, as ``line: call``."""
    found = []
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.Call):
            continue
        call, what = node.func, ast.unparse(node)
        if what.startswith(BYTES):
            continue
        if isinstance(call, ast.Name):
            wrong = call.id == "open"
        elif isinstance(call, ast.Attribute):
            owner = ast.unparse(call.value)
            wrong = call.attr in ("read_text", "read_bytes") and not owner.endswith("info")  # a distribution's metadata
            wrong |= call.attr == "open" and owner not in OTHERS
            wrong |= owner.split(".")[0] in MODULES and "(" not in owner and call.attr.startswith(READERS)
            wrong &= owner not in ("copy", "json")
        else:
            wrong = False
        if wrong:
            found.append(f"{node.lineno}: {what[:80]}")
    return found


@pytest.mark.parametrize("storey", STOREYS)
def test_no_file_is_opened_outside_the_gate(storey):
    files = sorted((ROOT / storey).rglob("*.py"))
    assert len(files) > 20
    names = {path.relative_to(ROOT).as_posix(): path for path in files}
    beside = {name: side_doors(path.read_text()) for name, path in names.items() if name not in GATES}
    assert {name: doors for name, doors in beside.items() if doors} == {}


@pytest.mark.parametrize(
    "line",
    [
        "open(path)", "path.open()", "path.read_text()", "Path(x).read_bytes()", "io.open(path)", "os.open(path, 0)",
        "pd.read_csv(path)", "pd.read_parquet(path)", "pq.read_table(path)", "pq.read_schema(path)",
        "pyarrow.parquet.read_table(path)", "pq.ParquetFile(path)", "np.load(path)", "np.loadtxt(path)",
        "shutil.copytree(a, b)", "zipfile.ZipFile.open(x)",
    ],
)  # fmt: skip
def test_a_side_door_would_be_seen(line):
    assert side_doors(line) == [f"1: {line}"]


def test_whoever_may_open_files_still_does():
    assert [name for name in GATES if not side_doors((ROOT / name).read_text())] == []


TABLES = "simulator/storage/plain_text.py"
"""Who alone writes CSV: in its tables no cell is a formula."""


def writers_of_tables(text: str) -> list[str]:
    """The calls of a source that write CSV, as ``line: call``."""
    calls = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]
    return [
        f"{node.lineno}: {ast.unparse(node)}"
        for node in calls
        if ast.unparse(node.func).endswith(("csv.writer", "DictWriter", "to_csv", "write_csv", "savetxt"))
    ]


def test_one_place_writes_csv():
    beside = {
        path.relative_to(ROOT).as_posix(): writers_of_tables(path.read_text())
        for storey in STOREYS
        for path in sorted((ROOT / storey).rglob("*.py"))
    }
    assert [name for name, calls in beside.items() if calls] == [TABLES], beside


@pytest.mark.parametrize(
    "line", ["table.to_csv(path)", "csv.writer(stream)", "DictWriter(stream, names)", "np.savetxt(path, x)"]
)
def test_another_writer_of_csv_would_be_seen(line):
    assert writers_of_tables(line) == [f"1: {line}"]
