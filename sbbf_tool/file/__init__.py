"""An open Parquet file, which combines storage and format: keys, layout, hashes of a column chunk,
distinct values, membership."""
