"""The graph that LangGraph Studio and `langgraph dev` serve; see ``langgraph.json``.

`DEEPERA_BACKEND` names the backend (default ``local``); the server brings its own checkpointer.
"""

import os

from deepera_graph.judges import load_backend
from deepera_graph.pipeline.graph import build_graph
from deepera_graph.settings import Settings

_backend = load_backend(os.environ.get("DEEPERA_BACKEND", "local"))

graph = build_graph(_backend, Settings(answer=_backend.answerer is not None))
