"""Every protocol in every way that it can run, as a multiple of its floor: ``python -m tests.benchmarks.matrix``."""
