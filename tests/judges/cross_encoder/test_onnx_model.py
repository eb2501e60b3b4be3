"""A cross-encoder in an ONNX file gives what its numbers say, and bad files are named."""

import onnxruntime
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from deepera_graph import SettingsError
from deepera_graph.judges.cross_encoder.onnx import OnnxModel
from support.tiny_encoder import TEXTS, make_tokenizer, write_model

PAIRS = [(TEXTS[2], text) for text in TEXTS]
WORDS = st.lists(st.sampled_from(" ".join(TEXTS).split()), min_size=1, max_size=30)
CLOSE = {"abs": 1e-4}


def values(model, pairs=PAIRS):
    return [reading.value for reading in model.read(pairs)]


def test_logits_are_those_of_the_same_sums_in_numpy(folder, twin):
    found = values(OnnxModel(folder / "model.onnx"))
    assert found == pytest.approx([twin.logit(pair) for pair in PAIRS], **CLOSE)


def test_logits_are_those_of_a_plain_call_of_onnxruntime(folder, twin):
    session = onnxruntime.InferenceSession(folder / "model.onnx")
    for pair in PAIRS:
        tokens = twin.tokenizer.encode(*pair)
        plain = session.run(None, {
            "input_ids": [tokens.ids],
            "attention_mask": [tokens.attention_mask],
            "token_type_ids": [tokens.type_ids],
        })[0]  # fmt: skip
        assert values(OnnxModel(folder / "model.onnx"), [pair]) == [float(plain[0][0])]


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"with_types": False}, id="no-token-types"),
        pytest.param({"whole": "INT32"}, id="int32"),
        pytest.param({"flat": True}, id="one-axis"),
        pytest.param({"n_outputs": 2}, id="two-classes"),
    ],
)
def test_models_of_other_forms_are_read_alike(folder, changes):
    twin = write_model(folder, **changes)
    expected = [twin.logit(pair, with_types=changes.get("with_types", True)) for pair in PAIRS]
    assert values(OnnxModel(folder / "model.onnx")) == pytest.approx(expected, **CLOSE)


@pytest.mark.full
@settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(st.tuples(WORDS, WORDS), min_size=1, max_size=6))
def test_a_pair_scores_the_same_in_any_company(folder, twin, drawn):
    model = OnnxModel(folder / "model.onnx", max_tokens=48)
    pairs = [(" ".join(question[:12]), " ".join(text)) for question, text in drawn]
    assert values(model, pairs) == pytest.approx([values(model, [p])[0] for p in pairs], **CLOSE)
    assert values(model, pairs) == pytest.approx([twin.logit(p, 48) for p in pairs], **CLOSE)


def test_of_a_long_pair_the_end_of_the_passage_is_cut_and_that_is_told(folder, twin):
    model = OnnxModel(folder / "model.onnx", max_tokens=40)
    long = (TEXTS[2], TEXTS[0] * 3)
    n_tokens = len(twin.tokenizer.encode(*long).ids)
    [reading] = model.read([long])
    assert reading.value == pytest.approx(twin.logit(long, 40), **CLOSE)
    assert reading.note == f"the last {n_tokens - 40} tokens of the passage were not read"
    [short] = OnnxModel(folder / "model.onnx").read([long])
    assert short.note == ""


@pytest.mark.parametrize("max_tokens", range(5, 40))
def test_long_questions_are_cut_as_tokenizers_cut_them(folder, twin, max_tokens):
    model = OnnxModel(folder / "model.onnx", max_tokens=max_tokens)
    pairs = [(TEXTS[2], TEXTS[0]), (TEXTS[2] * 3, TEXTS[0]), (TEXTS[1], TEXTS[1])]
    expected = [twin.logit(pair, max_tokens) for pair in pairs]
    assert values(model, pairs) == pytest.approx(expected, **CLOSE)


def test_what_is_cut_of_a_question_is_told(folder, twin):
    [reading] = OnnxModel(folder / "model.onnx", max_tokens=13).read([(TEXTS[2], TEXTS[0])])
    n_asked, n_told = (len(twin.tokenizer.encode(one).ids) - 2 for one in (TEXTS[2], TEXTS[0]))
    assert reading.note == (
        f"the last {n_told - 5} tokens of the passage and the last {n_asked - 5} tokens of the "
        "question were not read"
    )


