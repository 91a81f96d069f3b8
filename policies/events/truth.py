"""What is recorded about suspicions and statements, beside the changes that they are about."""

from __future__ import annotations

from typing import Literal

from policies.intents import Actor
from policies.model import Model
from policies.statement import Judgement, Statement


class SuspicionReminded(Model):
    """The owner was reminded of a review date. Subject: the suspicion's id. Units: epoch seconds."""

    kind: Literal["suspicion_reminded"] = "suspicion_reminded"
    due_at: float


class StatementMade(Model):
    """Somebody stated why something happened, and it was judged. Subject: the statement's id."""

    kind: Literal["statement_made"] = "statement_made"
    statement: Statement


class StatementJudgedAgain(Model):
    """A statement that a change did it, judged once more: `change` brought the old state back, and it was measured."""

    kind: Literal["statement_judged_again"] = "statement_judged_again"
    change: str
    judged: Judgement


class StatementDisputed(Model):
    """Somebody contested a statement, and it was judged once more. `because` None: by a click."""

    kind: Literal["statement_disputed"] = "statement_disputed"
    actor: Actor
    because: str | None
    judged: Judgement
