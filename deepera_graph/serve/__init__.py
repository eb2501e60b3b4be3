"""Servers: evidence and rankings over HTTP with a page for people, and tools over MCP.

`deepera serve` runs the one, `deepera_graph.serve.app.create_app` makes its application (extra
``serve``); `deepera mcp` runs the other (extra ``mcp``). Nothing here is imported by other parts of
the package but the commands.
"""
