"""The JSON schema and ``hushnet check`` agree; every number has bounds; own files are read as a run would read them.

What the schema refuses is refused, and shapes that it admits are admitted. It cannot know everything: what a field
under ``sweep``, ``tune`` or ``quick`` stands for is decided by another part of the file, as is what an entry with
``like`` may leave out, and so are rules about several fields. What is about one field in its own place it knows.
"""

from __future__ import annotations

import copy
import os
import random
import re
import types
from pathlib import Path
from typing import Annotated, Any, Union, get_args, get_origin

import pytest
from annotated_types import Ge, Gt, Le, Lt
from hushnet.agents.docstrings import field_docstrings
from hushnet.agents.errors import InputError
from hushnet.protocols import catalog
from hushnet.protocols.privacy.budget import Budget, Target
from hushnet.simulator.cli import main
from hushnet.simulator.language.loading import load, shipped
from hushnet.simulator.language.scenario import Scenario
from hushnet.simulator.language.schema import scenario_schema
from hushnet.simulator.language.yaml_source import read_file, read_text
from hushnet.simulator.network.network import NetworkParameters
from hushnet.simulator.shell.new_scenario import scenario_text
from jsonschema import Draft202012Validator
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from ..agents.test_images import write_mnist

ELSEWHERE = ("sweep", "tune", "quick")
"""Parts whose values are those of other fields."""
OF_ONE_FIELD = re.compile(
    r"must be (a |an |at least \S+$|at most \S+$|greater than|less than|one of)"
    r"|unknown field|unknown kind|is missing|is needed$"
)
"""What is said about a single field, whatever the others are."""
ACROSS = re.compile(r"values; one for each|must be ordered|has \d+ values|mechanism = |exactly one of|at least one of")
"""What looks alike and is about several, or about what plug-ins may register."""
WRONG = ({"a": 1}, -1, 1e30, None, "nonsense", [1], 0.5, 0, True)


def plain(value):
    """Data without marks of where they stood."""
    if isinstance(value, dict):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, list):
        return [plain(each) for each in value]
    return value if isinstance(value, bool) or value is None else type(value).__mro__[-2](value)


@pytest.fixture(scope="module")
def validator():
    schema = scenario_schema()
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


@pytest.fixture(scope="module")
def files():
    return {name: plain(read_file(path).data) for name, path in shipped().items()}


def places(data, path=()):
    """Every path into a file."""
    if path:
        yield path
    pairs = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in pairs:
        yield from places(value, (*path, key))


def at(data, path):
    for key in path:
        data = data[key]
    return data


def mutant(data, rng):
    """A copy with one thing changed, dropped or added, and where."""
    data = copy.deepcopy(data)
    path = rng.choice(list(places(data)))
    inside, last = at(data, path[:-1]), path[-1]
    how = rng.randrange(len(WRONG) + 2)
    if how < len(WRONG):
        inside[last] = copy.deepcopy(WRONG[how])
    elif how == len(WRONG) and isinstance(inside, dict):
        del inside[last]
    elif isinstance(inside[last], dict):
        inside[last]["unheard_of"] = 1
    return data, path


def complaint(data):
    try:
        load(data)
    except InputError as error:
        return str(error)
    return ""


def test_every_shipped_scenario_is_admitted_by_the_schema(validator, files):
    for name, data in files.items():
        assert validator.is_valid(data), name


@pytest.mark.parametrize("model", [Budget, Target, NetworkParameters])
def test_docstrings_of_fields_are_their_descriptions(validator, model):
    properties = validator.schema["$defs"][model.__name__]["properties"]
    documented = field_docstrings(model)
    assert documented
    assert {name: properties[name]["description"] for name in documented} == documented


@pytest.mark.parametrize("seed", range(40))
def test_mutants_are_refused_by_both_or_by_none(seed, validator, files):
    rng = random.Random(seed)
    known = {"refused": 0, "admitted": 0}
    for _ in range(120):
        name = rng.choice(list(files))
        data, path = mutant(files[name], rng)
        admitted, said = validator.is_valid(data), complaint(data)
        known["admitted" if admitted else "refused"] += 1
        if not admitted:
            assert said, (name, path, next(validator.iter_errors(data)).message[:300])
        elif said and path[0] not in ELSEWHERE:
            first = said.splitlines()[0]
            inherits = path[0] == "protocols" and "like" in str(data["protocols"])
            inside = any(f"{name}.".startswith(f"{'.'.join(map(str, path))}.") for name in data.get("sweep") or ())
            if (inherits and re.search(r"is missing|= null", first)) or inside:
                continue
            assert not OF_ONE_FIELD.search(first) or ACROSS.search(first), (name, path, first)
    assert min(known.values()) > 20


