"""The repository keeps its own promises: packages, layers, docstring examples, README."""

from __future__ import annotations

import ast
import doctest
import importlib
import os
import re
import shlex
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from .durations import NONE, listed, longest, seconds_of

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("simulator", "agents", "protocols", "scenarios")
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
README = (ROOT / "README.md").read_text()
MODULES = sorted(
    "hushnet." + ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    for folder in FOLDERS
    for path in (ROOT / folder).rglob("*.py")
    if re.search("^ *>>> ", path.read_text(), flags=re.MULTILINE)
)
"""Modules whose docstrings have examples."""


def blocks(language: str) -> list[str]:
    """Fenced code blocks of the README."""
    return re.findall(rf"^```{language}\n(.*?)^```$", README, flags=re.DOTALL | re.MULTILINE)


def test_every_folder_with_code_is_a_package_that_is_installed():
    settings = PYPROJECT["tool"]["setuptools"]
    found = {
        "hushnet." + ".".join(path.parent.relative_to(ROOT).parts)
        for folder in FOLDERS
        for path in (ROOT / folder).rglob("__init__.py")
    }
    with_code = {
        "hushnet." + ".".join(path.parent.relative_to(ROOT).parts)
        for folder in FOLDERS
        for path in (ROOT / folder).rglob("*.py")
    }
    assert set(settings["packages"]) == found == with_code
    assert settings["package-dir"] == {"hushnet": "."}


def test_files_that_are_not_code_are_package_data():
    settings = PYPROJECT["tool"]["setuptools"]
    every = {path for name in FOLDERS for path in (ROOT / name).rglob("*") if path.is_file()}
    files = {path for path in every if "__pycache__" not in path.parts and path.suffix != ".py"}
    data = settings["package-data"]
    folders = {package: ROOT / package.removeprefix("hushnet.").replace(".", "/") for package in data}
    assert files == {path for package in data for pattern in data[package] for path in folders[package].glob(pattern)}


def test_type_checkers_are_told_that_every_folder_is_typed():
    """Below a namespace, each folder says so for itself (PEP 561)."""
    for folder in FOLDERS:
        assert (ROOT / folder / "py.typed").is_file()
        assert "py.typed" in PYPROJECT["tool"]["setuptools"]["package-data"][f"hushnet.{folder}"]


