"""The MCP server of one attempt's tools, over stdin and stdout: `python -P -m agent.tools.server TOOLS_JSON`."""

import os
import sys
from pathlib import Path

from agent.tools.settings import SERVER, ToolSettings
from agent.tools.toolbox import Toolbox
from bench.errors import KernelcourtError


async def serve(box: Toolbox) -> None:
    """Answer one client until it closes the stream. Calls run side by side; one that is given up goes on."""
    # Imported here: importing this module must work without the SDK, and the SDK costs most of the start.
    import mcp.types
    from anyio import to_thread
    from mcp.server.context import ServerRequestContext
    from mcp.server.lowlevel import Server
    from mcp.server.stdio import stdio_server

    async def tools(
        context: ServerRequestContext, page: mcp.types.PaginatedRequestParams | None
    ) -> mcp.types.ListToolsResult:
        found = [mcp.types.Tool(name=t.name, description=t.description, input_schema=t.schema) for t in box.listed()]
        return mcp.types.ListToolsResult(tools=found)

    async def call(context: ServerRequestContext, asked: mcp.types.CallToolRequestParams) -> mcp.types.CallToolResult:
        reply = await to_thread.run_sync(box.call, asked.name, asked.arguments or {}, abandon_on_cancel=True)
        return mcp.types.CallToolResult(content=[mcp.types.TextContent(text=reply.text)], is_error=reply.refused)

    server = Server(SERVER, on_list_tools=tools, on_call_tool=call)
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


def main(settings_file: str) -> int:
    """Serve until the client leaves; the exit code."""
    import anyio

    try:
        box = Toolbox(ToolSettings.read(Path(settings_file)))
    except KernelcourtError as error:
        sys.stderr.write(f"error: {error}\n")
        return error.exit_code
    anyio.run(serve, box)
    return 0


if __name__ == "__main__":
    code = main(*sys.argv[1:])
    sys.stderr.flush()
    # A thread may still wait for a grade that nobody will take.
    os._exit(code)
