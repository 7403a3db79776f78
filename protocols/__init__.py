"""Learning protocols and their privacy: the plug-in contract, and the protocols that ship with hushnet."""