def test_imports_point_down(tmp_path):
    """import-linter needs one importable tree, so the folders are linked into a package of that name."""
    package = tmp_path / "hushnet"
    package.mkdir()
    (package / "__init__.py").touch()
    for folder in FOLDERS:
        (package / folder).symlink_to(ROOT / folder)
    done = subprocess.run(
        [Path(sys.executable).parent / "lint-imports", "--config", ROOT / "pyproject.toml", "--no-cache"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "7 kept, 0 broken" in done.stdout


def test_code_inside_imports_relatively():
    offenders = [
        str(path.relative_to(ROOT))
        for folder in FOLDERS
        for path in (ROOT / folder).rglob("*.py")
        if re.search(r"^\s*(from|import) hushnet", _without_strings(path.read_text()), flags=re.MULTILINE)
    ]
    assert offenders == []


def _without_strings(source: str) -> str:
    return re.sub(r"\"\"\".*?\"\"\"|'''.*?'''", "", source, flags=re.DOTALL)


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples_hold(name):
    result = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS)
    assert result.failed == 0 < result.attempted


def test_the_readme_has_two_commands_and_they_are_what_is_run():
    """Continuous integration runs both, taken from this page, in fresh environments; here their last parts run."""
    first, second = (block.strip() for block in blocks("bash"))
    for command, extra in ((first, "-e ."), (second, "-e '.[test]'")):
        assert command.startswith(f"python3 -m venv .venv && .venv/bin/pip install -q {extra} && .venv/bin/")
    assert first.endswith("hushnet run quickstart")
    assert second.endswith("pytest -n 2 -m 'not slow'")


def run_here(words, folder):
    """Run a command of a page in a folder."""
    program = Path(sys.executable).parent / words[0]
    done = subprocess.run(
        [program, *words[1:], "--quiet"], cwd=folder, capture_output=True, text=True, check=False, timeout=3000
    )
    assert done.returncode == 0, done.stderr


def assert_same_picture(page, drawn):
    """A picture of a page is the one that was drawn, up to a hundredth of its dots."""
    with Image.open(page) as one, Image.open(drawn) as other:
        assert one.size == other.size, f"{page} is stale: copy {drawn} there"
        difference = np.abs(np.asarray(one.convert("L"), int) - np.asarray(other.convert("L"), int))
    assert np.mean(difference > 64) < 1e-3, f"{page} is stale: copy {drawn} there"


def test_the_readmes_run_command_makes_its_first_picture(tmp_path):
    run_here(blocks("bash")[0].strip().rpartition("&& .venv/bin/")[2].split(), tmp_path)
    made = {path.name for path in (tmp_path / "results/quickstart/figures").iterdir()}
    assert {"accuracy.png", "accuracy.pdf", "accuracy.svg", "accuracy.csv", "objective.png"} <= made
    assert_same_picture(ROOT / "results/quickstart-accuracy.png", tmp_path / "results/quickstart/figures/accuracy.png")


@pytest.mark.slow
def test_the_readmes_second_picture_is_what_its_command_gives(tmp_path):
    """Some five minutes."""
    page = (ROOT / "results/README.md").read_text()
    command = next(line for line in page.splitlines() if line.startswith("hushnet run latency-sweep"))
    run_here(shlex.split(command), tmp_path)
    drawn = tmp_path / "results/latency-sweep/figures/latency-sweep.png"
    assert_same_picture(ROOT / "results/latency-sweep.png", drawn)


@pytest.mark.parametrize("command", [line.split("  ")[0] for line in blocks("text")[0].splitlines()])
def test_the_readmes_shell_examples_are_commands(command):
    """Their words are admissible; what they name beyond the shipped scenarios is the reader's own."""
    from hushnet.simulator.cli import app
    from typer.main import get_command

    words = shlex.split(command.split(" > ")[0])[1:]
    group = get_command(app)
    assert words[0] in group.commands
    found = group.commands[words[0]]
    found = found.commands[words[1]] if hasattr(found, "commands") else found  # of `hushnet new scenario`, the latter
    options = {name for parameter in found.params for name in parameter.opts}
    assert {word for word in words if word.startswith("--")} <= options


def test_the_readmes_scenario_and_protocol_run(tmp_path):
    (tmp_path / "scenario.yaml").write_text(blocks("yaml")[0].replace("time: 30", "time: 2"))
    protocol = blocks("python")[0]
    assert len([line for line in protocol.splitlines() if line.strip() and "import" not in line]) <= 25
    (tmp_path / "mine.py").write_text(protocol)
    from hushnet.simulator.experiment import run

    collection = run(
        tmp_path / "scenario.yaml",
        out=tmp_path / "results",
        seeds=1,
        overrides=(
            "protocols.mine={kind: './mine.py:Mine', step_size: 0.2}",
            "limits.memory=16 GiB",  # the process holds all that the tests before this one have compiled
        ),
        trust_code=True,
    )
    assert set(collection.trace["protocol"]) == {"local", "cd", "cd-private", "mine"}


def test_no_two_modules_have_one_name():
    files = [path.name for room in ("agents", "protocols", "simulator") for path in (ROOT / room).rglob("*.py")]
    assert {name for name in files if files.count(name) > 1} == {"__init__.py", "__main__.py"}


def test_no_two_classes_have_one_name():
    found: dict[str, list[str]] = {}
    for folder in FOLDERS:
        for path in (ROOT / folder).rglob("*.py"):
            for node in ast.parse(path.read_text()).body:
                if isinstance(node, ast.ClassDef):
                    found.setdefault(node.name, []).append(str(path.relative_to(ROOT)))
    assert {name: files for name, files in found.items() if len(files) > 1} == {}


def test_names_of_what_is_not_whole_yet_come_from_one_place():
    """Nobody can foresee them there; a name that somebody can is a place for a link of theirs."""
    makes = re.compile(r"mktemp|\.hushnet-|[\"'][^\"'\s]*\.(?:tmp|temp|part|new)\b|with_name\(.*(?:getpid|uuid)")
    sources = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")]
    found = {str(path.relative_to(ROOT)) for path in sources if makes.search(path.read_text())}
    assert found == {"agents/scratch.py"}


def test_long_source_files_say_why():
    """About 300 lines a file is the aim; nothing is far over it."""
    lengths = {
        str(path.relative_to(ROOT)): len(path.read_text().splitlines())
        for folder in FOLDERS
        for path in (ROOT / folder).rglob("*.py")
    }
    assert {name: lines for name, lines in lengths.items() if lines > 480} == {}


def documented_parameters(text: str) -> list[str]:
    """Names in a docstring's section of parameters."""
    if "Parameters\n----------\n" not in text:
        return []
    section = re.split(r"\n[A-Z][a-z ]+\n---", text.split("Parameters\n----------\n")[1])[0]
    heads = [line.split(" : ")[0] for line in section.splitlines() if line and not line.startswith(" ")]
    return [name.strip().lstrip("*") for head in heads for name in head.split(",")]


def parameters_of(node: ast.FunctionDef | ast.ClassDef) -> set[str]:
    """Names of a function's parameters, or of those that make an object; empty if a base class has them."""
    if isinstance(node, ast.ClassDef):
        made = [one for one in node.body if isinstance(one, ast.FunctionDef) and one.name in ("__init__", "__new__")]
        fields = {
            one.target.id for one in node.body if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name)
        }
        return parameters_of(made[0]) if made else set() if node.bases and not fields else fields
    given = node.args
    rest = [one for one in (given.vararg, given.kwarg) if one is not None]
    return {one.arg for one in [*given.posonlyargs, *given.args, *given.kwonlyargs, *rest]}


