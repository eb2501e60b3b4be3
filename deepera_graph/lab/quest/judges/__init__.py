"""Who grades the papers of a built search, and how grades are joined."""
