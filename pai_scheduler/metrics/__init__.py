"""What one can measure: what each task uses, kept beside its log, and the scheduler's own metrics."""
