"""The commands that judge passages: `ask`, `rerank`, `check` and `table`."""