def test_what_the_tokenizer_cuts_and_pads_by_itself_is_put_aside(folder):
    tokenizer = make_tokenizer(
        truncation={"max_length": 30, "strategy": "only_first"},
        padding={"length": 64, "pad_id": 1, "pad_token": "[UNK]"},
    )
    twin = write_model(folder, tokenizer=tokenizer)
    model = OnnxModel(folder / "model.onnx")
    assert model.max_tokens == 30
    assert values(model) == pytest.approx([twin.logit(pair, 30) for pair in PAIRS], **CLOSE)
    assert OnnxModel(folder / "model.onnx", max_tokens=64).max_tokens == 64


def test_what_a_model_can_take_is_read_beside_it(folder, twin):
    (folder / "config.json").write_text('{"max_position_embeddings": 40}')
    (folder / "tokenizer_config.json").write_text('{"model_max_length": 1e30}')
    assert OnnxModel(folder / "model.onnx").max_tokens == 40
    with pytest.raises(SettingsError, match="max_tokens must be at most 40 for this model, got 41"):
        OnnxModel(folder / "model.onnx", max_tokens=41)


def test_a_model_that_mixes_its_batch_is_asked_for_one_pair_at_a_time(folder):
    write_model(folder, mixing=True)
    model = OnnxModel(folder / "model.onnx")
    assert (model.mixes, model.batch_size) == (True, 1)


def test_a_model_that_does_not_is_not(folder, twin):
    model = OnnxModel(folder / "model.onnx")
    assert model.mixes is False
    assert model.batch_size > 1


def test_the_version_changes_with_weights_and_with_the_tokenizer(folder, twin):
    versions = {OnnxModel(folder / "model.onnx").version}
    (folder / "model.onnx_data").write_bytes(b"more weights")
    versions.add(OnnxModel(folder / "model.onnx").version)
    make_tokenizer(padding={"length": 8}).save(str(folder / "tokenizer.json"))
    versions.add(OnnxModel(folder / "model.onnx").version)
    assert len(versions) == 3


def test_a_model_in_the_folder_of_exports_is_named_by_the_folder_above(folder, twin):
    (folder / "onnx").mkdir()
    (folder / "model.onnx").rename(folder / "onnx" / "model.onnx")
    assert OnnxModel(folder / "onnx" / "model.onnx").name == "tiny"


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"rename": {"input_ids": "tokens"}}, r"must take input_ids.*takes \[.*'tokens'\]"),
        ({"rename": {"token_type_ids": "places"}}, r"must take input_ids.*'places'"),
        ({"whole": "INT16"}, r"whole numbers, \w+ is tensor\(int16\)|cannot|no model"),
        ({"shape": (1, 128)}, r"shape \[1, 128\]; export it with dynamic axes"),
        ({"n_outputs": 3}, r"one logit a pair, or two; logits has the shape \['pairs', 3\]"),
    ],
)
def test_a_model_of_another_kind_is_refused(folder, changes, named):
    write_model(folder, **changes)
    with pytest.raises(SettingsError, match=named):
        OnnxModel(folder / "model.onnx")


def test_a_tokenizer_of_another_model_is_found_out_when_it_is_loaded(folder, twin):
    tokenizer = make_tokenizer()
    tokenizer.add_special_tokens([f"[X{n}]" for n in range(50)])
    tokenizer.add_tokens(["Ice", "floats"])
    tokenizer.save(str(folder / "tokenizer.json"))
    with pytest.raises(SettingsError, match=r"does not run: .*out of"):
        OnnxModel(folder / "model.onnx")


def test_damaged_files_are_named(folder, twin):
    (folder / "tokenizer.json").write_text("{}")
    with pytest.raises(SettingsError, match=r"tokenizer\.json is no tokenizer"):
        OnnxModel(folder / "model.onnx")
    (folder / "tokenizer.json").unlink()
    with pytest.raises(
        SettingsError, match=r"model\.onnx needs a tokenizer\.json in the same folder"
    ):
        OnnxModel(folder / "model.onnx")
    twin.tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "config.json").write_text("{")
    with pytest.raises(SettingsError, match=r"config\.json is not JSON"):
        OnnxModel(folder / "model.onnx")
    (folder / "config.json").unlink()
    for bad in (b"", b"not a model", (folder / "model.onnx").read_bytes()[:200]):
        (folder / "model.onnx").write_bytes(bad)
        with pytest.raises(SettingsError, match=r"is no model that onnxruntime can run|does not"):
            OnnxModel(folder / "model.onnx")
