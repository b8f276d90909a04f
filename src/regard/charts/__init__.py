"""Charts: axes, drawings, and what writes them as SVG, PNG or a page. Nothing here knows a model."""
