"""The tutorials do what they say: their blocks are executed one after the other in an empty folder."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

import pytest
from hushnet.simulator.cli import main

FOLDER = Path(__file__).resolve().parents[1] / "scenarios" / "tutorials"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", flags=re.DOTALL | re.MULTILINE)
FILE = re.compile(r"# ([\w-]+\.\w+)\n")


def blocks(name):
    return BLOCK.findall((FOLDER / f"{name}.md").read_text())


def execute(name):
    """Execute a tutorial's blocks here; a block whose first line is ``# file.name`` is written to that file."""
    names = {"__name__": name}
    for language, text in blocks(name):
        file = FILE.match(text)
        if file:
            Path(file[1]).write_text(text)
        elif language == "bash":
            for line in text.splitlines():
                program, *arguments = shlex.split(line)
                assert program == "hushnet"
                assert main(arguments) == 0, line
        elif language == "python":
            exec(compile(text, f"{name}.md", "exec"), names)


@pytest.fixture
def empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield tmp_path
    for module in ("gossip", "private_gossip"):
        sys.modules.pop(module, None)


def test_every_tutorial_is_executed_here():
    assert {path.stem for path in FOLDER.iterdir()} == {"first-protocol", "comparison-for-a-paper"}
    assert all(
        language in ("bash", "python", "yaml", "text") for path in FOLDER.iterdir() for language, _ in blocks(path.stem)
    )


def test_your_first_protocol(empty_folder, capsys):
    execute("first-protocol")
    shown = next(text for language, text in blocks("first-protocol") if language == "text")
    asides = r": (View|Out|Any)|\s*-> None|^ +\"\"\".*\n"
    skeleton = re.sub(asides, "", Path("gossip.py").read_text(), flags=re.MULTILINE)
    assert " ".join(shown.split()) in " ".join(skeleton.split())
    assert {path.suffix for path in Path("results/first/figures").iterdir()} >= {".png", ".pdf", ".csv"}


def test_a_comparison_for_a_paper(empty_folder, capsys):
    execute("comparison-for-a-paper")
    said = capsys.readouterr().out
    assert re.search(r"\b30 runs", said)
    assert re.search(r"all \d+ claims hold", said)
    tables = {path.name for path in Path("results/slow-messages/compare").iterdir()}
    assert tables >= {"differences.csv", "differences.tex"}
    assert Path("results/slow-messages/report.html").exists()
