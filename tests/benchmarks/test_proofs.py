"""Proofs are measured in two checkouts by turns."""

from __future__ import annotations

import pytest

from . import proofs


@pytest.mark.slow
def test_a_proof_is_measured_here_and_in_another_checkout(capsys, monkeypatch):
    monkeypatch.setattr(proofs, "NAMES", proofs.NAMES[:1])
    monkeypatch.setattr(proofs, "MOST", 1e9)
    assert proofs.main([str(proofs.HERE), "--turns", "1"]) == 0
    row = capsys.readouterr().out.splitlines()[-1].split("|")
    assert row[1].strip() == proofs.NAMES[0]
    assert float(row[2].removesuffix("s ")) > 0
