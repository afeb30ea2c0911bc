"""The engine for many Docker hosts in one Swarm: Swarm knows the nodes, an agent on each runs the tasks."""
