"""The process in which models run: it reads requests from a pipe and writes tokens into another (serving/wire.py)."""
