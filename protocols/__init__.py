"""How a peer learns, and what it pays: the plug-in contract and the protocols that ship with hushnet."""
