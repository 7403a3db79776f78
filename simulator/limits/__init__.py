"""What runs need at least, from a scenario alone: events and memory; what cannot be is refused before any run."""
