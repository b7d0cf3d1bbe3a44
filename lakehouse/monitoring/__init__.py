"""What people are told: what broke, once, with the way out, and when it is over; and that
somebody still looks.
"""
