"""Training: a straight-line loop, its settings, and the run folder that it leaves."""
