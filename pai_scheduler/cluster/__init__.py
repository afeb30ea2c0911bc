"""Where a job can run: nodes, GPUs, virtual clusters, queue order, placement; pure."""
