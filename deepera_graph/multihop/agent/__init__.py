"""The agent for questions of several hops."""
