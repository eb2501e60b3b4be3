"""The commands of `deepera bioasq`: a file a step."""
