"""News of questions that ended: a call that waits is answered when its answer is there."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from curators import curator

from discreet.server.api import news
from discreet.server.api.news import News

MEAN = {"estimator": "mean", "column": "income", "spend": {"mu": 0.1}}


class Behind:
    """Workers of another process, by the path of their socket."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)


def test_a_line_wakes_who_waits_and_is_kept_for_who_comes_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(news, "HEARD", (3600.0, 3600.0))  # nothing but a line ends a wait

    async def tried() -> None:
        told: list[asyncio.StreamWriter] = []
        asked: list[bytes] = []

        async def keeper(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            asked.append(await reader.readline())
            told.append(writer)

        listening = await asyncio.start_unix_server(keeper, tmp_path / "work.sock")
        heard = News(Behind(tmp_path / "work.sock"))
        await heard.ended("an_first", 0, 0.01)  # begins to listen
        while not (told and heard.is_heard):
            await asyncio.sleep(0.001)
        assert asked == [b'{"do": "news"}\n']
        waiting = [asyncio.create_task(heard.ended("an_one", 0, 3600.0)) for _ in range(2)]
        await asyncio.sleep(0)
        told[0].write(b"an_two\nan_one\n")
        await asyncio.gather(*waiting)
        await heard.ended("an_two", 0, 3600.0)  # it ended before anybody waited
        assert not heard._waiting
        assert not heard._over
        listening.close()
        told[0].close()
        while heard.is_heard:
            await asyncio.sleep(0.001)
        await heard.ended("an_three", 0, 3600.0)  # without news it is time for a look soon
        assert heard._listening is not None
        heard._listening.cancel()

    asyncio.run(asyncio.wait_for(tried(), 60))


def test_only_so_many_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(news, "MOST_KNOWN", 3)
    heard = News(Behind(tmp_path / "nobody.sock"))
    for number in range(9):
        heard._note(f"an_{number}")
    assert [*heard._over] == ["an_6", "an_7", "an_8"]


def test_a_call_may_wait_for_its_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a worker that takes its time; without `wait` it is told that there is more to come."""
    here = curator(tmp_path)
    study = here.study(here.register()["id"])
    here.workers.paused = True
    anna, path = here.client("anna"), f"/v1/studies/{study['id']}/questions"
    first = anna.post(path, json=MEAN, headers={"Idempotency-Key": "k"})
    assert (first.status_code, first.json()["status"]) == (202, "pending")
    usual, looks = News.ended, list[int]()

    async def ended(self: News, question: str, tries: int, most: float) -> Any:
        looks.append(tries)
        if tries == 2:
            here.workers.go_on()
        return await usual(self, question, tries, most)

    monkeypatch.setattr(News, "ended", ended)
    told = anna.post(path, json=MEAN, headers={"Idempotency-Key": "k"}, params={"wait": 20})
    assert (told.status_code, told.json()["status"]) == (200, "answered")
    assert looks == [0, 1, 2]
    assert told.json()["answer"] == first.json()["answer"]
