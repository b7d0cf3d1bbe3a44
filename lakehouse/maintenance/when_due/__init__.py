"""Due conditions of each upkeep step, one file per step; pure functions."""
