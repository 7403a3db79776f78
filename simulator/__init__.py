"""When and where: the event loop, clocks, network and topology, scenarios, recording, results and the shell."""
