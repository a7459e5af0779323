"""Apache Iceberg tables, formats 1 to 3: live files, and the snapshot that replaces files by copies with the same rows.

From bytes to commits; modules import only from the same line and lines above:

    paths                             locations in metadata, and the names by which files are opened
    metadata, schema                  the JSON of a table: schemas, partition specs, snapshots
    manifest                          manifest lists and manifests, as Avro records with all their fields
    partition, position_deletes       partition values as text; which files have rows deleted by position
    source                            where a table's metadata is kept, and how a commit gets there
    scan                              the files of a snapshot
    commit_plan, publish              the manifests and the snapshot of a commit; the commit
    folder, catalog                   tables in folders, and tables of PyIceberg's catalogs
    table                             `IcebergTable`; `open_folder`, `open_in_catalog`
"""
