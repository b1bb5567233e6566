"""``python -m mcpeval``: the command, for who has no folder of commands on the path."""

import sys

from .cli import main

sys.exit(main())
