"""The tutorials do what they say: their blocks are executed one after the other in an empty folder."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from .snippets import blocks, execute

FOLDER = Path(__file__).resolve().parents[1] / "scenarios" / "tutorials"


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
        language in ("bash", "python", "yaml", "text") for path in FOLDER.iterdir() for language, _ in blocks(path)
    )


def test_your_first_protocol(empty_folder, capsys):
    execute(FOLDER / "first-protocol.md")
    shown = next(text for language, text in blocks(FOLDER / "first-protocol.md") if language == "text")
    asides = r": Any|\s*-> None|^ +\"\"\".*\n"
    skeleton = re.sub(asides, "", Path("gossip.py").read_text(), flags=re.MULTILINE)
    assert " ".join(shown.split()) in " ".join(skeleton.split())
    assert {path.suffix for path in Path("results/first/figures").iterdir()} >= {".png", ".pdf", ".csv"}


@pytest.mark.slow
def test_a_comparison_for_a_paper(empty_folder):
    said = execute(FOLDER / "comparison-for-a-paper.md")
    assert re.search(r"\b30 runs", said)
    assert re.search(r"all \d+ claims hold", said)
    tables = {path.name for path in Path("results/slow-messages/compare").iterdir()}
    assert tables >= {"differences.csv", "differences.tex"}
    assert Path("results/slow-messages/report.html").exists()
