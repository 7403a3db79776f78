"""Minimising: Newton, proximal solvers, support vectors, splitting, and their compiled forms."""
