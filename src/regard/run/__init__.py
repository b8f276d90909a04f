"""A run: its settings, its folder, how it is trained, and what can be done with it."""
