"""No compiled step looks outside of an array: the forms of texts are compared with every index checked."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

FILES = ("kinds", "dual_averaging", "push_sum", "columns")


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
def test_no_index_of_a_compiled_step_is_out_of_bounds(name, tmp_path):
    """In a process of its own, whose code is compiled with numba's checks, which the step's own options leave out."""
    file = Path(__file__).with_name(f"test_texts_{name}.py")
    surroundings = {**os.environ, "NUMBA_BOUNDSCHECK": "1", "XDG_CACHE_HOME": str(tmp_path)}
    command = [sys.executable, "-m", "pytest", "-q", "-m", "not slow", "-p", "no:cacheprovider", str(file)]
    done = subprocess.run(command, env=surroundings, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:]
    assert " failed" not in done.stdout
