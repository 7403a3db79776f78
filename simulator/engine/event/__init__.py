"""The event engine: every wake-up, message and timer is a SimPy event."""
