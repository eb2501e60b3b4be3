"""Servers for other programs: over HTTP, and over MCP for the models and agents of any host.

`deepera serve` runs `deepera_graph.serve.app.create_app`, and `deepera mcp` what is in `mcp`. Each
needs an extra, so nothing here is imported by other parts of the package but the commands.
"""
