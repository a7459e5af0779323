"""Which columns deserve a filter, judged by the files and the expected queries."""
