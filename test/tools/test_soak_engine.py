import pytest

from oxygen_ros.tools import soak_engine


def test_soak_gives_all_memory_back_and_texts_equal_their_solo_runs(capsys):
    assert soak_engine.main(["--cycles", "15", "--solo", "4", "--seed", "3"]) == 0
    before, cycles, texts, after, alone = capsys.readouterr().out.splitlines()
    assert before.startswith("before: 0 of 4 prefixes, 0 of 8 rows, ")
    assert cycles.startswith("15 cycles: ")
    assert "cancelled" in texts
    assert after == f"after:  {before.removeprefix('before: ')} - equal"
    assert alone.startswith("alone:  4 texts, ")
    assert alone.endswith(" - equal")


@pytest.mark.parametrize(("broken", "words"), [("text", "DIFFER"), ("memory", "NOT EQUAL")])
def test_soak_tells_when_texts_or_memory_are_not_as_they_must_be(broken, words, capsys, monkeypatch):
    if broken == "text":
        monkeypatch.setattr(soak_engine.Told, "text", lambda told, request_id: "something else")
    else:
        uses = iter(range(100))
        real = soak_engine.Soak.memory
        monkeypatch.setattr(
            soak_engine.Soak,
            "memory",
            lambda soak: soak_engine.replace(real(soak), kv_bytes=next(uses)),
        )
    assert soak_engine.main(["--cycles", "6", "--solo", "1"]) == 1
    assert words in capsys.readouterr().out


def test_soak_names_a_checkpoint_that_cannot_be_used(tmp_path, capsys):
    assert soak_engine.main(["--checkpoint", str(tmp_path / "none")]) == 2
    assert "none" in capsys.readouterr().err
