"""``mcpeval servers``: which can start here, and which work."""

from __future__ import annotations

import argparse
from typing import Any

from .options import SERVERS, add_actions, servers_of


def add(commands: Any) -> None:
    actions = add_actions(commands, "servers", "look at MCP servers")
    check = actions.add_parser(
        "check", help="start each server of a file, list its tools, time a ping, say what failed and why"
    )
    check.add_argument("file", metavar="FILE", help=SERVERS)
    check.set_defaults(function=_check)
    listing = actions.add_parser("list", help="say which can start here, and what the others lack; starts none")
    listing.add_argument("file", nargs="?", metavar="FILE", help=f"{SERVERS}; default: the whole catalogue")
    listing.set_defaults(function=_list)


def _list(arguments: argparse.Namespace) -> None:
    from ..servers import list_servers

    rows = list_servers(None if arguments.file is None else servers_of(arguments.file))
    table = [("SERVER", "STARTS HERE", "PACKAGE", "WHAT")]
    for row in rows:
        # What is fetched is fetched once.
        starts = "yes, fetched first" if row["fetched"] is False else "yes"
        package = row["package"] or ("-" if row["transport"] == "stdio" else row["transport"])
        package += f" {row['package_version']}" if row["package_version"] else ""
        table.append((row["name"], starts if row["ready"] else "no", package, row["description"]))
        table += [("", f"  lacks {what}", "", "") for what in row["lacks"]]
    widths = [max(len(line[i]) for line in table if line[0] or i != 1) for i in range(3)]
    for line in table:
        cells = [text.ljust(width) for text, width in zip(line, widths, strict=False)]
        print("  ".join((*cells, line[3])).rstrip())
    print(f"{sum(row['ready'] for row in rows)} of {len(rows)} servers can start here")


def _check(arguments: argparse.Namespace) -> int:
    from ..servers import check_servers

    rows = check_servers(servers_of(arguments.file))
    if not rows:
        print(f"{arguments.file}: names no server")
    for row in rows:
        if row["ok"]:
            info = row["server_info"] or {}
            who = " ".join(filter(None, [info.get("name"), info.get("version")]))
            times = f"started in {row['connect_seconds']:.2f} s, ping {1000 * row['ping_seconds']:.1f} ms"
            print(f"{row['name']}: ok ({row['transport']}, {who}), {times}, {len(row['tools'])} tools")
            print(f"  {', '.join(row['tools'])}")
        else:
            print(f"{row['name']}: FAILED ({row['transport']}, {row['command']})")
            print("\n".join(f"  {line}" for line in str(row["error"]).splitlines()))
    return 0 if all(row["ok"] for row in rows) else 1
