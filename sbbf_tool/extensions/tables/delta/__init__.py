"""Delta tables, by their own log: replay it, plan a commit that replaces files by copies, and
create the next version.

actions     the actions of a log and of a checkpoint, whose shape is untrusted, and the paths in
            them, which are URIs
schema      the columns of a table, with the names that files and users have for them
snapshot    the state of a table at a version, and what it requires of readers and writers
log         which files make up a version, reading snapshots, creating versions
table       the table as `runner.table` wants it, and the actions of a commit
"""
