"""Parquet modular encryption (parquet-format Encryption.md): keys, modules, footers, filters and pages. Bytes in, bytes out.

modules        one module <-> its plaintext; what binds it to its place: file, kind, row group, column, page
keys           the keys that a caller gives, and the search for a key by a file's key metadata
key_material   the key metadata that parquet-java's key tools, and so Spark, write
file_cipher    encryption and decryption with the keys of one file
footers        encrypted and signed footers <-> `Footer`
filters        a filter as two modules
decrypted_pages  the decrypted pages of a column chunk, laid out as in a plain file
"""
