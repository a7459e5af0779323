"""Apache Paimon's file index: inspect, query, build and verify its Bloom filters, and add them to existing tables.

From bytes to commits; modules import only from the same line and lines above:

    data_types, fast_hash                                        the hash of a value
    bloom64 (bloom64_spec, bloom64_sizing)                       the filter
    index_container (modified_utf8)                              the container of the indexes of one file
    table_schema, index_options, snapshot, manifest,
    manifest_stats, binary_row, partition_path                   the metadata files of a table
    files, table, file_index, reading_rules                      from a table to its data files; the index that Paimon uses, and when
    literals                                                     values written as text
    data_file (arrow_columns, orc_zones, avro_columns)           values stored in data files
    commit_plan, publish                                         a commit that adds indexes to data files

The operations are in `operations/paimon`. No module here opens files or prints: callers pass the storage, as in `files`.
"""