def test_docstrings_describe_parameters_that_there_are():
    wrong = []
    for folder in FOLDERS[:3]:
        for path in sorted((ROOT / folder).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.FunctionDef | ast.ClassDef) and (known := parameters_of(node)):
                    told = documented_parameters(ast.get_docstring(node) or "")
                    wrong += [f"{path.relative_to(ROOT)}: {node.name}: {name}" for name in told if name not in known]
    assert wrong == []


@cache
def docstrings() -> dict[str, str]:
    """Docstrings of all modules, classes and functions of the package, by file, line and name; empty where none is."""
    found = {}
    for path in sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Module | ast.FunctionDef | ast.ClassDef):
                line, name = getattr(node, "lineno", 1), getattr(node, "name", "the module")
                found[f"{path.relative_to(ROOT)}:{line}: {name}"] = ast.get_docstring(node) or ""
    return found


def test_docstrings_begin_with_what_they_are_about():
    fragment = re.compile(r"(Of|See `|For|In|On|At|By|With|That|Likewise|From)\b")
    found = [f"{place}: {text.splitlines()[0]}" for place, text in docstrings().items() if fragment.match(text)]
    assert found == [], "a docstring says what something is or does; a method that overrides another one is marked so"


MOST_QUESTIONS = 0.01
"""Largest share of docstrings that begin with a question word."""


def test_few_docstrings_begin_with_a_question_word():
    question = re.compile(r"(What|Whether|How|When|Where|Which|Who|Whom|Whose|Why)\b")
    written = {place: text for place, text in docstrings().items() if text}
    found = [f"{place}: {text.splitlines()[0]}" for place, text in written.items() if question.match(text)]
    assert len(found) <= MOST_QUESTIONS * len(written), (
        "a docstring begins with what a thing is or does:\n" + "\n".join(found)
    )


def test_the_long_tests_are_tests_that_there_are():
    for name in listed():
        path, *parts = name.split("::")
        tree = ast.parse((ROOT / path).read_text())
        for part in parts:
            inside = {one.name: one for one in tree.body if isinstance(one, ast.FunctionDef | ast.ClassDef)}
            assert part in inside, f"{name} is listed in tests/long.txt, and not there"
            tree = inside[part]


def test_of_a_long_test_the_case_that_takes_least_is_made():
    log = [
        "12.50s call     tests/a.py::test_one[x-1]",
        "  0.05s call     tests/a.py::test_one[y z]",
        "9.00s setup    tests/a.py::test_one[y z]",
        "3.00s call  tests/a.py::test_two",
        "0.01s call  tests/a.py::test_three",
    ]
    seconds = seconds_of(log)
    assert seconds["tests/a.py::test_one"] == {"[x-1]": 12.5, "[y z]": 0.05}
    assert longest(seconds) == {"tests/a.py::test_one": "[y z]", "tests/a.py::test_two": NONE}


def test_what_a_package_says_of_its_files_names_files_that_are_there():
    """Names of other rooms are written with their folder, from the package's top level or from the room's."""
    wrong = []
    for package in (path for top in ("agents", "protocols", "simulator") for path in (ROOT / top).rglob("__init__.py")):
        said = ast.get_docstring(ast.parse(package.read_text())) or ""
        for name in re.findall(r"(?<![\w./*])[\w/]+\.py\b", said):
            places = [package.parent / name, *(ROOT / top / name for top in ("", "agents", "protocols", "simulator"))]
            if not any(place.is_file() for place in places):
                wrong.append(f"{package.relative_to(ROOT)}: {name}")
    assert wrong == []
