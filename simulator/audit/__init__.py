"""Audits: what a scenario's private protocols reveal at least, and whether noise and sensitivities are what they say.

Tier A (noise and samples as drawn) is `hushnet.simulator.contract.noise_tests` and `samples_seen` of more seeds, tier B
(pairs, replayed) realised.py, and tier C (likelihood ratios) game.py; audit.py is all of it together.
"""
