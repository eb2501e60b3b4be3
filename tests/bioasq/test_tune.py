"""Tuning a cross-encoder: a tiny one, from questions to what the judge takes."""

import json

import pytest

from support.minerals import CORPUS, write_corpus, write_golden

pytestmark = pytest.mark.slow
torch = pytest.importorskip("torch")
for _name in ("transformers", "sentence_transformers", "datasets", "accelerate", "onnx"):
    pytest.importorskip(_name)


@pytest.fixture
def given(tmp_path):
    """Arguments of a tuning of seconds; the last is where the model goes."""
    from support.tiny_bert import write_bert

    texts = [f"{one['title']} {one['text']}" for one in CORPUS]
    model = write_bert(tmp_path / "tiny", [*texts, "which colour does the of have"])
    golden, corpus = write_golden(tmp_path / "golden.json"), write_corpus(tmp_path / "corpus.jsonl")
    return (
        *("bioasq", "tune", golden, "--corpus", corpus, "--model", model, "--candidates", 6),
        *("--shares", "60,20,20", "--batch-size", 8, "--learning-rate", "0.01"),
        *("--max-tokens", 12, "-o", tmp_path / "tuned"),
    )


def read(folder):
    return json.loads((folder / "tuning.json").read_text(encoding="utf-8"))


def test_a_tuned_model_ranks_better_and_the_judge_takes_it(deepera_lab, given):
    from deepera_graph.judges.cross_encoder import encoder_backend

    out = given[-1]
    result = deepera_lab(*given, "--epochs", 4, "--int8", "--json", "-q")
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    for part in ("validation", "test"):
        assert set(told["map"][part]) == {"index", "before", "after", "int8"}
    assert max(told["epochs"]) == told["epochs"][told["best_epoch"] - 1]
    assert told["map"]["validation"]["after"] == pytest.approx(max(told["epochs"]))
    assert read(out)["map"] == told["map"]
    assert read(out)["source"]["candidates"] == 6
    assert not (out / "checkpoints").exists()
    backend = encoder_backend(str(out))
    assert backend.about["model"] == "tuned"
    assert told["map"]["test"]["after"] > told["map"]["test"]["before"]
    assert encoder_backend(str(out / "model_int8.onnx")).judge
    run = (out / "runs" / "test.after.jsonl").read_text(encoding="utf-8").splitlines()
    assert len(run) == told["questions"]["test"]


def test_the_best_of_several_is_tuned_further_and_all_are_told(deepera_lab, given):
    result = deepera_lab(*given, "--ratio", "1:1,all", "--epochs", 2, "--json", "-q")
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    found = {one["ratio"]: one["map"] for one in told["selection"]}
    assert set(found) == {1.0, None}
    assert found[told["chosen"]["ratio"]] == max(found.values())
    assert len(told["epochs"]) == 2


def test_a_tuning_that_was_cut_short_goes_on_to_the_same_figures(deepera_lab, given, tmp_path):
    from deepera_graph.bioasq.tuning import tune

    whole = deepera_lab(*given[:-1], tmp_path / "whole", "--epochs", 3, "--json", "-q")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tune._Progress, "of", _interrupting(tune._Progress.of, at=9))
        cut = deepera_lab(*given, "--epochs", 3, "-q")
    assert (cut.exit_code, "--resume" in cut.stderr) == (130, True)
    gone_on = deepera_lab(*given, "--epochs", 3, "--resume", "--json", "-q")
    assert gone_on.exit_code == 0, gone_on.output
    done = deepera_lab(*given, "--epochs", 3, "--resume", "-q")
    assert (done.exit_code, "there is nothing to resume" in done.stderr) == (2, True)
    one, other = json.loads(whole.stdout), json.loads(gone_on.stdout)
    assert one["epochs"] == pytest.approx(other["epochs"])
    assert one["map"]["test"] == pytest.approx(other["map"]["test"])


def test_what_is_resumed_must_be_the_same_tuning(deepera_lab, given):
    from deepera_graph.bioasq.tuning import tune

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tune._Progress, "of", _interrupting(tune._Progress.of, at=1))
        deepera_lab(*given, "--epochs", 2, "-q")
    result = deepera_lab(*given, "--epochs", 3, "--resume", "-q")
    assert result.exit_code == 2
    assert "settings.epochs was 2 and is 3" in result.stderr


def _interrupting(of, *, at):
    """Return a method that ends the training after a step, as Ctrl-C does."""

    def made(self, variant):
        note = of(self, variant)

        def count(n):
            note(n)
            if n == at:
                raise KeyboardInterrupt

        return count

    return made
