"""What the shell answers about the language itself: lists of names, and what each of them means."""
