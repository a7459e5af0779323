"""Tables of Delta, Iceberg and DuckLake: their live files, and the commit that replaces files by copies with other filters."""
