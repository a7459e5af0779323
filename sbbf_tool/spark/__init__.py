"""The filters of a whole lake, by Spark: the same operations that the command line calls, on executors.

java, session     a Spark to work with: found, started, quiet
source            spark.read.format("sbbf"): what `inspect` and `check` know, as rows
watch             filters for files as they arrive
"""
