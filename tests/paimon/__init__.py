"""Paimon's file index. What needs real tables with known answers takes them from the folder SBBF_CONFORMANCE names."""
