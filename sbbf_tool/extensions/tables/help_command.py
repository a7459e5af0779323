"""`sbbf help tables`."""

TEXT = """
A PATH may be the root of a table: the folder or URL of a table of Delta Lake,
or of Iceberg, or the catalog of DuckLake. Commands then work on the files of
the newest version, with the names of columns that users know:

  sbbf probe orders user_id 42 --where "day >= '2026-01-01'"
  sbbf add-filter orders -c user_id --in-place
  sbbf check orders --select declared

A change copies each file with its filters beside the old one, verifies all
values, and commits the copies as one new version, in which no row changes.
Old files stay until the table's own clean-up. sbbf remove-filter removes the
filters by one more commit; the report names the statement that restores the
version before.

  --as-files           take the files below the root, of old versions too
  --as iceberg         of a folder with two tables, that of Iceberg; or delta
  --also-new-files     let the table's writers add filters to new files

The setting files-per-commit commits every N files instead of once.

Tables of Apache Paimon have filters of their own: sbbf paimon.
"""
