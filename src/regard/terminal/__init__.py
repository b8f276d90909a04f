"""What is printed for people: tables, numbers, and text made harmless."""
