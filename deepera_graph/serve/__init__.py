"""The server: evidence and rankings over HTTP, in our own form and in those of rerank clients.

`deepera serve` runs it; `deepera_graph.serve.app.create_app` makes the application. It needs the
extra ``serve``, so nothing here is imported by other parts of the package but the command.
"""
