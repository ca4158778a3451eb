"""What dies, stops or breaks under load costs nobody a grade: a few kills and every scene of `make torture`."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from torture import Victim, torture
from torture_scenes import SCENES, NotHere, Stage, stage

KILLS, SEED, CLIENTS = 15, 7, 4


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with stage(tmp_path_factory.mktemp("scenes")) as made:
        yield made


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.__name__.replace("_", "-"))
def test_no_grade_is_lost_doubled_or_charged_by(scene: Callable[[Stage], None], one: Stage) -> None:
    try:
        scene(one)
    except NotHere as why:
        pytest.skip(str(why))
    assert one.wrongs() == []


def test_no_grade_is_lost_doubled_or_charged_under_kills(tmp_path: Path) -> None:
    ordeal = torture(tmp_path, KILLS, SEED, CLIENTS)
    assert ordeal.wrongs == []
    assert ordeal.ledger.killed().total() == KILLS
    assert ordeal.ledger.killed()[Victim.RUNNER] + ordeal.ledger.killed()[Victim.SANDBOX] > 0
    assert len(ordeal.ledger.answers) >= CLIENTS
