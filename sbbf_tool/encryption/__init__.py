"""Parquet modular encryption (parquet-format Encryption.md): keys, modules, footers, filters and
pages. Bytes in, bytes out.

modules          one module and its plaintext; the data that bind it to its place: file, kind, row
                 group, column, page
keys             the keys that a caller gives, and the search for a key with a file's key metadata,
                 also that of parquet-java's key tools
file_cipher      encryption and decryption with the keys of one file; a filter as two modules;
                 `Footer` from encrypted and signed footers
decrypted_pages  the decrypted pages of a column chunk, laid out as in a plain file
"""
