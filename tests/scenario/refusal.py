"""How the shell refuses a scenario: in one sentence, at its line, with what helps."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest
from hushnet.simulator.cli import main


def check_refusal(
    path: Path, start: str, says: Iterable[str], capsys: pytest.CaptureFixture[str], *, options: Iterable[str] = ()
) -> None:
    """``hushnet check`` says one sentence with this beginning and with these words, and nothing else."""
    assert main(["check", str(path), *options]) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.count("\n") == 1, output.err
    assert "Traceback" not in output.err
    assert output.err.startswith(start), output.err
    for words in says:
        assert words in output.err
