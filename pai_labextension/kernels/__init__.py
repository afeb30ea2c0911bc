"""Kernels that are jobs: one gets a GPU from the scheduler, and gives it back when it is idle."""
