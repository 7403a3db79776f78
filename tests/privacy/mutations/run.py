"""Plants one mistake after the other, asks the guards, and prints which of them caught it."""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path

from hushnet.protocols.privacy.mechanisms import noises

from .cases import CASES, seen, under
from .declarations import FORMS, GUARDS, KINDS, LIST, Form, Guard, Mutation
from .guards import CATCHERS
from .seams import planted

SAVED = Path(__file__).with_name("RESULTS.md")
"""The last pass that was kept."""
RATE = 0.95
"""The share of all mistakes that has to be caught."""


@dataclass
class Outcome:
    """What the guards said about a mistake: a sentence, or None where they saw nothing."""

    mutation: Mutation
    said: dict[Guard, str | None] = field(default_factory=dict)
    broken: dict[Guard, str] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def caught(self) -> list[Guard]:
        return [guard for guard, sentence in self.said.items() if sentence is not None]

    @property
    def missed(self) -> bool:
        """Whether the guard that has to catch it was asked and saw nothing."""
        return self.said.get(self.mutation.guard, "") is None

    def lines(self) -> str:
        """Rows of the table."""
        mark = "MISSED BY " + self.mutation.guard if self.missed else ", ".join(self.caught) or "SURVIVED"
        head = f"{self.mutation.name:50} {self.mutation.kind:20} {mark:24} {self.seconds:6.1f} s"
        said = [f"    {guard}: {text}" for guard, text in self.said.items() if text]
        return "\n".join([head, *said, *(f"    {guard} BROKE: {text}" for guard, text in self.broken.items())])


def ask(mutation: Mutation, guards: Sequence[Guard], *, every: bool = False, form: Form | None = None) -> Outcome:
    """Plant a mistake for each guard in turn, beginning with the one that has to catch it, until one does, or all."""
    outcome, began = Outcome(mutation), time.perf_counter()
    form = form or mutation.form
    for guard in sorted(guards, key=lambda guard: guard != mutation.guard):
        if outcome.caught and not every:
            break
        try:
            outcome.said[guard] = CATCHERS[guard](mutation, form)
        except Exception as error:  # a guard that falls over has caught nothing, and is named
            outcome.said[guard], outcome.broken[guard] = None, f"{type(error).__name__}: {error}"
    outcome.seconds = time.perf_counter() - began
    return outcome


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a row for each mistake, and who survived; 1 if too many did, or a guard missed what it has to catch."""
    parser = argparse.ArgumentParser(prog="python -m tests.privacy.mutations", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="mistakes; all by default")
    parser.add_argument("--guard", action="append", choices=GUARDS, help="ask these only; repeat it for more than one")
    parser.add_argument("--kind", action="append", choices=KINDS, help="mistakes of this kind only")
    parser.add_argument("--form", choices=FORMS, help="steps in this form, and mistakes that show in it")
    parser.add_argument("--every-noise", action="store_true", help="under every mechanism that the protocol takes")
    parser.add_argument("--all", action="store_true", help="ask the other guards, too, after one has caught a mistake")
    parser.add_argument("--save", action="store_true", help=f"write what is printed to {SAVED.name}, with the commit")
    given = parser.parse_args(arguments)
    unknown = [name for name in given.names if name not in LIST]
    if unknown:
        parser.error(f"no such mistake: {', '.join(unknown)}; there are {', '.join(LIST)}")
    chosen = [one for one in LIST.values() if one.name in (given.names or LIST) and one.kind in (given.kind or KINDS)]
    outcomes, commit = [], _commit()
    if given.every_noise:
        chosen = [variant for one in chosen for variant in (one, *_under_others(one, given.form))]
    for mutation in chosen:
        if given.form and not shows(mutation, given.form):
            print(f"{mutation.name:50} {mutation.kind:20} does not show in {given.form} steps", flush=True)
            continue
        usual = [guard for guard in CATCHERS if guard != "tests" or mutation.guard == "tests"]
        outcomes.append(ask(mutation, given.guard or usual, every=given.all, form=given.form))
        print(outcomes[-1].lines(), flush=True)
    print("", *summary(outcomes), sep="\n")
    if given.save:
        asked = " ".join(sys.argv[1:] if arguments is None else arguments)
        SAVED.write_text(page(outcomes, commit, asked), encoding="utf-8")
    caught = [outcome for outcome in outcomes if outcome.caught]
    return 1 if any(outcome.missed for outcome in outcomes) or len(caught) < RATE * len(outcomes) else 0


def _under_others(mutation: Mutation, form: Form | None) -> list[Mutation]:
    """The same mistake under each other mechanism that its protocol takes, where it shows."""
    cases = [(mechanism, under(mutation.case, mechanism)) for mechanism in noises()]
    variants = [replace(mutation, name=f"{mutation.name} ({noise})", case=case) for noise, case in cases if case]
    return [variant for variant in variants if shows(variant, form or mutation.form)]


def shows(mutation: Mutation, form: Form) -> bool:
    """Whether a mistake changes what a run of its case does whose steps are of this form."""
    usual = seen(CASES[mutation.case], form)
    with planted(mutation.plant):
        changed = seen(CASES[mutation.case], form)
    return len(usual) > 1 and len(changed) > 1 and usual != changed


def summary(outcomes: Sequence[Outcome]) -> list[str]:
    """Counts by kind, who survived, and what a guard missed that has to catch it, a line each."""
    lines = []
    for kind in (*KINDS, None):
        some = [outcome for outcome in outcomes if kind in (None, outcome.mutation.kind)]
        if some:
            lines.append(f"{kind or 'all':20} {sum(bool(one.caught) for one in some):3} of {len(some):3} caught")
    lines += [f"survived: {one.mutation.name}: {one.mutation.what}" for one in outcomes if not one.caught]
    missed = [one.mutation for one in outcomes if one.missed]
    return lines + [f"missed by {one.guard}: {one.name}: {one.what}" for one in missed]


def page(outcomes: Sequence[Outcome], commit: str, asked: str) -> str:
    """What a pass has shown, as Markdown."""
    rows = [
        f"| {one.mutation.name} | {one.mutation.kind} | {', '.join(one.caught) or '**nobody**'} |" for one in outcomes
    ]
    return "\n".join(
        [
            "# Planted mistakes, and who caught them",
            "",
            f"`python -m tests.privacy.mutations {asked}` on {date.today():%Y-%m-%d}, commit {commit}. The guard",
            "that has to catch a mistake is asked first, the others where it does not.",
            "",
            *(f"    {line}" for line in summary(outcomes)),
            "",
            "| mistake | kind | caught by |",
            "| --- | --- | --- |",
            *rows,
            "",
        ]
    )


def _commit() -> str:
    """The commit that is checked out, and whether files were changed since."""
    run = subprocess.run(
        ["git", "describe", "--always", "--dirty", "--match="],
        cwd=SAVED.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    return run.stdout.strip() or "unknown"


if __name__ == "__main__":
    sys.exit(main())
