"""Claims of lectures and papers, one file each, and what several of them share."""
