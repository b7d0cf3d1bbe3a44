"""Tables that have people in their sums, at any distance, before and after one is erased."""
