"""What is recorded about suspicions, beside the change that left them."""

from __future__ import annotations

from typing import Literal

from policies.model import Model


class SuspicionReminded(Model):
    """The owner was reminded of a review date. Subject: the suspicion's id. Units: epoch seconds."""

    kind: Literal["suspicion_reminded"] = "suspicion_reminded"
    due_at: float
