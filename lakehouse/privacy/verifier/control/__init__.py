"""The positive control of a proof: a made-up person is planted in each class of place, by the real
writers of each format, and has to be found there.
"""
