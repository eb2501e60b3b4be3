"""The commands that libraries are filled and kept with: `index` and `library`."""
