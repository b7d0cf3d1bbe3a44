"""Whether a person still is somewhere below a home or in a bucket: every byte is read, by code
that shares with what erases only how values are compared.

    verify                      the proof: a search, and a control that has to be found
    search, inspection          all files of all roots, then one file
    byte_forms, byte_search     values as bytes, whatever the file
    column_values               values of the declared columns, small integers included
    formats/                    what a file holds once it is decoded
    control/                    a planted person

What it cannot find: a value that is encrypted or hashed (bloom filters and sketches are named, of
declared columns); in base64 that is broken into lines; in more JSON within JSON than three levels
of escapes; in a free page of a database where it is compressed, or in part overwritten; or a
small integer anywhere but in a column or field of a declared name.
"""
