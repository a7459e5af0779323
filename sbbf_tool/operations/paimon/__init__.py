"""What is done with Paimon's file indexes: shown, asked, built, proven, and added to tables.

Each function takes `files`, through which it reaches the table, or else the local file system.
"""
