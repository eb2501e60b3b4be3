"""Whether a text says what another says: numbers, directions, opposites."""
