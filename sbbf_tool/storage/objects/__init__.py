"""Objects of S3, Google Cloud Storage and Azure, files of HDFS and of HTTP servers: one interface
for all services.

    store       the interface of a service: read a range of one version, list the names below a
                prefix, publish a version in one step
    s3_bucket   reads of S3, by botocore
    s3_errors   the errors of botocore
    s3_facts    what a bucket supports
    s3_publish  writes to S3
    cloud       reads of Google Cloud Storage, Azure and HTTP, by obstore
    azure, google
                writes to the same stores by azure-storage-blob and google-cloud-storage
    answers     limits of what these libraries read and log
    conditional the steps that publications to all services share
    arrow       HDFS, by pyarrow and libhdfs
    stores      what `storage.places` does with a URL: open, replace, read and create metadata files
    source      one version of an object, read in few requests
    listing     the Parquet files of a URL

Nothing here is imported for local files.
"""
