"""Panels in the cells of a terminal: each kind has a function from a panel and a paper to lines."""
