"""Counting: n-gram tables from text, their probabilities, files and worked calculations.

count (text to counts) -> merge (counts of parts to counts of the whole) -> estimate (counts to probabilities)
"""
