"""Avro files, as manifests of Paimon and Iceberg and data files of Paimon are: read within limits,
and written."""
