"""Typed, validated and deduplicated rows."""
