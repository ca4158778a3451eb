"""What an agent can call: one file a tool, and the server that offers them to a client by MCP."""
