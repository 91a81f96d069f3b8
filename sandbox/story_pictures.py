"""Pictures of the story for the README: `python -m sandbox.story_pictures FOLDER` plays it and takes them.

Page and plan card are taken when the plan waits for an approver, the thread when everything is over.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from policies.errors import OpsError
from sandbox.pictures import Part, take_pictures
from sandbox.png import small
from sandbox.stage import Stage
from sandbox.story import Story
from sandbox.telling import in_words

MOST_BYTES = 150_000  # what a reader of the README loads for each
SIZE = (1200, 800)


def main(folder: Path) -> int:
    """Play and take pictures; 0 when every check of the story held and no picture is too large."""
    taken: list[Path] = []
    # a short path: the manager's socket has to fit into 107 bytes
    with tempfile.TemporaryDirectory(prefix="cb-", ignore_cleanup_errors=True) as below:
        stage = Stage(Path(below).resolve())

        def waits(where: str) -> None:
            if where == "confirm":
                taken.extend(_take(stage, folder, "page", "card"))

        try:
            stage.boot()
            stage.start()
            held = Story(stage, print, waits).play()
            taken += _take(stage, folder, "thread")
        except OpsError as error:
            print(f"no pictures: {in_words(error)}", file=sys.stderr)
            return 1
        finally:
            left = stage.close()
    for path in taken:
        path.write_bytes(small(path.read_bytes()))
    large = [path for path in taken if path.stat().st_size > MOST_BYTES]
    for path in taken:
        print(f"{path.stat().st_size:8} {path}{' is too large' if path in large else ''}")
    return 0 if held and not large and not left else 1


def _take(stage: Stage, folder: Path, *parts: Part) -> list[Path]:
    """As ben sees it, who is to decide."""
    url = stage.slack.page_url
    return take_pictures(url, folder, person="ben", channel="serving", parts=parts, size=SIZE, scale=1.5)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
