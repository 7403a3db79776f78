"""Scenario files with a single mistake: each is answered with one sentence, the right line and the right field."""

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hushnet.simulator.cli import main

from .refusal import check_refusal

HERE = Path(__file__).parent
CLASSIFICATION, REGULAR = ((HERE / name).read_text() for name in ("bad_network.yaml", "regular.yaml"))
REQUIRED = {
    "schema", "scenario", "task", "topology", "protocols", "stop", "task.kind", "task.agents", "task.dimension",
    "topology.kind", "clock.kind", "network.latency.kind", "network.latency.mean", "availability.kind",
    "availability.online", "availability.mean_down", "protocols.cd.kind",
    "protocols.private.privacy.mechanism", "protocols.private.privacy.budget.epsilon",
    "protocols.private.privacy.budget.delta", "sweep.network.loss.from", "sweep.network.loss.to",
    "sweep.network.loss.step", "figures[0].y", "network.loss.kind", "network.loss.mean_good",
    "network.loss.mean_bad", "availability.period",
}  # fmt: skip


@dataclass
class Case:
    """A scenario with one mistake, and what the answer must contain."""

    name: str
    text: str | bytes
    line: int | None
    says: list[str] = field(default_factory=list)
    options: list[str] = field(default_factory=list)


@dataclass
class Line:
    number: int
    path: str
    key: str
    value: str
    text: str


def lines_of(text: str) -> list[Line]:
    """Line, dotted path, key and value of every entry of a scenario in block style."""
    found, parents = [], []
    for number, raw in enumerate(text.splitlines(), start=1):
        match = re.match(r"( *)(- )?([\w.]+):(?: (.*))?$", raw)
        if match is None:
            continue
        indent = len(match[1]) + len(match[2] or "")
        while parents and parents[-1][0] >= indent:
            parents.pop()
        prefix = parents[-1][1] if parents else ""
        prefix += "[0]" if prefix == "figures" else ""
        path = f"{prefix}.{match[3]}".removeprefix(".")
        parents.append((indent, path))
        found.append(Line(number, path, match[3], match[4] or "", raw))
    return found


def replaced(text: str, number: int, *lines: str) -> str:
    parts = text.splitlines()
    parts[number - 1 : number] = lines
    return "\n".join(parts) + "\n"


def without(text: str, number: int) -> str:
    """The text without an entry and everything below it."""
    parts = text.splitlines()
    indent = len(parts[number - 1]) - len(parts[number - 1].lstrip(" -"))
    last = number
    while last < len(parts) and len(parts[last]) - len(parts[last].lstrip(" ")) > indent:
        last += 1
    if parts[number - 1].lstrip().startswith("- "):
        parts[number] = parts[number].replace("    ", "  - ", 1)
        last = number
    return "\n".join(parts[: number - 1] + parts[last:]) + "\n"


def parent(text: str, line: Line) -> int:
    """Line of the mapping that an entry is in; the first line at the top."""
    above = line.path[: -len(line.key)].rstrip(".").removesuffix("[0]")
    if above == "figures":
        return next(other.number for other in lines_of(text) if other.path.startswith("figures[0]"))
    first = next(i for i, raw in enumerate(text.splitlines(), start=1) if not raw.startswith("#"))
    return next((other.number for other in lines_of(text) if other.path == above), first)


def fields() -> Iterator[tuple[str, Line]]:
    """Scenario and line of every field of either scenario; of a field of both, in the first."""
    lines = {line.path: (source, line) for source in (REGULAR, CLASSIFICATION) for line in lines_of(source)}
    yield from lines.values()


def is_label(line: Line) -> bool:
    """Whether the key is a name that the user chose, so that no other spelling is wrong."""
    return line.path in ("protocols.local", "protocols.cd", "protocols.private", "sweep.network.loss")


def misspelt_fields():
    for source, line in [*fields()][::2]:
        if is_label(line):
            continue
        *start, last = line.key
        wrong = (
            "".join([*start[:-1], last, start[-1]])
            if len({last, *start[-1:]}) > 1 and len(line.key) > 2
            else line.key + last
        )
        path = line.path[: -len(line.key)] + wrong
        text = replaced(source, line.number, line.text.replace(f"{line.key}:", f"{wrong}:", 1))
        says = [f"{path}: unknown field '{wrong}'; did you mean '{line.key}'?"]
        yield Case(f"misspelt {line.path}", text, line.number, says)


