"""What is measured of a run, at instants of its own, and never changes it."""
