"""The file format: Parquet's footer, columns, values and stored filters as bytes in, bytes out. This package opens and prints nothing."""
