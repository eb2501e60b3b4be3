"""A folder of weights that is not what it should be; and odd texts before the shipped ones."""

import json
import math
import shutil
from hashlib import sha256

import numpy as np
import pytest

from deepera_graph import SettingsError, local_backend
from deepera_graph.judges.trained import model
from deepera_graph.judges.trained.backend import Weights, find_weights, local_model
from deepera_graph.judges.trained.model import FILES, SUMS, EvidenceModel, check
from deepera_graph.judges.trained.scorer import N_MEASURES, EvidenceScorer
from support.tiny_encoder import make_tokenizer

pytestmark = pytest.mark.full

shipped = pytest.mark.skipif(
    not (Weights().place() / SUMS).is_file(), reason="this checkout has no weights"
)
INTENT = {"topic": "", "entity_type": "", "intent": "other", "expected_answer_type": "other"}
RESULT = "Leaf rust fell to 12 % in shade. Yields did not differ."
QUESTION = "Does shade reduce leaf rust?"
ODD = {
    "one character": "a",
    "no letter": "12 %. 34 (5.6).",
    "blank": " \n",
    "nothing but NUL": "\0",
    "lone surrogate": "Shade \ud800 cut rust.\udc00 Sun did not.",
    "emoji": "😀 🎉. 👨‍👩‍👧",
    "Chinese": "遮荫减少了锈病。共有三十株。",
    "right to left": "הצל הפחית את החלודה. שלום",
    "marks alone": "\u0301\u200b\u00ad\ufeff",
    "one long word": "a" * 30_000,
}


def seal(folder):
    lines = [f"{sha256((folder / name).read_bytes()).hexdigest()}  {name}\n" for name in FILES]
    (folder / SUMS).write_text("".join(lines))


