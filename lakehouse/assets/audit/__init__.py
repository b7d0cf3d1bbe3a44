"""What has to be provable later: appended, each row chained to the one before."""
