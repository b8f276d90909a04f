"""How good a model is, measured the same way for every family."""
