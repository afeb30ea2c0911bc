"""When a job is to run again and again; pure: what is known goes in, times and names come out."""
