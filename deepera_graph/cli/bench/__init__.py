"""The commands of `deepera bench`: options and help, one file a command."""
