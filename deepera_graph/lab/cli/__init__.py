"""The command line `deepera-lab`: a module a group of commands."""
