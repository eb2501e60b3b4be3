"""The one way to ask a chat model: client, output modes, retries, rate limits, JSON extraction."""
