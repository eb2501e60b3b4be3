"""Cross-encoders of sentence-transformers: loaded, tuned, asked, and exported to ONNX.

Source:
    The system of BioASQ 13b: one epoch to select among models, three for the final one, of which
    ms-marco-MiniLM-L12 was the best; variants with as many negatives as golden documents, and with
    questions of recent years alone.
"""

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from deepera_graph.bioasq.runs import ScoredDocument, rank_scores
from deepera_graph.bioasq.settings import TuningSettings
from deepera_graph.bioasq.tuning.pairs import QuestionPool, TrainingPair, measure_map
from deepera_graph.errors import SettingsError
from deepera_graph.judges.cross_encoder.models import Pair, logits_of
from deepera_graph.judges.cross_encoder.onnx import INPUTS, OnnxModel, trace
from deepera_graph.packages import call_foreign, check_extra, import_extra
from deepera_graph.stores.embeddings import weights

ONNX = "model.onnx"
STACK = ("torch", "transformers", "sentence-transformers", "datasets", "accelerate", "onnx")
WARM_UP = 0.1  # share of the steps in which the learning rate rises
_METRIC = "map@10"
_SAME_LOGIT = 1e-3  # how far the exported model may be from the tuned one
Read = Callable[[Sequence[Pair]], list[float]]  # pairs to logits


def check_packages() -> None:
    """Raise `SettingsError` if a package of the extra ``train`` is missing; none is imported."""
    for name in STACK:
        check_extra(name.replace("-", "_"), extra="train", what="tuning a cross-encoder")


