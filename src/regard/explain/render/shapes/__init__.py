"""Panels as shapes of a picture: each kind has a function that draws a panel at the end of a drawing."""
