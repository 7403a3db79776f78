"""A schedule that does not fit its protocol is refused before anything runs."""

from __future__ import annotations

import pytest

from .refusal import check_mistake


@pytest.mark.parametrize(
    ("kind", "instead"),
    [
        ("consensus_admm", "edge_consensus_admm"),
        ("perturbed_admm", "edge_consensus_admm"),
        ("dual_averaging", "push_sum_dual_averaging"),
        ("feature_sgd", "stale_feature_sharing"),
    ],
)
def test_patience_is_refused_by_a_check_where_both_ends_of_an_edge_need_one_round(tmp_path, capsys, kind, instead):
    base = "schema: 1\nscenario: ends\ntask: {kind: linear_classification, agents: 4, dimension: 2}\n"
    base += "topology: {kind: ring}\nstop: {time: 5.0}\n"
    noise = "    noise: {alpha: 3.0}" if kind == "perturbed_admm" else "    label: both ends"
    lines = [
        "protocols:",
        "  p:",
        f"    kind: {kind}",
        noise,
        "    schedule:",
        "      kind: rounds",
        "      patience: 2.0",
    ]
    says = ("protocols.p.schedule.patience = 2", repr(kind), "same round", "resend_after", f"protocol {instead}")
    check_mistake(tmp_path / "ends.yaml", base, lines, 12, says, capsys)


def test_a_schedule_that_does_not_fit_a_protocol_is_refused_by_a_check(tmp_path, capsys):
    base = "schema: 1\nscenario: ends\ntask: {kind: linear_classification, agents: 4, dimension: 2}\n"
    base += "topology: {kind: ring}\nstop: {time: 5.0}\nprotocols:\n"
    for number, (entry, says) in enumerate(
        [
            ("p: {kind: consensus_admm, schedule: async}", ("protocols.p.schedule = 'async'", "made of rounds")),
            ("p: {kind: edge_consensus_admm, schedule: rounds}", ("exchanges in pairs, which has no rounds",)),
            ("p: {kind: coordinate_descent, schedule: exchange}", ("does not exchange in pairs",)),
        ]
    ):
        check_mistake(tmp_path / f"{number}.yaml", base, [f"  {entry}"], 7, says, capsys)
