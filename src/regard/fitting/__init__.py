"""What fitted models share: sparse rows, the n-grams of texts as features, and an exact solver for convex losses."""
