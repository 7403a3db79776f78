"""What a scenario needs in memory, and what of it drawing would refuse: said before any run."""
