"""The command line `deepera`.

A module a command holds its options and its help, and is quick to import; `deepera_graph.cli.work`
holds what the commands do, and is imported when one runs.
"""
