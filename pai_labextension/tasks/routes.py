"""The routes into tasks: terminals, how to connect, ports."""

from __future__ import annotations

from pai_labextension.lazy_routes import RouteGroup, RouteSettings

from .connect import CheckHandler, CodeServerHandler, Connect, DescribeHandler
from .connections import TaskConnections
from .ports import PortHandler, Ports
from .terminals import NAME_PATTERN, TASK_PATTERN, TerminalHandler, TerminalsHandler, TerminalSocket


def make_part(settings: RouteSettings) -> RouteGroup:
    """Make the routes, and the ways into tasks behind them."""
    connections = TaskConnections(settings.api_url, settings.token)
    ports = Ports(connections)
    terminals = rf"/pai/terminals/{TASK_PATTERN}"
    port = rf"{TASK_PATTERN}/([^/]+)(/.*)?"
    connect = {"connect": Connect(connections, ports, settings.base_url)}

    async def close() -> None:
        await ports.close()
        await connections.close()

    return RouteGroup(
        [
            (rf"{terminals}/api/terminals", TerminalsHandler, {"connections": connections}),
            (rf"{terminals}/api/terminals/({NAME_PATTERN})", TerminalHandler, {"connections": connections}),
            (
                rf"{terminals}/terminals/websocket/({NAME_PATTERN})",
                TerminalSocket,
                {"connections": connections},
            ),
            (rf"/pai/connect/{TASK_PATTERN}", DescribeHandler, connect),
            (rf"/pai/connect/{TASK_PATTERN}/check", CheckHandler, connect),
            (rf"/pai/connect/{TASK_PATTERN}/code-server", CodeServerHandler, connect),
            (rf"/pai/ports/{port}", PortHandler, {"ports": ports, "absolute": False}),
            (rf"/pai/ports-absolute/{port}", PortHandler, {"ports": ports, "absolute": True}),
        ],
        close,
    )
