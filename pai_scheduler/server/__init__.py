"""The program `pai-scheduler`: its options, start-up, leadership among several, and maintenance."""
