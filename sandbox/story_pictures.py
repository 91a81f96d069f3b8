"""Pictures of the stories for the README: `python -m sandbox.story_pictures FOLDER` plays them and takes them.

Page and plan card are taken when the plan waits for an approver, the thread when everything is over; of the replicas
the plan card, and the thread when their change has been undone.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from policies.errors import OpsError
from sandbox.pictures import SCHEMES, Part, take_pictures
from sandbox.png import small
from sandbox.rolling import Rolling
from sandbox.stage import Stage
from sandbox.story import Story
from sandbox.telling import Telling, in_words

MOST_BYTES = 150_000  # what a reader of the README loads for each
SIZE = (1200, 800)
REPLICAS = "replicas-"  # names of the pictures of the other story begin so


def main(folder: Path) -> int:
    """Play and take pictures; 0 when every check of the stories held and no picture is too large."""
    taken: list[Path] = []
    held = _play(Story, lambda stage, where: taken.extend(_of_knob(stage, folder, where)))
    held &= _play(Rolling, lambda stage, where: taken.extend(_of_replicas(stage, folder, where)))
    for path in taken:
        path.write_bytes(small(path.read_bytes()))
    large = [path for path in taken if path.stat().st_size > MOST_BYTES]
    for path in taken:
        print(f"{path.stat().st_size:8} {path}{' is too large' if path in large else ''}")
    return 0 if held and not large else 1


def _play(which: type[Telling], take: Callable[[Stage, str], None]) -> bool:
    """Play one story; `take` is called where a person could interfere, and in the end. Whether all went well."""
    # a short path: the manager's socket has to fit into 107 bytes
    with tempfile.TemporaryDirectory(prefix="cb-", ignore_cleanup_errors=True) as below:
        stage = Stage(Path(below).resolve(), replicas=which is Rolling)
        try:
            stage.boot()
            stage.start()
            held = which(stage, print, lambda where: take(stage, where)).play()
            take(stage, "end")
        except OpsError as error:
            print(f"no pictures: {in_words(error)}", file=sys.stderr)
            held = False
        finally:
            left = stage.close()
    return held and not left


def _of_knob(stage: Stage, folder: Path, where: str) -> list[Path]:
    parts: dict[str, tuple[Part, ...]] = {"confirm": ("page", "card"), "end": ("thread",)}
    return _take(stage, folder, *parts[where]) if where in parts else []


def _of_replicas(stage: Stage, folder: Path, where: str) -> list[Path]:
    parts: dict[str, Part] = {"confirm": "card", "again": "thread"}
    if where not in parts:
        return []
    with tempfile.TemporaryDirectory(prefix="cb-") as aside:
        taken = _take(stage, Path(aside), parts[where])
        return [Path(shutil.copy(path, folder / f"{REPLICAS}{path.name}")) for path in taken]


def _take(stage: Stage, folder: Path, *parts: Part) -> list[Path]:
    """As ben sees it, who is to decide."""
    url = stage.slack.page_url
    return take_pictures(
        url, folder, person="ben", channel="serving", schemes=SCHEMES, parts=parts, size=SIZE, scale=1.5
    )


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
