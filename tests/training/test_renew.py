"""Weights in a folder are renewed whole, or not at all."""

import shutil
from pathlib import Path

import pytest

from deepera_graph.errors import SettingsError
from deepera_graph.judges.trained.model import DIRECTION, FILES, SHIPPED, SUMS, check
from deepera_graph.lab.training import weights as export
from deepera_graph.lab.training import weights as folder
from deepera_graph.lab.training.weights import (
    HEAD,
    TRAINED_ON,
    copy_encoder,
    read_sums,
    replace_weights,
    write_sums,
)

ALL = (*FILES, TRAINED_ON)
N_RENAMES = 2 * len((*ALL, SUMS)) + 1  # set aside and moved in, and a file that is new


def write(place, text, names=ALL):
    for name in names:
        (place / name).write_text(f"{text} {name}")
    write_sums(place)


def renew(place, names=(*ALL, "NOTICE")):
    with replace_weights(place) as fresh:
        write(fresh, "newer", names)


def tree(place):
    """Return the bytes of what is in a folder, and below, by path; None of a folder."""
    paths = place.rglob("*")
    return {str(p.relative_to(place)): p.read_bytes() if p.is_file() else None for p in paths}


def test_renewed_weights_have_those_of_directions_with_a_checksum(tmp_path):
    source, target = tmp_path / "source", tmp_path / "target"
    source.mkdir()
    write(source, "older", FILES)
    with replace_weights(target) as fresh:
        copy_encoder(source, fresh)
        (fresh / HEAD).write_text("{}")
        write_sums(fresh)
    assert DIRECTION in read_sums(target)
    assert (target / DIRECTION).read_bytes() == (SHIPPED / DIRECTION).read_bytes()
    check(target)


def version(place):
    """Return what `check` says; None if it refuses."""
    try:
        return check(place)
    except SettingsError:
        return None


@pytest.fixture
def older(tmp_path):
    """A folder with weights, and a file of the user."""
    place = tmp_path / "weights"
    place.mkdir()
    write(place, "older")
    (place / "notes.txt").write_text("mine")
    return place


@pytest.fixture
def before_rename(monkeypatch):
    """Has something done before each rename, which is given its number, from 1."""
    rename = Path.replace

    def have(act):
        numbers = iter(range(1, 99))

        def replace(self, target):
            act(next(numbers))
            return rename(self, target)

        monkeypatch.setattr(Path, "replace", replace)

    return have


def test_a_kill_between_renames_leaves_weights_that_are_refused_and_can_be_moved_back(
    older, before_rename, tmp_path
):
    first, versions = check(older), []

    def kill(number):
        versions.append(version(older))
        left = shutil.copytree(older, tmp_path / str(number))
        for aside in left.glob(".older-*/*"):
            aside.rename(left / aside.name)
        assert check(left) == first

    before_rename(kill)
    renew(older)
    assert versions == [first] + [None] * (N_RENAMES - 1)
    assert version(older) not in {first, None}
    assert set(tree(older)) == {*ALL, SUMS, "NOTICE", "notes.txt"}


@pytest.mark.parametrize(
    ("names", "n_renames"), [((*ALL, "NOTICE"), N_RENAMES), ((*FILES[:2], "NOTICE"), N_RENAMES - 2)]
)
def test_what_is_interrupted_at_any_moment_changes_nothing(older, before_rename, names, n_renames):
    before = tree(older)
    for last in range(1, n_renames + 1):

        def interrupt(number, last=last):
            if number == last:
                raise KeyboardInterrupt

        before_rename(interrupt)
        with pytest.raises(KeyboardInterrupt):
            renew(older, names)
        assert tree(older) == before, last


def test_a_folder_that_was_not_there_appears_whole_or_not_at_all(tmp_path, before_rename):
    out, there = tmp_path / "new" / "weights", []

    def fail_at_first(number):
        there.append((tmp_path / "new").exists())
        if number == 1:
            raise KeyboardInterrupt

    before_rename(fail_at_first)
    with pytest.raises(KeyboardInterrupt):
        renew(out)
    assert tree(tmp_path) == {}
    renew(out)
    assert there == [False, False]
    assert set(tree(out)) == {*ALL, SUMS, "NOTICE"}
    (tmp_path / "made").mkdir()
    assert out.stat().st_mode == (tmp_path / "made").stat().st_mode


def test_an_older_head_is_not_vouched_for_with_another_encoder(older):
    renew(older, FILES[:2])
    assert set(tree(older)) == {*FILES[:2], SUMS, "notes.txt"}


@pytest.mark.parametrize("out", ["weights", "new/weights"])
@pytest.mark.parametrize("option", ["--weights", "--base"])
def test_an_interrupted_export_leaves_nothing(
    deepera_lab, older, tmp_path, monkeypatch, out, option
):
    def interrupt(*args):
        raise KeyboardInterrupt

    source = tmp_path / "source"
    source.mkdir()
    write(source, "source", (*ALL, "config.json"))
    before = tree(tmp_path)
    monkeypatch.setattr(export, "_trace", interrupt)
    monkeypatch.setattr(folder.shutil, "copyfile", interrupt)
    result = deepera_lab("judge", "export", option, source, "-o", tmp_path / out, "--overwrite")
    assert result.exit_code == 130
    assert tree(tmp_path) == before
