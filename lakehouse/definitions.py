"""The sample project, which Dagster loads outside of other projects.

Tables are added as files in `lakehouse/assets/`; this file does not change.
"""

from lakehouse.project import Project

PROJECT = Project("lakehouse.assets")
MODULES = PROJECT.modules
TABLES = PROJECT.tables
FEEDS = PROJECT.feeds
definitions = PROJECT.definitions
defs = PROJECT.defs
