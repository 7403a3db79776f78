"""What is there to catch mistakes: the tests nearest to them, the contract, and the audit."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from hushnet.simulator.audit.audit import Options, audit_subjects
from hushnet.simulator.contract import (
    ContractViolation,
    check_contract,
    check_engines,
    check_replay,
    checks,
    protocol_parameters,
)

from .cases import CASES, ENGINES, subject_of
from .declarations import Form, Guard, Mutation
from .seams import Plant, planted

ROOT = Path(__file__).parents[3]
VARIABLE = "HUSHNET_PLANTED_MISTAKE"
"""Names the mistake that `tests.privacy.mutations.plugin` plants in a run of pytest."""

NEAREST = {
    "descent": "tests/protocols/test_coordinate_descent.py",
    "averaging": "tests/protocols/test_dual_averaging.py",
    "push": "tests/protocols/test_push_sum_dual_averaging.py",
    "propagation": "tests/protocols/test_model_propagation.py",
    "penalty": "tests/protocols/test_perturbed_admm.py",
    "consensus": "tests/protocols/test_consensus_admm.py",
    "rows": "tests/protocols/test_local_dp.py",
    "sharing": "tests/protocols/test_feature_sharing.py",
    "sharing-stale": "tests/protocols/test_stale_feature_sharing.py",
}
"""The test file of a case's protocol, by the case or the first word of its name."""
PRIVACY = ["ledger", "accounting", "mechanisms", "mechanism_contract", "gamma", "budget"]
"""What is in ``tests/privacy/test_*.py`` and is run for every mistake."""


def by_contract(mutation: Mutation, form: Form) -> str | None:
    """The sentence of the contract's violation; None if there is none.

    Steps that are made one by one are not compared with planned ones: what is wrong with them has to show by itself.
    """
    case = CASES[mutation.case]
    parameters = protocol_parameters(case.protocol, case.parameters)
    with planted(mutation.plant if form == "planned" else lambda plant: _apart(plant, mutation)):
        try:
            if form == "planned":
                check_replay(case.protocol, parameters, engine=ENGINES[form])
                check_engines(case.protocol, parameters)
            else:
                check_contract(case.protocol, parameters)
        except ContractViolation as violation:
            return str(violation)
    return None


def _apart(plant: Plant, mutation: Mutation) -> None:
    """Plant a mistake, and leave out what would compare it with planned steps, and what shows nothing of privacy."""
    mutation.plant(plant)
    for name in ("check_engines", "check_networks"):
        plant.put(checks, name, lambda *_, **named: None)


def by_tests(mutation: Mutation, form: Form) -> str | None:
    """The first of the nearest tests that fails; None if none does."""
    protocol = NEAREST.get(mutation.case) or NEAREST[mutation.case.split("-")[0]]
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-m", "not slow", "-p", "tests.privacy.mutations.plugin"]
    run = subprocess.run(
        [*command, *(f"tests/privacy/test_{name}.py" for name in PRIVACY), protocol],
        cwd=ROOT,
        env={**os.environ, VARIABLE: mutation.name},
        capture_output=True,
        text=True,
        check=False,
    )
    if run.returncode not in (0, 1):
        raise RuntimeError(f"pytest ended with code {run.returncode}: {run.stdout[-500:]}{run.stderr[-500:]}")
    failed = [line.removeprefix("FAILED ") for line in run.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return failed[0] if run.returncode else None


def by_audit(mutation: Mutation, form: Form) -> str | None:
    """The first failure of an audit, tiers A and B; None if there is none."""
    with planted(mutation.plant):
        [outcome] = audit_subjects([subject_of(mutation.case, form)], OPTIONS, ROOT)
    return outcome.failures[0] if outcome.failures else None


OPTIONS = Options(tiers=("A", "B"), pairs=6)
"""As ``hushnet audit --tier A,B``."""

CATCHERS: dict[Guard, Callable[[Mutation, Form], str | None]] = {
    "contract": by_contract,
    "audit": by_audit,
    "tests": by_tests,
}
