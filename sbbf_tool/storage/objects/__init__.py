"""Objects of S3, Google Cloud Storage and Azure, files of HDFS and of HTTP servers: one interface for all services.

    location    the parts of a URL
    store       the interface of a service: read a range of one version, list the names below a prefix, publish a version in one step
    s3_publish  S3 by botocore: `s3_bucket` reads, and this module alone writes; `s3_errors` translates its errors
    cloud       reads of Google Cloud Storage, Azure and HTTP, by obstore
    azure_publish, google_publish
                writes to the same stores by azure-storage-blob and google-cloud-storage (`azure_account`, `google_account`); both are a
                `cloud_writer`; `azure_blocks` plans block lists
    answers     limits of what these libraries read and log
    conditional the steps that publications to all services share
    arrow       HDFS, by pyarrow and libhdfs
    stores      the store of a URL
    source      one version of an object, read in few requests
    folders     the metadata files of a table: read, list, create
    listing     the Parquet files of a URL
    publish     publish a new version of an object without uploading the bytes that the store already has

Nothing here is imported for local files.
"""
