"""Ways to look at a run, one a file; `regard.explain.registry` lists them."""
