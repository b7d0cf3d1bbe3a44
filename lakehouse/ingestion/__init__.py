"""An inbox to bronze: what a feed delivers, how a file is checked and landed, and where it goes
afterwards.
"""
