"""Placement: nodes, GPUs, virtual clusters, queue order, and where a job can run; pure."""
