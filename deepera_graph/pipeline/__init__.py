"""What the graph does at each stage; one module a node."""
