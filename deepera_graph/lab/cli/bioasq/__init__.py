"""The commands of `deepera-lab bioasq`: a file a step."""
