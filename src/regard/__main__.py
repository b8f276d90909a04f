"""`python -m regard` is the `regard` command."""

import sys

from regard.cli.main import main

sys.exit(main())
