"""Servers for other programs: over MCP, for the models and agents of any host."""
