"""Hosts: reached or not, refused or not, and what is not known about them."""

from __future__ import annotations

SENTENCES: dict[str, str] = {}
