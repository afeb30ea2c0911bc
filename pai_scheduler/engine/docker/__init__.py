"""The engine for one Docker host: every task a container, every gang a network of its own."""
