"""Every figure and table of the papers: what is claimed, what hushnet measures, and whether the two agree."""
