"""A sitting as one HTML file: it opens from disk, needs no network, and may not use any."""
