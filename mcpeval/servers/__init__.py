"""MCP servers: the files that name them, their sessions, and their tools as a model sees them.

Layers: stdio (a server process and its pipes) | files (`Server`, `read_servers`) | connection (one
session, over any transport) | toolbox (the tools of several) | checking (`check_servers`).  The MCP
SDK is imported in stdio and connection alone, once a server is started.
"""

from .checking import check_servers
from .connection import Connection
from .files import Server, read_servers
from .toolbox import Toolbox, open_toolbox

__all__ = ["Connection", "Server", "Toolbox", "check_servers", "open_toolbox", "read_servers"]
