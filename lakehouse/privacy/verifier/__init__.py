"""A search for data subjects in every file below a home or in a bucket.

    search      all files of all roots, and the positive control
    values      values in bytes: UTF-8 and JSON forms
    columns     values in decoded columns, which Iceberg's field ids identify
    formats     the content of each file format

`docs/erasure.md` lists what it cannot find.
"""
