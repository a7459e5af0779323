"""Apache Paimon's file index: its Bloom filters seen, asked, built, proven, and added to tables that are already there.

From bytes to commands, each line knowing only those above it:

    data_types, fast_hash                                        what is hashed of a value
    bloom64 (bloom64_spec, bloom64_sizing)                       the filter
    index_container (modified_utf8)                              the container of a file's indexes
    avro_schema, avro_values, avro_file                          Avro, the form of manifests
    table_schema, index_options, snapshot, manifest,
    manifest_stats, binary_row, partition_path                   what a table's metadata files hold
    files, table, file_index, reading_rules                      a table's walk, and which index Paimon uses when
    literals                                                     values as people write them
    data_file (arrow_columns, orc_zones, avro_columns)           values as data files store them
    commit_plan, publish                                         a commit that gives data files new indexes

What is done with all this is in `operations/paimon`. Nothing here opens a file, prints, or knows where bytes live: see `files`.
"""
