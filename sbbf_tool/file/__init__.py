"""An opened Parquet file, where storage and format meet: keys, layout, hashes of a column chunk, distinct values, membership."""
