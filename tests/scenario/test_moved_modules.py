"""A user's file that imports a module of hushnet from where it was before is told where it is."""

from __future__ import annotations

import pytest
from hushnet.agents.errors import InputError
from hushnet.protocols.user_files import load_module


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (
            "from hushnet.protocols.coordinate_descent import CoordinateDescent",
            r"mine\.py:2 raises ModuleNotFoundError: .*; it is hushnet\.protocols\.algorithms\.coordinate_descent now$",
        ),
        ("import hushnet.simulator.clocks", r"; it is hushnet\.simulator\.network\.clocks or hushnet\..*\.clocks now$"),
        ("import hushnet.protocols.nothing_like_it", r"No module named 'hushnet\.protocols\.nothing_like_it'$"),
        ("import hushnet.elsewhere.clocks", r"No module named 'hushnet\.elsewhere'$"),
        ("import nowhere.clocks", r"No module named 'nowhere'$"),
    ],
)
def test_a_module_that_has_moved_is_named(line, said, tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(f'"""Mine."""\n{line}\n')
    with pytest.raises(InputError, match=said):
        load_module(f"{file}:Mine", trust_code=True)
