"""Answers of the shell about the language itself: lists of names, and the meaning of each name."""
