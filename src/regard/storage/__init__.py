"""Durable folders, and temporary ones that do not outlive their process."""