def values_of_another_type():
    for source, line in [*fields()][1::2]:
        if line.value:
            wrong = "[wrong, type]" if line.path == "protocols.cd.start" else "{wrong: type}"
            text = replaced(source, line.number, line.text.replace(f": {line.value}", f": {wrong}", 1))
            yield Case(f"mapping as {line.path}", text, line.number, [line.path])
        else:
            parts = without(source, line.number).splitlines()
            parts.insert(line.number - 1, f"{line.text} oops")
            yield Case(f"word as {line.path}", "\n".join(parts) + "\n", line.number, [line.path, "must be"])


def missing_fields():
    for source, line in fields():
        if line.path in REQUIRED:
            says = [f"{line.path}: is missing"]
            yield Case(f"missing {line.path}", without(source, line.number), parent(source, line), says)


def unknown_kinds():
    for source in (CLASSIFICATION, REGULAR):
        for line in lines_of(source):
            if line.key == "kind":
                wrong = line.value[:-1]
                says = [f"{line.path} = '{wrong}': unknown ", f"did you mean '{line.value}'?", "admissible: "]
                yield Case(f"kind {line.path}", replaced(source, line.number, f"{line.text[:-1]}"), line.number, says)


def out_of_range():
    """A row each of ``out_of_range.csv``."""
    sources = {"bad_network": CLASSIFICATION, "regular": REGULAR}
    with (HERE / "out_of_range.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        source, path, value = sources[row["scenario"]], row["path"], row["value"]
        line = next(line for line in lines_of(source) if line.path == path)
        text = replaced(source, line.number, line.text.replace(f": {line.value}", f": {value}"))
        yield Case(f"{path} = {value}", text, line.number, [path])


def yaml_mistakes():
    lines = lines_of(CLASSIFICATION)
    for line in [line for line in lines if line.value and not line.text.lstrip().startswith("- ")][::3]:
        number, text = line.number, line.text
        twice = replaced(CLASSIFICATION, number, text, text)
        yield Case(f"twice {line.path}", twice, number + 1, [line.path, "is given twice", f":{number})"])
    for line in [line for line in lines if line.value][::5]:
        anchored = line.text.replace(": ", ": &here ", 1)
        tagged = line.text.replace(": ", ": !!str ", 1)
        alias = line.text.replace(f": {line.value}", ": *here", 1)
        yield Case(f"anchor {line.path}", replaced(CLASSIFICATION, line.number, anchored), line.number, ["&here"])
        yield Case(f"tag {line.path}", replaced(CLASSIFICATION, line.number, tagged), line.number, ["!!str"])
        yield Case(f"alias {line.path}", replaced(CLASSIFICATION, line.number, alias), line.number, ["*here"])
    deep = "deep: " + "{a: " * 25 + "1" + "}" * 25
    count = len(CLASSIFICATION.splitlines())
    python_tag = "title: !!python/object/apply:os.system [ls]"
    yield Case("python tag", replaced(CLASSIFICATION, 4, python_tag), 4, ["!!python/object/apply:os.system"])
    yield Case("own tag", replaced(CLASSIFICATION, 4, "title: !secret x"), 4, ["!secret"])
    yield Case("merge key", replaced(CLASSIFICATION, 4, "<<: {title: x}"), 4, ["<<: unknown field"])
    yield Case("two documents", CLASSIFICATION + "---\nschema: 1\n", count + 1, ["second document"])
    yield Case("old YAML", "%YAML 1.1\n---\n" + CLASSIFICATION, 2, ["YAML 1.2"])
    yield Case("too deep", CLASSIFICATION + deep + "\n", count + 1, ["more than 20 levels"])
    yield Case("deep brackets", "[" * 500_000, 1, ["more than 20 levels"])
    yield Case("too large", CLASSIFICATION + "#" * 1_000_000, None, ["1,000,000 are read"])
    yield Case("tab", replaced(CLASSIFICATION, 8, "\tagents: 20"), 8, ["tab"])
    yield Case("NUL", replaced(CLASSIFICATION, 8, "  agents: 20\0"), 8, ["U+0000"])
    yield Case("Latin-1", replaced(CLASSIFICATION, 4, "title: caf\xe9").encode("latin-1"), 4, ["UTF-8", "0xe9"])
    yield Case("word as key", replaced(CLASSIFICATION, 8, "  8: 20"), 8, ["the key 8 of task must be text"])
    yield Case("null as key", replaced(CLASSIFICATION, 4, "~: 1"), 4, ["the key null must be text"])
    yield Case("list as key", replaced(CLASSIFICATION, 4, "? [a]\n: 1"), 4, ["the key"])
    yield Case("open bracket", replaced(CLASSIFICATION, 10, "  samples: [10, 100"), 11, ["not valid YAML"])
    yield Case("open quote", replaced(CLASSIFICATION, 4, 'title: "A'), None, ["not valid YAML"])
    yield Case("two colons", replaced(CLASSIFICATION, 8, "  agents: 20: 3"), 8, ["not valid YAML"])
    yield Case("no colon", replaced(CLASSIFICATION, 4, "title A"), 4, ["could not find expected ':'"])
    yield Case("bad indent", replaced(CLASSIFICATION, 8, "   agents: 20"), 8, ["not valid YAML"])
    yield Case("huge number", replaced(CLASSIFICATION, 8, f"  agents: {'9' * 5000}"), 8, ["cannot be read"])
    yield Case("empty", "", 1, ["is empty"])
    yield Case("only comments", "# nothing\n\n", 1, ["is empty"])
    yield Case("a list", "- 1\n- 2\n", 1, ["must be a mapping"])
    yield Case("a word", "hello\n", 1, ["must be a mapping"])


def inheritance_mistakes():
    def entry(*lines: str) -> str:
        return CLASSIFICATION.replace("stop:\n", "\n".join(lines) + "\nstop:\n")

    at = CLASSIFICATION.splitlines().index("stop:") + 1
    yield Case("like nobody", entry("  other:", "    like: cdd"), at + 1, ["protocols.other.like = 'cdd'", "'cd'"])
    yield Case("like itself", entry("  other: {like: other}"), at, ["protocols.other.like", "other -> other", "cycle"])
    yield Case("like a number", entry("  other: {like: 3}"), at, ["protocols.other.like = 3"])
    yield Case("like with typo", entry("  other: {lik: cd}"), at, ["protocols.other.lik: unknown field", "'like'"])
    yield Case("no kind", entry("  other: {mu: 0.1}"), at, ["protocols.other.kind: is missing"])
    yield Case("empty entry", entry("  other:"), at, ["protocols.other = null: must be a mapping"])
    yield Case("bad key", entry("  other one: {like: cd}"), at, ["protocols.other one"])
    yield Case("dotted key", entry("  other.one: {like: cd}"), at, ["protocols.other.one"])
    yield Case("null for a required field", entry("  other: {like: cd, kind: null}"), at, ["other.kind: is missing"])
    wrong = entry("  other:", "    like: cd", "    mu: -1")
    yield Case("override after like", wrong, at + 2, ["protocols.other.mu = -1: must be greater than 0"])
    wrong = entry("  other:", "    like: private", "    privacy: {budget: {delta: 2}}")
    yield Case("deep override after like", wrong, at + 2, ["protocols.other.privacy.budget.delta = 2"])
    wrong = entry("  other:", "    like: cd", "    kind: local", "    confidence: null")
    yield Case("inherited by another kind", wrong, at + 1, ["protocols.other.mu (inherited from cd): unknown field"])
    inherited = replaced(CLASSIFICATION, 35, "    mu: -1")
    yield Case("mistake of a parent is told once", inherited, 35, ["protocols.cd.mu = -1"])
    wrong = replaced(CLASSIFICATION, 35, "    start: local")
    yield Case("private start from local models", wrong, 38, ["protocols.private.start = 'local' (inherited from cd)"])


def mistakes_across_fields():
    def edited(old: str, new: str) -> tuple[str, int]:
        number = CLASSIFICATION[: CLASSIFICATION.index(old)].count("\n") + 1
        return CLASSIFICATION.replace(old, new, 1), number

    table = [
        ("  time: 100", "  {}", ["stop: give at least one of time, activations, vectors, updates"], -1),
        ("  every: 1.0", "  every: 1.0\n  activations: 5", ["record: give exactly one of every and activations"], -1),
        ("[objective, accuracy, epsilon]", "[objective, acuracy]", ["record.metrics[1] = 'acuracy'", "'accuracy'"], 0),
        ("[objective, accuracy, epsilon]", "[objective, 3]", ["record.metrics[1] = 3: must be text"], 0),
        ("[objective, accuracy, epsilon]", "[accuracy, ./own.py:size]", ["record.metrics[1]", "--trust-code"], 0),
        ("[local, cd]", "[local, cdd]", ["figures[0].protocols[1] = 'cdd'", "did you mean 'cd'"], 0),
        ("  network.loss:", "  network.los:", ["network.los: unknown field 'los'"], 0),
        ("  network.loss:", "  netwrk.loss:", ["sweep.netwrk.loss", "did you mean 'network'"], 0),
        ("  network.loss:", "  seeds:", ["sweep.seeds: cannot be swept"], 0),
        ("  network.loss:", "  protocols.cdd.mu:", ["sweep.protocols.cdd.mu: unknown protocol 'cdd'"], 0),
        ("    to: 0.3", "    to: -0.3", ["sweep.network.loss: from 0.0 must not exceed to -0.3"], -2),
        ("    to: 0.3", "    to: 1.5", ["network.loss = 1.0: must be less than 1"], -2),
        ("    step: 0.1", "    step: 1.0e-6", ["sweep.network.loss", "10000"], -3),
        ("    kind: local\n", "    kind: ./mine.py:Mine\n", ["--trust-code"], 0),
        ("samples: [10, 100]", "samples: [10, x]", ["task.samples[1] = 'x': must be a whole number"], 0),
        ("rate: 1.0", "rate: [1.0, -2.0]", ["clock.rate[1] = -2.0: must be greater than 0"], 0),
        ("rate: 1.0", "rate: {kind: uniform, low: 1}", ["clock.rate.high: is missing"], 0),
        ("rate: 1.0", "rate: {kind: unifrm, low: 1}", ["clock.rate.kind = 'unifrm'", "'uniform'"], 0),
        ("rate: 1.0", "rate: {kind: uniform, low: 2, high: 1}", ["clock.rate.low = 2: must not exceed high, 1"], 0),
        ("rate: 1.0", "rate: fast", ["clock.rate = 'fast': must be a number, a list of numbers or a mapping"], 0),
        ("loss: 0.05\n", "loss: some\n", ["network.loss = 'some': must be a number or a mapping with kind"], 0),
        ("seeds: 5", "seeds: {data: 2, runs: 3}", ["seeds.runs: unknown field 'runs'; did you mean 'run'?"], 0),
        ("seeds: 5", "seeds: 1000000000", ["seeds = 1000000000: asks for 1000000000 seeds; at most 100000"], 0),
        ("seeds: 5", "seeds: {data: 1000000, run: 3}", ["seeds: asks for 3000000 seeds; at most 100000"], 0),
        ("every: 1.0", "every: 0.00001", ["record.every = 1e-05: asks for more than 1000000 samples", "0.0001"], 0),
        ("seeds: 5", "seeds: [1, -1]", ["seeds[1] = -1: must be at least 0"], 0),
        ("    interval: 95%", "    name: a\n  - {y: objective, name: a}", ["not valid YAML"], None),
    ]
    for old, new, says, offset in table:
        text, number = edited(old, new)
        yield Case(f"{old.strip()} -> {new.strip()}", text, None if offset is None else number + offset, says)


def wrong_overrides():
    table = [
        ("network.latency=-2", ["must be at least 0"]),
        ("network.los=0.1", ["unknown field 'los'; did you mean 'loss'?"]),
        ("netwrk.loss=0.1", ["unknown field 'netwrk'; did you mean 'network'?"]),
        ("protocols.cd.mu=-1", ["must be greater than 0"]),
        ("protocols.cd.mu=abc", ["must be a number"]),
        ("protocols.dc.mu=1", ["unknown protocol 'dc'; did you mean 'cd'?"]),
        ("protocols.cd.nu=1", ["unknown field 'nu'; did you mean 'mu'?"]),
        ("protocols.private.privacy.budget.epsilon=", ["must be a number"]),
        ("task.agents=[1", ["not valid YAML"]),
        ("task.agents=*x", ["alias"]),
        ("task.agents=&x 3", ["anchor"]),
        ("task.agents=!!int 3", ["tag"]),
        ("task={kind: linear_classification, agents: 3}", ["task.dimension: is missing"]),
        ("figures.y=3", ["figures is a list"]),
        ("task", ["must look like"]),
        ("task..agents=3", ["must look like"]),
        ("=3", ["must look like"]),
        ("seeds={data: 0}", ["seeds.data = 0: must be at least 1"]),
        ("stop={}", ["give at least one of"]),
        ("clock.kind=poison", ["unknown kind; did you mean 'poisson'?"]),
        ("engine=turbo", ["is not admissible; admissible: auto, event, batched"]),
    ]
    for assignment, says in table:
        yield Case(f"--set {assignment}", CLASSIFICATION, None, [f"--set {assignment}: ", *says], ["--set", assignment])


def mistakes_in_a_split():
    """The forms of a split are told apart by ``by``."""
    table = [
        (
            "{by: columms, parts: [1]}",
            ["task.split.by = 'columms': unknown by; did you mean 'columns'?", "rows, columns"],
        ),
        ("{parts: [1]}", ["task.split.by: is missing; admissible: rows, columns"]),
        ("{by: columns, part: [1]}", ["unknown field 'part'; did you mean 'parts'?"]),
        ("{by: [rows]}", ["task.split.by"]),
    ]
    for split, says in table:
        text = REGULAR.replace("  kind: linear_classification\n", "  kind: gisette_like\n")
        for line in ("agents: 10", "dimension: 4", "points: gaussian", "loss: logistic"):
            text = text.replace(f"  {line}\n", f"  split: {split}\n" if line == "agents: 10" else "")
        yield Case(f"split {split}", text, 6, says)


CASES = [
    *misspelt_fields(), *values_of_another_type(), *missing_fields(), *unknown_kinds(), *out_of_range(),
    *yaml_mistakes(), *inheritance_mistakes(), *mistakes_across_fields(), *mistakes_in_a_split(), *wrong_overrides(),
]  # fmt: skip


def test_there_are_at_least_200_different_mistakes():
    assert len({(case.text, *case.options) for case in CASES}) >= 200


@pytest.mark.parametrize("text", [CLASSIFICATION, REGULAR], ids=["classification", "regular"])
def test_the_scenarios_without_a_mistake_are_accepted(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "good.yaml"
    path.write_text(text, encoding="utf-8")
    assert main(["check", str(path)]) == 0, capsys.readouterr().err


@pytest.mark.parametrize("case", CASES, ids=[case.name[:60] for case in CASES])
def test_a_mistake_is_answered_with_one_sentence_at_its_line(
    case: Case, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    path = tmp_path / "wrong.yaml"
    path.write_bytes(case.text if isinstance(case.text, bytes) else case.text.encode())
    at = f"{path}:{case.line}: " if case.line else f"{path}"
    check_refusal(path, "--set" if case.options else at, case.says, capsys, options=case.options)


def test_a_name_that_is_not_admissible_is_told_without_the_insides_of_what_it_names(tmp_path, capsys):
    path = tmp_path / "named.yaml"
    path.write_text(
        "schema: 1\nscenario: named\ntask: {kind: linear_classification, agents: 4, dimension: 2, samples: [5, 5]}\n"
        "topology: {kind: ring}\nprotocols:\n  'l\u00f6cal': {kind: local}\nstop: {time: 1}\n"
    )
    assert main(["check", str(path)]) == 2
    said = capsys.readouterr().err
    assert "named.yaml:6: protocols.l\u00f6cal: must begin with a letter or digit" in said
    assert "Parameters(" not in said
