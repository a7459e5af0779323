"""DuckLake tables: the catalog is a SQL database, in which a data file is one row with its path and
length.

catalog           names of tables, such as `ducklake:metadata.ducklake#main.events`; connections to
                  DuckDB, SQLite and PostgreSQL
rows              the rows of queries, with values of the expected types
entries           tables, columns and data files as values; paths of files
partition_keys    the names of partition keys
inlined_rows      rows that the catalog has in place of files
metadata          what a catalog says of one table
table             the table: its live files, and the commit

Specification: https://ducklake.select/docs/stable/specification/introduction
"""
