"""Objects of S3, Google Cloud Storage and Azure, files of HDFS, and what HTTP servers give: each service behind the same few questions.

    location    what a URL names
    store       the questions that each service answers: a range of one version, the names below a prefix, a new version in one step
    s3_publish  S3 by botocore, which `s3_bucket` reads and this writes, the only one that does; `s3_errors` translates its errors
    cloud       Google Cloud Storage, Azure and HTTP, by obstore
    arrow       HDFS, by pyarrow and libhdfs
    stores      which store a URL leads to
    source      one version of an object, read in few requests
    listing     the Parquet files that a URL means
    publish     how an object gets a new version without uploading what the store has already

Nothing here is imported for local files.
"""
