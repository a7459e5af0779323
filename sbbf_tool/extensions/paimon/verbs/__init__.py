"""Operations on Paimon's file indexes: inspect, probe, build, verify, and add them to tables.

Each function accesses the table through its argument `files`, by default the local file system.
"""
