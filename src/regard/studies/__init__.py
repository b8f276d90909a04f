"""What regard asks of its models: which fits the data (compare), and do the claims hold (reproduce)."""
