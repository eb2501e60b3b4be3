"""The commands that judge passages: `ask` and `rerank`."""
