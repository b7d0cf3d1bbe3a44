"""Tests of what the machinery runs on."""
