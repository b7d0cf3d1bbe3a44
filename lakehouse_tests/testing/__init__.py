"""Tests of the fixtures that projects test their own tables with."""
