"""What all agents are made of: roles, the nodes that call them, runs, results, and journals."""
