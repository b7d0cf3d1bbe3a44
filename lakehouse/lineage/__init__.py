"""What is told to lineage tools of each write, by OpenLineage's specification."""
