"""The engine protocol over the network: a node's agent runs the tasks, and this side asks it."""
