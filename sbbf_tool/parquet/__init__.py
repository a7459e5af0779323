"""The file format: Parquet's footer, columns, values and stored filters. Bytes in, bytes out: this
package opens and prints nothing."""
