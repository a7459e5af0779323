"""An open Parquet file, which joins storage and format: keys, layout, hashes of a column chunk, distinct values, membership."""
