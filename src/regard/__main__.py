"""`python -m regard` and the script `regard` are the same command."""

# No import of anything that Python has not loaded by now may stand above the removal, not even of __future__.
import os
import sys

try:
    HERE = os.getcwd()
except OSError:
    HERE = None
# `python -m` puts the current folder first on the path: a json.py or torch.py in it would be imported for the real one.
if not sys.flags.safe_path and sys.path and sys.path[0] in ("", HERE):
    del sys.path[0]


def main() -> int:
    """The command; Ctrl-C before it has begun, or after its end, says nothing."""
    if HERE is None:
        sys.stderr.write("regard: error: the current folder is gone or closed to you; change into another\n")
        return 6
    try:
        from regard.cli.main import main as command

        return command()
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
