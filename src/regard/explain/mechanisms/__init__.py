"""Mechanisms worked out in numbers, for one position of a reading: one family a file."""
