"""Clocks, latency, loss and topology, drawn from named streams."""