def test_unions_are_told_apart_by_kind_so_that_editors_complete(validator):
    definitions = validator.schema["$defs"]
    for name in ("task", "topology", "clock", "availability"):
        union = validator.schema["properties"][name]["oneOf"]
        kinds = [definitions[part["$ref"].rpartition("/")[2]]["properties"]["kind"] for part in union]
        assert all("const" in kind for kind in kinds)
        assert len({kind["const"] for kind in kinds}) == len(kinds)


def test_an_heir_may_leave_out_and_drop_what_it_inherits_at_any_depth(validator, files):
    data = copy.deepcopy(files["bellet2018-fig2a"])
    heirs = [key for key, entry in data["protocols"].items() if "like" in entry and "privacy" in entry]
    data["protocols"][heirs[0]]["privacy"] = {"clip": None}
    assert validator.is_valid(data)
    data["protocols"][heirs[0]]["privacy"] = {"clipp": 1}
    assert not validator.is_valid(data)


def test_what_is_like_a_class_in_a_file_may_have_its_fields(validator, files):
    data = files["quickstart"]
    first = next(iter(data["protocols"]))
    assert not validator.is_valid({**data, "protocols": {**data["protocols"], "b": {"like": first, "twist": 2}}})
    own = {
        "a": {"kind": "./mine.py:Mine", "twist": 1},
        "b": {"like": "a", "twist": 2},
        "c": {"like": "b", "label": "C"},
    }
    assert validator.is_valid({**data, "protocols": {**data["protocols"], **own}})
    assert not validator.is_valid({**data, "protocols": {**own, "b": {"like": 3}}})


ONE_FIELD = [
    ("stop", {}),
    ("stop", {"time": None}),
    ("record", {"every": 1.0, "activations": 5}),
    ("record", {"metrics": ["accuracy"]}),
    ("record", {"every": 1.0, "metrics": ["accuracy", "accuracy"]}),
    ("seeds", [1, 2, 1]),
    ("target", {"metric": "objective"}),
    ("target", {"metric": "objective", "share": 0.5, "level": 1.0}),
    ("clock", {"kind": "poisson", "rate": 1e-300}),
    ("network", {"latency": 1e-12}),
    ("network", {"latency": {"kind": "constant", "value": 1e-12}}),
    ("style", {"formats": ["png", "png"]}),
    ("protocols", {"lo cal": {"kind": "local"}}),
    ("protocols", {"a.b": {"kind": "local"}}),
    ("protocols", {"p": {"kind": "coordinate_descent", "mu": 1e-300}}),
]
"""Fields whose value is wrong by itself."""
RIGHT = [
    ("stop", {"time": 1.0, "updates": None}),
    ("record", {"every": None, "activations": 5}),
    ("target", {"metric": "objective", "share": 0.5, "level": None}),
    ("network", {"latency": 0}),
    ("network", {"latency": 1e-9}),
    ("network", {"latency": {"kind": "constant", "value": 0.0}}),
    ("seeds", [1, 2]),
    ("protocols", {"a-b_c": {"kind": "local"}}),
]


@pytest.mark.parametrize(("field", "value"), [*ONE_FIELD, *RIGHT])
def test_what_one_field_says_by_itself_is_judged_alike(validator, field, value):
    data = plain(read_text(scenario_text("mine"), "mine").data)
    data = {name: each for name, each in data.items() if name not in ("figures", "target", "sweep", "record", "style")}
    data["record"] = {"every": 1.0, "metrics": ["objective", "accuracy"]}
    wrong = (field, value) in ONE_FIELD
    assert complaint(data) == ""
    assert bool(complaint({**data, field: value})) == wrong
    assert validator.is_valid({**data, field: value}) != wrong


