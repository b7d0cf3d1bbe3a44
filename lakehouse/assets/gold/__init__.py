"""What people query: facts and figures, computed from silver."""
