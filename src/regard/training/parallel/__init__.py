"""One training on many devices: a process for each, which together make the steps that one alone would make."""
