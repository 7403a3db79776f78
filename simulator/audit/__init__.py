"""Audits: what a scenario's private protocols reveal at least, and whether noise and sensitivities are what they say.

::

    worlds.py            which protocols, and the worlds in which they are looked at
    pairs.py             neighbouring data sets that are worst for a loss and a mechanism
    sampling_as_drawn.py tier A: how often rows take part; of noise, `hushnet.simulator.contract.noise_tests`
    realised.py          tier B: the pairs, replayed
    game.py              tier C: likelihood ratios of transcripts, and of the mechanism alone
    one_run.py           the same for all agents at once, in few runs
    players.py           who plays them
    statistics.py        lower bounds on epsilon from counted trials
    counterexamples.py   data sets that one message tells apart for certain
    verdicts.py          proved, not proved, refuted
    audit.py             all of it together
    outcome.py, profile.py, figure.py, command.py   what is written and said
"""
