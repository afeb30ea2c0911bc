"""What holds for running notebook servers: ends those that are idle or too old, warns before, sets limits."""
