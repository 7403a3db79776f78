"""Refusals before any run: what does not fit into memory, and what drawing would refuse."""
