"""Compiled code is kept by what it was made from: never stale, never trusted blindly, and shared by processes."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import grimp
import numpy as np
import pytest
from hushnet.agents import compilation
from numba import TypingError

PACKAGE = compilation.PACKAGE


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty store."""
    monkeypatch.setenv(compilation.FOLDER, str(tmp_path / "code"))
    compilation.store.cache_clear()
    yield tmp_path / "code"
    compilation.store.cache_clear()


def doubled(number):
    return 2 * number


def test_what_is_stored_is_found(folder):
    assert not compilation.is_stored()
    first, second = compilation.compiled(doubled), compilation.compiled(doubled)
    assert (first(21), second(21)) == (42, 42)
    assert [form.stats.cache_hits.total() for one in (first, second) for form in one.forms.values()] == [0, 1]
    assert list(folder.glob("*/*/*/*.nbi"))
    assert [compilation.is_stored(name) for name in ("*", "test_compilation.doub*", "other.*")] == [True, True, False]


def test_who_traces_python_does_not_see_the_compiler(folder):
    seen, before = set(), sys.gettrace()
    sys.settrace(lambda frame, event, argument: seen.add(frame.f_code.co_filename))
    try:
        assert compilation.compiled(doubled)(21) == 42
        traced = sys.gettrace()
    finally:
        sys.settrace(before)
    assert traced is not None
    assert compilation.__file__ in seen
    assert not [file for file in seen if file.endswith("typeinfer.py")]


class Pair(NamedTuple):
    one: Any
    other: Any


def test_every_form_of_a_function_has_a_folder_of_its_own(folder):
    """Whole numbers, numbers and arrays of every kind; also those in tables."""
    made = compilation.compiled(lambda pair, number: pair.one[0] + number)
    whole, real = np.ones(2, dtype=np.int64), np.full(2, 0.5)
    assert made(Pair(whole, real), 1) == 2
    assert made(Pair(real, real), 1) == 1.5
    assert made(Pair(real[::2], real), 2.25) == 2.75
    assert made(Pair(whole, whole), np.int64(3)) == 4
    assert len(made.forms) == len(list(folder.glob("*/*/*/*.nbi"))) == 4
    with pytest.raises(TypingError):
        made("pair", 1)


def test_another_source_is_another_version(folder, monkeypatch, tmp_path):
    before = compilation._version()
    for pattern in compilation.SOURCES:
        for path in PACKAGE.glob(pattern):
            copy = tmp_path / "package" / path.relative_to(PACKAGE)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(path.read_bytes())
    monkeypatch.setattr(compilation, "PACKAGE", tmp_path / "package")
    assert compilation._version() == before
    with (tmp_path / "package" / "simulator/rules/lazy.py").open("a") as file:
        file.write("#")
    assert compilation._version() != before


def test_all_that_compiled_code_is_made_from_is_in_the_version():
    """Modules that declare compiled functions, and all of the package that they import."""
    named = {path for pattern in compilation.SOURCES for path in PACKAGE.glob(pattern)}
    graph = grimp.build_graph("hushnet.agents", "hushnet.protocols", "hushnet.simulator", cache_dir=None)
    declaring = graph.find_modules_that_directly_import("hushnet.agents.compilation")
    declaring |= graph.find_modules_that_directly_import("hushnet.simulator.rules.forms")
    compiled = {one for one in declaring if _declares(one)}
    assert len(compiled) > 20
    for module in sorted(compiled):
        for one in {module, *graph.find_modules_directly_imported_by(module)}:
            assert _file(one) in named, (module, one)


def _file(module: str) -> Path:
    path = PACKAGE.joinpath(*module.split(".")[1:])
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def _declares(module: str) -> bool:
    return re.search(r"(?<!\w)(compiled|part)\(|@(compiled|part|rule)\b", _file(module).read_text()) is not None


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="files have no owners here")
def test_a_folder_that_others_may_write_is_not_used(folder):
    folder.mkdir()
    folder.chmod(0o777)
    used, why = compilation.store()
    assert used is None
    assert why == f"{folder} belongs to another user or can be written by others"
    assert compilation.compiled(doubled)(2) == 4
    assert not list(folder.rglob("*.nbi"))


def test_versions_that_were_not_used_for_long_are_removed(folder):
    for k in range(compilation.KEPT_VERSIONS + 3):
        (folder / str(k)).mkdir(parents=True)
        os.utime(folder / str(k), (k, k))
    compilation.store()
    kept = {one.name for one in folder.iterdir()}
    assert len(kept) == compilation.KEPT_VERSIONS
    assert compilation._version() in kept
    assert not {"0", "1", "2"} & kept


def test_processes_share_what_one_has_compiled(tmp_path):
    script = tmp_path / "draws.py"
    script.write_text(
        "from hushnet.simulator.network.randomness import draw\n"
        "draw(1, 2, 3, 4, 5, 6, 7)\nprint(*(form.stats.cache_hits.total() for form in draw.forms.values()))\n"
    )
    environment = {**os.environ, compilation.FOLDER: str(tmp_path / "code")}
    said = [
        subprocess.run([sys.executable, script], env=environment, capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    ]
    assert said == ["0\n", "1\n"]


@pytest.mark.parametrize("first", ["numba", "hushnet.agents.loss_codes"])
def test_a_users_compiled_function_calls_ours_first_thing_in_a_process(first, tmp_path):
    code = f"""
import {first}
import numba
from hushnet.agents.loss_codes import slope_of

@numba.njit
def mine(score):
    return slope_of(1, score, 1.0)

print(mine(3.0), slope_of(1, 3.0, 1.0))
"""
    (tmp_path / "mine.py").write_text(code)
    command = [sys.executable, tmp_path / "mine.py"]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    assert said[0] == said[1]


MINIMISERS = """
import numpy as np
from hushnet.protocols.steps.kernels import minimisers

rng, agents, width = np.random.default_rng(0), 40, 7
offsets = np.r_[0, np.cumsum(rng.integers(1, 20, agents))].astype(np.int64)
rows, labels = rng.normal(size=(offsets[-1], width)), np.sign(rng.normal(size=offsets[-1]))
each, linear, out = np.ones(agents), rng.normal(size=(agents, width)), np.empty((agents, width))
starts = np.zeros_like(linear)
minimisers(rows, labels, offsets, np.arange(agents), each, 0.1 * each, linear, starts, 1e-10 * each, 0, out)
print(out.tobytes().hex())
"""


@pytest.mark.slow
def test_the_process_that_compiles_a_kernel_has_the_bits_of_those_that_load_it(tmp_path):
    """What is called and not inlined is another copy there, whose sums may have another order."""
    environment = {**os.environ, compilation.FOLDER: str(tmp_path / "code")}
    command = [sys.executable, "-c", MINIMISERS]
    compiled, loaded = (
        subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout for _ in range(2)
    )
    assert compiled == loaded
