"""Asks ``run`` about every planted protocol, and prints by kind what it caught, who survived and who was refused."""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Sequence
from datetime import date
from pathlib import Path

from . import CASES, KINDS, Outcome, ask

SAVED = Path(__file__).with_name("RESULTS.md")
"""The last pass that was kept."""
RATE, RATE_OF_KIND = 0.97, 0.9
"""Shares of mistakes that have to be caught, of all and of every kind."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a row for each protocol and a table by kind; 1 if too many survived, or an honest one was refused."""
    parser = argparse.ArgumentParser(prog="python -m tests.privacy.planted", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="protocols; all by default")
    parser.add_argument("--kind", action="append", choices=KINDS, help="of this kind only; repeat it for more than one")
    parser.add_argument("--first", action="store_true", help="under the first mechanism, sampling and adjacency alone")
    parser.add_argument("--save", action="store_true", help=f"write what is printed to {SAVED.name}, with the commit")
    given = parser.parse_args(arguments)
    unknown = set(given.names) - {case.name for case in CASES}
    if unknown:
        parser.error(f"no such protocol: {', '.join(sorted(unknown))}")
    outcomes, commit = [], _commit()
    for case in CASES:
        if case.kind in (given.kind or KINDS) and case.name in (given.names or [case.name]):
            for variant in case.variants[: 1 if given.first else None]:
                outcomes.append(ask(variant))
                print(line(outcomes[-1]), flush=True)
    print("", *table(outcomes), "", *notes_on(outcomes), sep="\n")
    if given.save:
        asked = " ".join(sys.argv[1:] if arguments is None else arguments)
        SAVED.write_text(page(outcomes, commit, asked), encoding="utf-8")
    return 0 if enough(outcomes) else 1


def enough(outcomes: Sequence[Outcome]) -> bool:
    """Whether all honest protocols passed, and so many mistakes were caught as have to be."""
    shares = [_share([one for one in outcomes if one.variant.case.kind == kind]) for kind in KINDS[:-1]]
    planted = [one for one in outcomes if one.variant.case.kind != "honest"]
    honest = [one for one in outcomes if one.variant.case.kind == "honest"]
    return not any(one.caught for one in honest) and min(shares) >= RATE_OF_KIND and _share(planted) >= RATE


def line(outcome: Outcome) -> str:
    """What came of one protocol."""
    said = " ".join(outcome.said.split())[:200]
    mark = "nothing verified" if outcome.caught else f"verified {outcome.verified:.4g}"
    return f"{outcome.variant.name:60} {mark:18} {outcome.seconds:6.1f} s  {said}"


def table(outcomes: Sequence[Outcome]) -> list[str]:
    """Counts by kind, in Markdown: protocols, and all that they were tried under."""
    rows = ["| kind | protocols | caught in every form | tried | caught |", "| --- | --- | --- | --- | --- |"]
    for kind in (*KINDS[:-1], "all mistakes", "honest"):
        chosen = [one for one in outcomes if _is_of(one, kind)]
        if chosen:
            names = {one.variant.case.name for one in chosen}
            missed = {one.variant.case.name for one in chosen if not one.caught}
            caught = sum(one.caught for one in chosen)
            share = f" ({caught / len(chosen):.0%})"
            rows.append(f"| {kind} | {len(names)} | {len(names - missed)} | {len(chosen)} | {caught}{share} |")
    return rows


def notes_on(outcomes: Sequence[Outcome]) -> list[str]:
    """Who survived, by protocol and with the reason, and which honest ones were refused, with the sentence."""
    found: dict[tuple[str, str, str], list[str]] = {}
    for one in outcomes:
        case = one.variant.case
        if case.kind == "honest" and one.caught:
            found[("honest, refused", one.variant.name, one.said)] = []
        elif case.kind != "honest" and not one.caught:
            what = f"{case.what}; {case.beyond}" if case.beyond else case.what
            found.setdefault((case.kind, case.name, what), []).append(one.variant.name.partition("/")[2])
    return [
        f"- {kind}: {name}: {what}" + (f" ({len(under)}: {', '.join(under)})" if under else "")
        for (kind, name, what), under in found.items()
    ]


def page(outcomes: Sequence[Outcome], commit: str, asked: str) -> str:
    """What a pass has shown, as Markdown."""
    return "\n".join(
        [
            "# Planted protocols, and what `run` said of them",
            "",
            f"`python -m tests.privacy.planted {asked}` on {date.today():%Y-%m-%d}, commit {commit}.",
            "A mistake is caught where nothing is verified: the run is refused, or the verified epsilon is infinite.",
            "Each protocol is tried under every mechanism, sampling and adjacency that applies.",
            "",
            *table(outcomes),
            "",
            "Survived, or refused though honest:",
            "",
            *(notes_on(outcomes) or ["- none"]),
            "",
        ]
    )


def _is_of(outcome: Outcome, kind: str) -> bool:
    own = outcome.variant.case.kind
    return own == kind or (kind == "all mistakes" and own != "honest")


def _share(outcomes: Sequence[Outcome]) -> float:
    return sum(one.caught for one in outcomes) / len(outcomes) if outcomes else 1.0


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
