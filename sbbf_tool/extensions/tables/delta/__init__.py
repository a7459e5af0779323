"""Delta tables, by their own log: replay it, plan a commit that replaces files by copies, and create the next version.

actions     the actions of a log, whose shape is untrusted
paths       paths of data files in the log, which are URIs
schema      the table's schema, and the names of its columns in files
features    what a table may require of its readers and writers
segment     which files of a log make up a version
statistics  statistics of a file as JSON, from checkpoints that have them only as columns
checkpoint  the actions of a checkpoint in Parquet
snapshot    the state of a table at a version
log         reading snapshots, creating versions
plan        the actions of a commit
table       the table as `runner.table` wants it
"""
