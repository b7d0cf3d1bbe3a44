"""Whether a person still is somewhere below a home or in a bucket: every byte is read, by code
that shares nothing with what erases.

    byte_forms, byte_search     values as bytes, whatever the file
    column_values               values of the declared columns, small integers included
    formats/                    what a file holds once it is decoded
    control                     a planted person that has to be found, or the proof is void
"""
