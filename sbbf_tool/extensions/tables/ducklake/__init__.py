"""DuckLake tables: the catalog is a SQL database, in which a data file is one row with its path and
length.

catalog    names of tables, such as `ducklake:metadata.ducklake#main.events`; connections to DuckDB,
           SQLite and PostgreSQL
metadata   what a catalog says of one table
table      the table: its live files, and the commit

Specification: https://ducklake.select/docs/stable/specification/introduction
"""
