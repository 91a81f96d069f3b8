"""Pictures of a judgement, for a thread or a file. matplotlib is loaded by the first picture, not by the import.

Each picture has its words, for people who do not see it: `effect_words` and `runs_words`.
"""

from __future__ import annotations

from bot.pictures.words import NothingToDraw, effect_words, runs_words
from policies.abtest.judgement import Judgement

__all__ = ["NothingToDraw", "effect_png", "effect_words", "runs_png", "runs_words"]


def effect_png(judgement: Judgement, about: str = "") -> bytes:
    """The change at each load with its interval and the margins, as PNG.

    about: what was compared, such as `TARGET_CTAS 512 against unset`.
    Raises: NothingToDraw without a load that both arms have.
    """
    from bot.pictures.canvas import png
    from bot.pictures.effect import effect_figure

    return png(effect_figure(judgement, about))


def runs_png(judgement: Judgement, about: str = "") -> bytes:
    """Every run of both arms in its order, a panel for each load, as PNG.

    Raises: NothingToDraw without runs.
    """
    from bot.pictures.canvas import png
    from bot.pictures.runs import runs_figure

    return png(runs_figure(judgement, about))
