"""Files as other programs write them, turned into what scenarios read: edges, delays, availability, times of steps."""
