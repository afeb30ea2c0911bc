"""Users' files: one protocol, a folder or HDFS behind it, and who may do what in which tree."""
