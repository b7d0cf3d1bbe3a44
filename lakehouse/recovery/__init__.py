"""Copying a lakehouse to another deployment."""