@pytest.fixture
def folder(tmp_path):
    for name in FILES:
        (tmp_path / name).write_text("{}")
    seal(tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_changed_is_found_even_if_it_was_checked_before(folder, name):
    assert check(folder) == sha256((folder / SUMS).read_bytes()).hexdigest()[:16]
    (folder / name).write_text("[]")
    with pytest.raises(SettingsError, match=rf"{name} is damaged: it does not match SHA256SUMS"):
        check(folder)


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_is_gone_is_named(folder, name):
    (folder / name).unlink()
    with pytest.raises(SettingsError, match=f"lacks {name}"):
        check(folder)


@pytest.mark.parametrize("sums", [b"", b"\xff\xfe\0" * 9, b"no checksum here\n", b"0 " + b"x" * 99])
def test_garbage_for_checksums_is_a_settings_error(folder, sums):
    (folder / SUMS).write_bytes(sums)
    with pytest.raises(SettingsError, match=r"lacks encoder\.onnx, or its checksum"):
        check(folder)
    (folder / SUMS).unlink()
    with pytest.raises(SettingsError, match="holds no SHA256SUMS"):
        check(folder)


def test_checksums_with_other_line_ends_and_files_beside_do_no_harm(folder):
    (folder / SUMS).write_bytes((folder / SUMS).read_bytes().replace(b"\n", b"\r\n"))
    (folder / "notes.txt").write_text("mine")
    check(folder)


@pytest.mark.parametrize("head", [[], None, "x", {}, {"counts": []}, {"counts": {"passages": 1}}])
def test_a_head_of_another_kind_is_a_settings_error(folder, head):
    (folder / "head.json").write_text(json.dumps(head))
    seal(folder)
    with pytest.raises(SettingsError, match=r"head\.json is no head of a judge"):
        EvidenceModel.load(folder)


@shipped
def test_a_head_that_goes_by_other_measures_is_refused(folder):
    head = json.loads((Weights().place() / "head.json").read_text())
    (folder / "head.json").write_text(json.dumps({**head, "measures": 34}))
    seal(folder)
    with pytest.raises(SettingsError, match=rf"it goes by 34 measures .*, not {N_MEASURES}$"):
        EvidenceModel.load(folder)
    del head["measures"]  # as up to version 0.9
    (folder / "head.json").write_text(json.dumps(head))
    seal(folder)
    with pytest.raises(SettingsError, match=rf"it goes by other measures .*, not {N_MEASURES}$"):
        EvidenceModel.load(folder)


@shipped
def test_damaged_weights_are_read_once_and_again_when_they_are_mended(folder, monkeypatch):
    weights = find_weights(folder, None)
    (folder / "head.json").write_text("[]")
    n_checked = []
    monkeypatch.setattr(model, "check", lambda place: n_checked.append(place) or check(place))
    told = set()
    for _ in range(3):
        with pytest.raises(SettingsError, match=r"head\.json is damaged") as caught:
            weights.model()
        told.add(str(caught.value))
    assert len(told) == len(n_checked) == 1
    for name in FILES:
        (folder / name).write_bytes((Weights().place() / name).read_bytes())
    seal(folder)
    assert weights.model().version == weights.version()


@shipped
@pytest.mark.parametrize("is_gone", [False, True])
def test_weights_of_directions_that_changed_are_found_when_the_judge_is_loaded(
    tmp_path, monkeypatch, is_gone
):
    place = tmp_path / "weights"
    shutil.copytree(Weights().place(), place)
    monkeypatch.setattr(model, "SHIPPED", place)
    assert EvidenceModel.load().version == check(place)
    file = place / model.DIRECTION
    flipped = file.read_text(encoding="utf-8").replace("-", "")
    file.unlink()
    if not is_gone:
        file.write_text(flipped, encoding="utf-8")
    for folder in (None, Weights().place()):
        with pytest.raises(SettingsError, match=r"direction\.json is damaged: it does not match"):
            EvidenceModel.load(folder)


@shipped
def test_weights_of_directions_without_a_checksum_are_refused(folder):
    (folder / model.DIRECTION).write_text("{}")
    with pytest.raises(SettingsError, match=r"holds direction\.json, but not its checksum"):
        check(folder)


@shipped
@pytest.mark.parametrize("has_tokenizer", [False, True])
def test_an_encoder_that_cannot_be_read_is_found_when_it_is_loaded(folder, has_tokenizer):
    (folder / "head.json").write_bytes((Weights().place() / "head.json").read_bytes())
    if has_tokenizer:
        make_tokenizer().save(str(folder / "tokenizer.json"))
    seal(folder)
    with pytest.raises(SettingsError, match="holds no encoder that can be used"):
        EvidenceModel.load(folder)


@pytest.mark.parametrize("weights", ["~nobody-of-this-name/weights", "/nowhere/weights", "a\0b"])
def test_weights_that_are_no_folder_are_a_settings_error(weights):
    with pytest.raises(SettingsError, match="weights must be a folder"):
        local_backend(weights=weights)


def passage(text, title=""):
    return {"text": text, "title": title, "section": ""}


@shipped
@pytest.mark.parametrize("odd", ODD.values(), ids=ODD)
def test_an_odd_passage_is_scored_and_does_not_take_the_company_of_others(odd):
    model = local_model()
    for title in ("", odd[:50]):
        windows = [passage(odd, title), passage(RESULT)]
        together = model.judge(QUESTION, INTENT, windows)
        for judgement in (together[0], model.judge(QUESTION, INTENT, windows[:1])[0]):
            assert 0 <= judgement.score <= 1
            assert judgement.quote in odd
        signs = model.read_signs(QUESTION, INTENT, windows)
        assert all(math.isfinite(one.evidence) for one in signs)
        alone = model.read_signs(QUESTION, INTENT, windows[1:])
        assert signs[1].evidence != alone[0].evidence


@shipped
@pytest.mark.parametrize("question", ["?", "\0", "😀", "why \udfff?", "rust " * 600])
def test_an_odd_question_is_answered_with_scores(question):
    signs = local_model().read_signs(question, INTENT, [passage(RESULT), passage("x")])
    assert all(math.isfinite(one.evidence) for one in signs)


@shipped
def test_a_text_has_one_vector_in_any_company():
    texts = [RESULT, "", "x", "Shade \ud800", "word " * 400]
    together = local_model().embed(texts)
    assert np.linalg.norm(together, axis=1) == pytest.approx(np.ones(5), abs=1e-5)
    for text, vector in zip(texts, together, strict=True):
        assert np.array_equal(local_model().embed([text])[0], vector)


@shipped
def test_a_title_says_nothing_about_whether_its_text_reports_results(monkeypatch):
    title = "A protocol for studying leaf rust in shaded and open coffee plots"
    seen, score = [], EvidenceScorer.score_pool

    def listen(head, question, found, **how):
        seen.append((found.results.tolist(), head.topic.predict(found.topic_features()).tolist()))
        return score(head, question, found, **how)

    monkeypatch.setattr(EvidenceScorer, "score_pool", listen)
    for name in ("", title):
        some = [passage(RESULT, name), passage("We planned to count rust.", name)]
        local_model().read_signs(QUESTION, INTENT, some)
    (results, topic), (titled_results, titled_topic) = seen
    assert results == titled_results
    assert topic != titled_topic


@shipped
def test_the_titles_of_passages_are_read_ahead_too(monkeypatch):
    judge = EvidenceModel.load(threads=1)
    passages = [passage(f"{RESULT} {number}", "One title") for number in range(4)]
    judge.read_ahead(passages)
    judge.encoder._pool.submit(int).result()  # the only thread has done what came before
    read = []
    monkeypatch.setattr(judge.encoder, "_encode_one", read.append)
    judge.encoder.encode(["One title", *(one["text"] for one in passages)])
    assert read == []
