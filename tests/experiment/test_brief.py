"""What `hushnet run` prints at its end: an answer, a table, and what to act on, in 80 columns."""

from __future__ import annotations

import pytest
from hushnet.simulator.cli import main

PNG = "style={formats: [png]}"
WORDS = ["run", "quickstart", "--quiet", "--set", "stop.time=4", "--set", "task.agents=30", "--set", PNG]


@pytest.fixture(scope="module")
def said(tmp_path_factory):
    """What is printed by verbosity and number of seeds."""
    folder = tmp_path_factory.mktemp("brief")

    def printed(capsys, monkeypatch, *words):
        monkeypatch.chdir(folder)
        monkeypatch.setenv("COLUMNS", "80")
        capsys.readouterr()
        assert main([*WORDS, *words]) == 0
        return capsys.readouterr().out.splitlines()

    return printed


def test_a_summary_fits_a_terminal(said, capsys, monkeypatch):
    lines = [line for line in said(capsys, monkeypatch, "--seeds", "3") if line.strip()]
    assert len(lines) <= 22
    assert max(map(len, lines)) <= 80
    assert lines[0].startswith("By final accuracy")
    assert any(line.startswith("without learning: ") for line in lines)
    warned = [line for line in lines if line.startswith("warning: private coordinate descent: releases planned")]
    assert len(warned) == 1, "seeds that say the same with other numbers are one warning"
    assert lines[-1].startswith("figures: results/quickstart/figures: accuracy.png")


def test_what_a_summary_leaves_out_is_there_where_it_is_asked_for(said, capsys, monkeypatch):
    brief = "\n".join(said(capsys, monkeypatch, "--seeds", "3"))
    whole = "\n".join(said(capsys, monkeypatch, "--seeds", "3", "--verbose"))
    assert "--verbose" in brief
    for words in ("assumed public", "No epsilon covers", "engine: ", "graph: "):
        assert words not in brief
        assert words in whole.replace("\n", " ")


def test_a_sweep_has_a_column_for_its_ends_and_its_middle(said, capsys, monkeypatch):
    swept = ["--set", "sweep={network.loss: [0.0, 0.1, 0.2, 0.3, 0.4]}", "--set", "figures=[]", "--out", "swept"]
    lines = [line.rstrip() for line in said(capsys, monkeypatch, "--seeds", "2", *swept) if line.strip()]
    assert max(map(len, lines)) <= 80
    head = next(line for line in lines if "accuracy by loss" in line)
    assert head.split()[-3:] == ["0.0", "0.2", "0.4"]
    assert (
        sum(line.startswith(("purely local", "coordinate descent", "private coordinate descent")) for line in lines)
        == 3
    )


def test_a_sweep_marks_a_claim_below_what_is_verified_without_colours(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    words = ["--quiet", "--seeds", "1", "--set", "stop.time=3", "--set", "task.agents=30", "--set", "figures=[]"]
    assert main(["run", "bellet2018-fig2a", *words, "--set", "sweep={network.loss: [0.0, 0.1]}"]) == 0
    rows = [line for line in capsys.readouterr().out.splitlines() if line.startswith("private, eps")]
    assert len(rows) == 3
    assert all("\N{WARNING SIGN}" in row for row in rows)
