"""What an agent can call, one file a tool; the MCP server that offers these to a client belongs here too."""