def test_missing_data_are_said_with_the_place_in_the_file(tmp_path, capsys):
    assert main(["check", "zhang2018-fig1a"]) == 0
    assert main(["check", "zhang2018-fig1a", "--data-dir", str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert "zhang2018-fig1a.yaml:" in error
    assert "adult.data: no such file; unpack https://" in error


def test_what_only_data_can_refuse_is_refused(tmp_path, capsys):
    (tmp_path / "rows.csv").write_text(
        "who,x,y\n" + "".join(f"{'ab'[k % 2]},{k},{'uv'[k % 3 == 0]}\n" for k in range(9))
    )
    scenario = tmp_path / "own.yaml"
    scenario.write_text(
        "schema: 1\nscenario: own\nseeds: 1\ntask: {kind: csv, path: rows.csv, label: y, agent: who}\n"
        "topology: {kind: random_regular, degree: 4}\nprotocols: {a: {kind: local}}\nstop: {time: 2}\n"
    )
    for given in ([], ["--data-dir", str(tmp_path)]):
        assert main(["check", str(scenario), *given]) == 2
        assert "own.yaml:5" in capsys.readouterr().err
    assert main(["check", str(scenario), "--set", "task.path=no.csv"]) == 2
    assert "no.csv: cannot be read" in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["own.yaml", "rows.csv"]


def test_images_in_a_folder_that_a_scenario_names_are_read(tmp_path, capsys):
    write_mnist(tmp_path / "images")
    scenario = tmp_path / "own.yaml"
    scenario.write_text(
        "schema: 1\nscenario: own\nseeds: 1\n"
        "task: {kind: mnist, path: images, classes: 3, split: {kind: even, agents: 4}}\n"
        "topology: {kind: ring}\nprotocols:\n  a: {kind: choco_sgd, keep: 10}\nstop: {time: 2}\n"
    )
    assert main(["check", str(scenario)]) == 0
    assert main(["check", str(scenario), "--set", "protocols.a.keep=31"]) == 2
    assert "--set protocols.a.keep=31: must be at most 30, the numbers of a model" in capsys.readouterr().err
    assert main(["check", str(scenario), "--set", "task.path=elsewhere"]) == 2
    assert "elsewhere/train-images" in capsys.readouterr().err


@pytest.mark.skipif(
    not (Path(os.environ.get("HUSHNET_DATA", "")) / "a9a" / "a9a").is_file(),
    reason="set HUSHNET_DATA to a folder that holds a9a/a9a",
)
def test_what_is_there_is_named_with_its_checksum(capsys):
    assert main(["check", "hu2019-fig1", "--data-dir", os.environ["HUSHNET_DATA"]]) == 0
    said = capsys.readouterr().out
    assert "md5 fb3596510d780aaf76a06dc721d49662" in said
    assert "as published" in said
    assert "valid" in said


FREE = {("TargetParameters", "level"), ("Figure", "at"), ("Together", "labels"), ("Figure", "seed")}
"""Numbers that nothing is computed from: they are compared, or printed."""


def numbers(annotation: Any, metadata: tuple[Any, ...], seen: set[type]):
    """Every number within a type: its own type and the bounds that stand around it."""
    if get_origin(annotation) is Annotated:
        inner, *more = get_args(annotation)
        parts = [part for item in more for part in (item.metadata if isinstance(item, FieldInfo) else [item])]
        yield from numbers(inner, (*metadata, *parts), seen)
    elif get_origin(annotation) in (Union, types.UnionType, list, tuple, dict):
        inside = metadata if get_origin(annotation) in (Union, types.UnionType) else ()
        for part in get_args(annotation):
            yield from numbers(part, inside, seen)
    elif annotation in (int, float):
        yield metadata
    elif isinstance(annotation, type) and issubclass(annotation, BaseModel) and annotation not in seen:
        yield from unbounded(annotation, seen)


def unbounded(model: type[BaseModel], seen: set[type]):
    seen.add(model)
    for name, info in model.model_fields.items():
        for found in numbers(info.annotation, tuple(info.metadata), seen):
            if isinstance(found, tuple) and found and isinstance(found[0], str):
                yield found
            elif (model.__name__, name) not in FREE:
                low = any(isinstance(part, Ge | Gt) for part in found)
                high = any(isinstance(part, Le | Lt) for part in found)
                if not (low and high):
                    yield (model.__name__, name)


def test_every_number_of_a_scenario_is_bounded_on_both_sides():
    seen: set[type] = set()
    found = list(unbounded(Scenario, seen))
    for name in catalog.names():
        found += unbounded(catalog.resolve(name).Parameters, seen)
    assert not found
