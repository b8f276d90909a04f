"""The built-in trackers, one a file."""
