"""Measurement of a run, at instants of its own, without changing the run."""
