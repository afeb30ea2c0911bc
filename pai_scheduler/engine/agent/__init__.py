"""The agent: runs the tasks of one node on that node's own Docker Engine, as a scheduler elsewhere asks."""
