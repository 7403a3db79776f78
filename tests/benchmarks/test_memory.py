"""The benchmark of memory does what it says, for a handful of agents."""

from __future__ import annotations

import pytest

from .memory import allocated, main


def test_what_a_world_allocates_is_named_by_file():
    found = allocated(60)
    assert found["allocated: simulator/tables/run.py"] > 50
    assert all(value >= 0 for value in found.values())


@pytest.mark.slow
def test_it_prints_a_column_a_size(capsys):
    main(["--agents", "40", "60"])
    head, *rows = capsys.readouterr().out.splitlines()
    assert head.split()[-2:] == ["40", "60"]
    assert any(row.startswith("resident: the world") for row in rows)
