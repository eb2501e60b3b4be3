"""Files and arrays that several systems keep what they found in: SQLite, vectors, words."""
