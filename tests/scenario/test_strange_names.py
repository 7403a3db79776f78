"""Names with brackets, dollars and line breaks reach terminal and tables as they are."""

from __future__ import annotations

from hushnet.simulator.cli import main

TEXT = """\
schema: 1
scenario: strange
task: {kind: linear_classification, agents: 6, dimension: 3, samples: [10, 20], points: ball}
topology: {kind: complete}
engine: event
protocols:
  private:
    kind: coordinate_descent
    mu: 0.1
    label: LABEL
    privacy: {mechanism: gaussian, target: {verified: 3.0, delta: 0.001}, updates: 50, sensitivity: clip, clip: 0.2}
  local: {kind: local}
stop: {time: 3}
record: {every: 1.0, metrics: [accuracy]}
seeds: 2
"""


def made(tmp_path, label, out="out"):
    (tmp_path / "s.yaml").write_text(TEXT.replace("LABEL", label))
    return main(["run", str(tmp_path / "s.yaml"), "--out", str(tmp_path / out), "--quiet"])


def test_brackets_in_labels_and_folders_are_no_marks_of_style(tmp_path, capsys):
    assert made(tmp_path, '"[/] [red]a"', "[bold]m") == 0
    shown = capsys.readouterr().out
    assert "warning: [/] [red]a: releases planned" in shown
    assert "[bold]m" in shown
