"""How fast the engines are: run by hand as ``python -m tests.benchmarks``; see README.md."""
