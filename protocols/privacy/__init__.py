"""Releases, by which protocols reveal their agents' data, and their cost in privacy.

A `Release` says what a message carries and with how much noise; the `Ledger` counts releases and refuses those beyond
an agent's `Budget`; `accounting` turns counts into epsilon, as a paper claims it and as it can be proved; `Privacy`
holds the parameters that a scenario may set and `plan` spreads them over an agent's releases.
"""
