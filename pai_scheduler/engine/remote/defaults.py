"""What holds of agents unless an administrator says otherwise."""

#: where an agent listens
AGENT_PORT = 7947
#: seconds that a node may be away before its tasks count as lost
PATIENCE_SECONDS = 120.0
