"""Audits: what a scenario's private protocols reveal at least, and whether noise and sensitivities are what they say.

Tier A (noise and samples as drawn) is `hushnet.simulator.contract.noise_tests` and `samples_seen` of more seeds.

::

    worlds.py            which protocols, and the worlds in which they are looked at
    pairs.py             neighbouring data sets that are worst for a loss and a mechanism
    realised.py          tier B: the pairs, replayed
    game.py              tier C: likelihood ratios of transcripts, and of the mechanism alone
    players.py           who plays them
    audit_statistics.py  lower bounds on epsilon from counted trials
    counterexamples.py   data sets that one message tells apart for certain
    verdicts.py          proved, not proved, refuted
    audit.py             all of it together
    outcome.py, profile.py, figure.py, audit_command.py   what is written and said
"""
