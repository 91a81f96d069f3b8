"""What is recorded beside changes."""

from __future__ import annotations

from typing import Literal

from policies.evidence import Record
from policies.model import Model


class EvidenceRecorded(Model):
    """A record was stored. Subject: the record's id."""

    kind: Literal["evidence_recorded"] = "evidence_recorded"
    record: Record
