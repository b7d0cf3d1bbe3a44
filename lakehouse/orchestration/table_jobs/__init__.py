"""Tables that are computed in a job of AWS: which job, its code, what it is asked and what it
answers.
"""
