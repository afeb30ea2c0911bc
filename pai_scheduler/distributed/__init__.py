"""What starts a distributed program in a task, from the variables that every task gets."""
