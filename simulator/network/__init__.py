"""When and where: clocks, latency, loss and topology, drawn from named streams."""
