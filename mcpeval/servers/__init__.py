"""MCP servers: the files that name them, their sessions, and their tools as a model sees them.

Layers: permissions, origins (what a command starts), stdio (a server process and its pipes) | files
(`Server`, `read_servers`, `catalogue`) | listing (`list_servers`), connection (one session, over any
transport) | sharing (one for several runs), results (`blob`) | toolbox (the tools of several) |
checking (`check_servers`).  The MCP SDK is imported in stdio and connection alone, once a server is
started.
"""

from .checking import check_servers
from .connection import Connection
from .files import Server, catalogue, permitted, read_servers
from .listing import list_servers
from .permissions import Permission, Permissions, read_permissions
from .results import blob
from .sharing import SharedServers
from .toolbox import Toolbox, open_toolbox

__all__ = [
    "Connection",
    "Permission",
    "Permissions",
    "Server",
    "SharedServers",
    "Toolbox",
    "blob",
    "catalogue",
    "check_servers",
    "list_servers",
    "open_toolbox",
    "permitted",
    "read_permissions",
    "read_servers",
]
