"""An inbox to bronze: what a feed delivers, how a file is judged and landed, and where it goes
afterwards.
"""
