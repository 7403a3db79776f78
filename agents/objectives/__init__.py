"""Global objectives, which agents minimise together, and their exact minimisers."""
