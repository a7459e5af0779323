"""Parquet modular encryption (parquet-format Encryption.md): keys, modules, footers, filters and pages. Bytes in, bytes out.

modules        one module <-> its plaintext; what binds it to its place: file, kind, row group, column, page
keys           the keys that a caller gives, and how a file's key metadata finds one of them
key_material   the key metadata that parquet-java's key tools, and so Spark, write
file_cipher    the keys of one file at work
footers        encrypted and signed footers <-> `Footer`
filters        a filter as two modules
opened_pages   the pages of a column chunk as if they had never been encrypted
"""
