"""Files as other programs write them, turned into the three that scenarios read: edges, delays, availability."""
