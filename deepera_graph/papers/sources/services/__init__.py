"""Services of literature, a module each."""
