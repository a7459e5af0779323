"""Apache Iceberg tables, formats 1 to 3: live files, and the snapshot that replaces files by copies
with the same rows.

From bytes to commits; modules import only from the same line and lines above:

    metadata, schema    the JSON of a table: partition specs, snapshots; columns, and partition
                        values as text
    source              where a table's metadata is kept, locations in it, and how a commit gets
                        there
    manifest_schema     the fields of manifest lists and manifests, by field id
    manifest            manifest lists and manifests, as Avro records with all their fields
    deletes             which deletes apply to a data file, and which can be carried over to a copy
    scan                the files of a snapshot, with their deletes
    commit_plan         the manifests and the snapshot of a commit
    carried_deletes     position deletes for the copies
    folder, catalog     tables in folders, and tables of PyIceberg's catalogs
    table               the commit, and `IcebergTable`; `open_folder`, `open_in_catalog`
"""
