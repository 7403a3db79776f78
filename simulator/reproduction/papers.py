"""Papers as data: what each says, where it stands, and the numbers that decide, one YAML file a paper."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from pydantic import Field, ValidationError

from ...agents.errors import InputError
from ...agents.parameters import Parameters
from ..language.field_errors import field_errors, sentences
from ..language.inheritance import Family
from ..language.loading import shipped
from ..language.yaml_source import read_file
from .judge import Kind


class PaperFigure(Parameters):
    """A figure or table of a paper, and the shipped scenario that stands for it."""

    name: str
    """What ``hushnet reproduce`` calls it, such as ``bellet2018-fig2a``; also its scenario, where none is named."""
    title: str
    """How the paper calls it, such as ``Figure 2a``."""
    shows: str
    """One sentence about it."""
    of: str = ""
    """Name of the scenario, where it is another one."""
    seeds: int = 0
    """Seeds of a full run; 0 keeps the scenario's."""
    quick: list[str] = Field(default_factory=list)
    """``path=value`` each: what makes a quick run of it small."""
    quick_seeds: int = 2
    """Seeds of a quick run; 0 keeps the scenario's."""
    data: str | None = None
    """Data set that it needs, a name of `hushnet.agents.tasks.datasets.DATASETS`."""
    pictures: list[str] | None = None
    """Names of the scenario's figures that the page shows; by default the first two."""
    large: bool = False
    """Whether it takes so long that it is only run by its name, or with ``--full``."""

    @property
    def scenario(self) -> str:
        """Name of the scenario."""
        return self.of or self.name


class NumberSpec(Parameters):
    """How a number that decides is computed, and what is asked of it; text may hold ``{expressions}``."""

    name: str
    """What is measured."""
    value: str
    """Expression: one value per run, or one value where nothing is random."""
    each: dict[str, str | list[str | float]] = Field(default_factory=dict)
    """Names that run over values: a list, a swept field, or an expression."""
    let: dict[str, str] = Field(default_factory=dict)
    """Names for expressions."""
    above: float | str = -math.inf
    below: float | str = math.inf
    """What it is asked to lie between: numbers, or expressions for them."""
    claimed: str | None = None
    """Epsilon that the paper claims, where ``value`` is the one that is verified."""
    at_least: str = "0"
    """Lower bound on such an epsilon, asked for where what is verified is above the claim."""
    random: bool = True
    """Whether values differ from run to run; of those that do not, one is enough, and they must all be the same."""
    setting: str = ""
    reading: str = ""


class Because(Parameters):
    """A sentence of a why that is said only if something is so."""

    when: str
    """Expression."""
    say: str


class Claim(Parameters):
    """Something that a paper says, and the numbers that decide about it."""

    says: str
    stands: str = ""
    """Where it stands, if not at the figures."""
    on: list[str] = Field(default_factory=list)
    """Figures that are runs of it, the nearest to the paper's size first: the first that was run decides. None of a
    printed statement that is decided by direct computation."""
    at: list[str] = Field(default_factory=list)
    """Figures of several settings, in each of which it is a claim of its own; instead of ``on``."""
    kind: Kind = "for all"
    readings: str = ""
    """Which of the paper's readings it depends on."""
    ours: str = ""
    """Which margin or statistic is ours, where the paper gives none."""
    since: dict[str, str] = Field(default_factory=dict)
    """All margins that pages have asked for in its place, by the date and the commit of the first page with them."""
    how: str = ""
    """How it is measured."""
    why: list[str | Because] = Field(default_factory=list)
    """Sentences that are computed: each has an expression in it, or says when it is said."""
    numbers: list[NumberSpec] = Field(min_length=1)


class Paper(Parameters):
    """A paper with all that is looked at."""

    name: str
    authors: str
    year: int
    title: str
    venue: str
    remarks: list[str] = Field(default_factory=list)
    """How the paper was read where it leaves something open."""
    readings: dict[str, dict[str, str]] = Field(default_factory=dict)
    """Words that may be read in several ways: what each of them says, by name."""
    untunable: list[str] = Field(default_factory=list)
    """Protocols with nothing to tune, which may be compared with tuned ones."""
    printed: dict[str, float | dict[str, float]] = Field(default_factory=dict)
    """Numbers that the paper prints, for expressions."""
    figures: list[PaperFigure]
    claims: list[Claim]

    @property
    def statements(self) -> list[Claim]:
        """The claims that are decided without a scenario."""
        return [claim for claim in self.claims if not claim.on]


@cache
def papers() -> tuple[Paper, ...]:
    """All papers, by year and name: every file ``<name><year>.yaml`` beside the scenarios."""
    files = (next(iter(shipped().values())).parent / "papers").glob("*[0-9].yaml")
    return tuple(read_paper(path) for path in sorted(files, key=lambda path: (path.stem[-4:], path.stem)))


def read_paper(path: Path) -> Paper:
    """Return the paper of a file.

    Raises `InputError`: one sentence a mistake: an unknown field, a figure or reading that there is not, a reading of
    the paper that has no number, a why that is typed.
    """
    written = read_file(path)
    try:
        paper = Paper.model_validate(written.data)
    except ValidationError as error:
        raise InputError("\n".join(sentences(field_errors(error, Paper, written.data), written, Family()))) from error
    titles = {figure.name: figure.title for figure in paper.figures}
    claims: dict[str, Claim] = {}
    for rank, written_claim in enumerate(paper.claims):
        for claim in _in_each_setting(written_claim, titles):
            again = ["says what another claim says"] if claim.says in claims else []
            for mistake in (*again, *_mistakes(paper, claim)):
                raise InputError(f"{written.where(('claims', rank))}: {mistake}")
            claims[claim.says] = claim
    return paper.model_copy(update={"claims": list(claims.values())})


def _in_each_setting(claim: Claim, titles: Mapping[str, str]) -> list[Claim]:
    """A claim of its own for every figure that it is ``at``."""
    if not claim.at:
        return [claim]
    named = {name: f"{claim.says.removesuffix('.')} ({titles.get(name, name)})." for name in claim.at}
    return [claim.model_copy(update={"says": text, "on": [name], "at": []}) for name, text in named.items()]


def _mistakes(paper: Paper, claim: Claim) -> Iterator[str]:
    figures = {figure.name for figure in paper.figures}
    for name in claim.on:
        if name not in figures:
            yield f"on: there is no figure {name!r}"
    allowed, used = set(paper.readings.get(claim.readings, {})), {number.reading for number in claim.numbers}
    if claim.readings and not allowed:
        yield f"readings: the paper has no readings of {claim.readings!r}"
    for name in sorted(used - (allowed or {""})):
        yield f"reading {name!r} is none of the paper's"
    for name in sorted(allowed - used):
        yield f"reading {name!r}, which the paper allows, has no number"
    if bool(claim.ours) != bool(claim.since):
        yield "what is ours, and since when, are said together"
    for sentence in claim.why:
        text = sentence if isinstance(sentence, str) else sentence.say
        written = re.sub(r"\{.*?\}", "", text)
        if re.search(r"\d", written):
            yield f"why: a number is typed in {text!r}; compute it in braces, or say it under `how`"
        if written == text and isinstance(sentence, str):
            yield f"why: {text!r} is typed; compute something in braces, or say when it is said"
