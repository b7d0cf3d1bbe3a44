"""The sample project, which exists outside of a project of one's own: what Dagster loads there.

A table is added by a file in `lakehouse/assets/`, and needs no line here.
"""

from lakehouse.project import Project

PROJECT = Project("lakehouse.assets")
MODULES = PROJECT.modules
TABLES = PROJECT.tables
FEEDS = PROJECT.feeds
definitions = PROJECT.definitions
defs = PROJECT.defs