class EncoderTrainer:
    """Loads, trains and asks cross-encoders of sentence-transformers."""

    def __init__(self, settings: TuningSettings, validation: Sequence[QuestionPool]) -> None:
        self.settings, self._validation = settings, validation
        self.torch = import_extra("torch", extra="train")
        self.transformers = import_extra("transformers", extra="train")
        self.transformers.utils.logging.disable_progress_bar()
        self._datasets = import_extra("datasets", extra="train")
        self._datasets.disable_progress_bars()
        self._package = import_extra("sentence_transformers.cross_encoder", extra="train")

    def load(self, name: str) -> Any:
        """Return a model with one logit; one that has none gets a new head."""
        self.transformers.set_seed(self.settings.seed)
        place, _ = weights(name)
        return call_foreign(
            f"no weights of {name!r}",
            lambda: self._package.CrossEncoder(
                place, num_labels=1, max_length=self.settings.max_tokens
            ),
        )

    def reader_of(self, model: Any) -> Read:
        """Return what gives the logits of pairs."""
        identity, size = self.torch.nn.Identity(), 2 * self.settings.batch_size

        def read(pairs: Sequence[Pair]) -> list[float]:
            found = model.predict(
                list(pairs), batch_size=size, show_progress_bar=False, activation_fn=identity
            )
            return logits_of(found, len(pairs))

        return read

    def train(
        self,
        model: Any,
        pairs: Sequence[TrainingPair],
        n_epochs: int,
        folder: Path,
        on_step: Callable[[int], None],
    ) -> list[float]:
        """Tune a model, leave it as it was after its best epoch; return MAP@10 of each epoch."""
        losses = import_extra("sentence_transformers.cross_encoder.losses", extra="train")
        trainer = self._package.CrossEncoderTrainer(
            model=model,
            args=self._arguments(len(pairs), n_epochs, folder),
            train_dataset=self._datasets.Dataset.from_dict(
                {
                    "question": [one.question for one in pairs],
                    "passage": [one.document.passage for one in pairs],
                    "label": [float(one.label) for one in pairs],
                }
            ),
            loss=losses.BinaryCrossEntropyLoss(model),
            evaluator=self._make_evaluator(),
            callbacks=[self._make_callback(on_step)],
        )
        trainer.remove_callback(self.transformers.PrinterCallback)
        last = _last_checkpoint(folder)
        call_foreign(
            "the tuning failed", lambda: trainer.train(resume_from_checkpoint=last and str(last))
        )
        logged = (one.get(f"eval_{_METRIC}") for one in trainer.state.log_history)
        return [one for one in logged if one is not None]

    def export(self, model: Any, out: Path, pairs: Sequence[Pair]) -> None:
        """Write a model as sentence-transformers and as ONNX; compare the logits of *pairs*."""
        model.save_pretrained(str(out), create_model_card=False)
        plain = self.transformers.AutoModelForSequenceClassification.from_pretrained(
            out, attn_implementation="eager"
        )
        tokenizer = self.transformers.AutoTokenizer.from_pretrained(out)
        example = tokenizer(["a", "b"], ["a b", "b a"], return_tensors="pt", padding=True)
        given = {name: example[name] for name in INPUTS if name in example}
        network = _logits_alone(self.torch, plain.float().eval(), [*given])
        call_foreign(
            f"{out} cannot be exported",
            lambda: trace(network, given, out / ONNX, of_texts=["logits"]),
        )
        found = onnx_reader(out / ONNX)(pairs)
        for one, other in zip(self.reader_of(model)(pairs) if pairs else [], found, strict=True):
            if not abs(one - other) <= _SAME_LOGIT * max(1.0, abs(one)):
                raise SettingsError(f"{out / ONNX} gives {other}, the tuned model {one}")

    def _arguments(self, n_pairs: int, n_epochs: int, folder: Path) -> Any:
        settings, cuda = self.settings, self.torch.cuda
        n_steps = math.ceil(n_pairs / settings.batch_size) * n_epochs
        return self._package.CrossEncoderTrainingArguments(
            output_dir=str(folder),
            num_train_epochs=n_epochs,
            per_device_train_batch_size=settings.batch_size,
            learning_rate=settings.learning_rate,
            warmup_steps=math.ceil(WARM_UP * n_steps),
            seed=settings.seed,
            bf16=cuda.is_available() and cuda.is_bf16_supported(),
            eval_strategy="epoch",
            save_strategy="epoch",
            save_total_limit=2,  # the best and the last
            load_best_model_at_end=True,
            metric_for_best_model=f"eval_{_METRIC}",
            greater_is_better=True,
            logging_strategy="no",
            report_to="none",
            disable_tqdm=True,
            dataloader_pin_memory=cuda.is_available(),
        )

    def _make_evaluator(self) -> Any:
        evaluation = import_extra("sentence_transformers.base.evaluation", extra="train")
        reader_of, validation = self.reader_of, self._validation

        class Evaluator(evaluation.BaseEvaluator):  # type: ignore[name-defined,misc]
            def __call__(self, model: Any, *_: Any, **__: Any) -> dict[str, float]:
                return {_METRIC: measure_map(validation, rank_pools(reader_of(model), validation))}

        return Evaluator()

    def _make_callback(self, on_step: Callable[[int], None]) -> Any:
        class Callback(self.transformers.TrainerCallback):  # type: ignore[name-defined,misc]
            def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
                on_step(state.global_step)

        return Callback()


def _last_checkpoint(folder: Path) -> Path | None:
    """Return the last whole checkpoint of a folder; its state is written last."""
    whole = [one.parent for one in folder.glob("checkpoint-*/trainer_state.json")]
    return max(whole, key=lambda one: int(one.name.rpartition("-")[2]), default=None)


def rank_pools(read: Read, pools: Sequence[QuestionPool]) -> dict[str, list[ScoredDocument]]:
    """Return what was found for each question in the order of a cross-encoder."""
    pairs = [(pool.question, one.passage) for pool in pools for one in pool.found]
    logits = iter(read(pairs) if pairs else ())
    return {pool.id: rank_scores({one.pmid: next(logits) for one in pool.found}) for pool in pools}


def onnx_reader(path: Path) -> Read:
    """Return what gives the logits of pairs by an exported model."""
    model = OnnxModel(path)

    def read(pairs: Sequence[Pair]) -> list[float]:
        size = model.batch_size
        starts = range(0, len(pairs), size)
        return [one.value for at in starts for one in model.read(pairs[at : at + size])]

    return read


def _logits_alone(torch: Any, model: Any, inputs: Sequence[str]) -> Any:
    class Logits(torch.nn.Module):  # type: ignore[misc]  # torch is not installed here
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, *given: Any) -> Any:
            return self.model(**dict(zip(inputs, given, strict=True))).logits

    return Logits().eval()
