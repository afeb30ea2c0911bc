"""An HDFS as the users' storage, over WebHDFS."""
