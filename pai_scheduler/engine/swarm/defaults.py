"""What holds of agents unless an administrator says otherwise."""

#: where an agent listens
AGENT_PORT = 7947
#: seconds that a node may be away before its tasks count as lost
PATIENCE_SECONDS = 120.0
#: Begins the line that says why an agent does not run, the last one of the agents' service until it does.
ENDS = "The agent does not run: "
