"""`deepera-lab bioasq answer` and `check`: answers, and what is wrong with a submission."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from deepera_graph.bioasq.settings import TypedSettings
from deepera_graph.cli.opening.judges import check_server, limits_of, open_chat
from deepera_graph.cli.opening.stores import going_on
from deepera_graph.cli.shared import options
from deepera_graph.cli.shared.bars import progress_bar
from deepera_graph.cli.shared.console import (
    MOST_TOLD,
    OK,
    SOME_FAILED,
    check_file,
    check_input,
    from_thread,
    go_on_command,
    say,
    say_some,
    tell,
    tell_done,
)
from deepera_graph.cli.shared.declaring import arg, opt, opt_of
from deepera_graph.errors import BackendError, InputError, SettingsError
from deepera_graph.lab.cli.running import check_resume
from deepera_graph.text.plain import count

if TYPE_CHECKING:
    from deepera_graph.bioasq.check import SubmissionProblem
    from deepera_graph.bioasq.phase_b.answer import TypedAnswer, TypedAnswerer
    from deepera_graph.bioasq.questions import BioasqQuestion

_SHOWN = 5  # problems of one name
_prompt = partial(opt, panel="How a chat model is asked")
_NO_MODEL = ("preset", "style", "shots", "examples", "no_fallback")


@dataclass(frozen=True, kw_only=True)
class AnswerFileOptions:
    """Where the submission goes."""

    out: Path = opt("The submission.", "--out", "-o", metavar="FILE", needed=True)
    overwrite: bool = opt("Replace the submission and its log.", default=False)
    resume: bool = opt(
        "Go on where an earlier run stopped: ask again only what has no answer of the model.",
        default=False,
    )


@dataclass(frozen=True, kw_only=True)
class AnswerOptions:
    """How questions are answered."""

    preset: Literal["paper"] | None = _prompt(
        "[b]paper[/b]: ask as the system of BioASQ 13b did, in style 3 unless --style says "
        "otherwise: background knowledge may supplement the snippets, and examples are turns of "
        "the conversation.",
        metavar="NAME",
    )
    style: int | None = _prompt(
        "[b]1[/b]: exact and ideal answer apart. [b]2[/b]: the ideal answer is told the exact one. "
        "[b]3[/b]: as 2, in the snippets' own words.",
        metavar="1..3",
        shown="2, with --preset paper 3",
    )
    examples: Path | None = _prompt(
        "Answered questions, a training set of BioASQ; none may be one of those asked.",
        metavar="FILE",
    )
    shots: int | None = _prompt(
        "Examples in a prompt, of the question's type.",
        metavar="N",
        least=0,
        shown="1 with --examples, else 0",
    )
    no_fallback: bool = _prompt(
        "Leave out what the model failed to answer, instead of putting an answer together from the "
        "snippets by rules.",
        default=False,
    )
    max_snippets: int | None = opt_of(TypedSettings, "max_snippets", ranged=True, config=None)


@dataclass(frozen=True, kw_only=True)
class SubmissionOptions:
    """What a submission is held against."""

    questions: Path | None = opt(
        "The test set that is answered, or golden questions: their ids and types hold.",
        metavar="FILE",
    )
    phase: Literal["a", "b"] | None = opt(
        "What must be there: [b]a[/b] documents and snippets, [b]b[/b] answers.",
        metavar="a|b",
        shown="what FILE has",
    )
    strict: bool = opt("End with code 1 for warnings, too.", default=False)


def answer(
    source: Annotated[Path, arg("QUESTIONS", "Questions with snippets, BioASQ's JSON.")],
    *,
    files: AnswerFileOptions,
    how: AnswerOptions,
    chat: options.ModelOptions,
    output: options.OutputOptions,
) -> None:
    """Answer the questions of a file from their snippets."""
    log = files.out.with_name(f"{files.out.name}.answers.jsonl")
    _check(source, files, how, chat, log)
    from deepera_graph.bioasq.questions import read_questions, write_questions

    try:
        questions = read_questions(source)
    except InputError as error:
        raise SettingsError(str(error)) from error
    if not questions:
        raise SettingsError(f"{str(source)!r} has no question")
    with _open_answerer(questions, how, chat) as answerer:
        answers = _answer_all(answerer, questions, log, files=files, quiet=output.quiet)
    _refuse_unreachable(answers)
    from deepera_graph.bioasq.phase_b.answer import submission_of

    write_questions(files.out, submission_of(answers))
    _tell_problems(answers)
    if chat.model is not None and any(_may_be_asked_again(one) for one in answers):
        say(f"ask for the rest again with: {go_on_command('--resume', without=['--overwrite'])}")
    plain = _summary(answers, files.out, log)
    tell_done(output, plain, lambda: _in_words(plain, source))
    raise typer.Exit(OK if all(one.is_settled for one in answers) else SOME_FAILED)


def _check(
    source: Path, files: AnswerFileOptions, how: AnswerOptions, chat: options.ChatOptions, log: Path
) -> None:
    """Raise `SettingsError` for what cannot work, before anything is loaded."""
    check_input(source)
    check_resume(resume=files.resume, overwrite=files.overwrite)
    if files.out.absolute() == source.absolute():
        raise SettingsError(f"{str(files.out)!r} is the input; write somewhere else")
    for path in (files.out, log):
        check_file(path, overwrite=files.overwrite, resume=files.resume)
    named = [name for name in _NO_MODEL if getattr(how, name)]
    if named and chat.model is None:
        raise SettingsError(f"--{named[0].replace('_', '-')} goes with --model")
    if how.style is not None and how.style not in (1, 2, 3):
        raise SettingsError(f"--style must be 1, 2 or 3, got {how.style}")
    if how.shots and how.examples is None:
        raise SettingsError("--shots needs --examples, the file that they are taken from")
    check_input(how.examples)
    if chat.model is not None:
        check_server(chat)


@contextmanager
def _open_answerer(
    questions: Sequence[BioasqQuestion], how: AnswerOptions, chat: options.ModelOptions
) -> Iterator[TypedAnswerer]:
    from deepera_graph.bioasq.phase_b.answer import TypedAnswerer

    settings = {"fallback": not how.no_fallback, **limits_of(chat)}
    if how.max_snippets is not None:
        settings["max_snippets"] = how.max_snippets
    if chat.model is None:
        yield TypedAnswerer(**settings)
        return
    from deepera_graph.bioasq.phase_b.roles import typed_backend
    from deepera_graph.bioasq.questions import choose_examples, read_questions

    shots = 1 if how.shots is None else how.shots
    examples = {}
    if how.examples is not None and shots:
        try:
            examples = choose_examples(read_questions(how.examples), questions, shots=shots)
        except InputError as error:
            raise SettingsError(f"--examples {str(how.examples)!r}: {error}") from error
    style = how.style or (3 if how.preset == "paper" else 2)
    with open_chat(chat) as (backend, kept):
        roles = typed_backend(backend, style=style, preset=how.preset, examples=examples)
        yield TypedAnswerer(roles, cache=kept, **settings)


def _answer_all(
    answerer: TypedAnswerer,
    questions: Sequence[BioasqQuestion],
    log: Path,
    *,
    files: AnswerFileOptions,
    quiet: bool,
) -> list[TypedAnswer]:
    """Answer what is not answered yet, under a bar; each answer is in the log as it is there."""
    from deepera_graph.bioasq.phase_b.answer import AnswerJournal

    with AnswerJournal(log, answerer.manifest()).open(resume=files.resume) as kept:
        done = kept.find_done(questions)
        left = [one for one in questions if one.id not in done]
        if files.resume and done:
            say(f"{count(len(done), 'question')} of {len(questions)} answered before")
        with (
            going_on(lambda: f"{count(len(done), 'answer')} kept in {str(log)!r}", "--resume"),
            progress_bar("answering", total=len(left), hidden=quiet) as bar,
        ):
            for n_done, one in enumerate(from_thread(answerer.stream(left)), start=1):
                kept.add(one)
                done[one.question.id] = one
                bar.reach(n_done)
    return [done[one.id] for one in questions]


def _refuse_unreachable(answers: Sequence[TypedAnswer]) -> None:
    """Raise `BackendError` if the model gave nothing at all, so that no empty file is written."""
    asked = [one for one in answers if one.ideal_status != "no_snippets"]
    if asked and all(one.outcome == "failed" for one in asked):
        raise BackendError(asked[0].problems[-1])


def _may_be_asked_again(one: TypedAnswer) -> bool:
    """Whether the model failed, or was not asked, where it has snippets to answer from."""
    return not one.is_settled and one.ideal_status != "no_snippets"


def _tell_problems(answers: Sequence[TypedAnswer]) -> None:
    """Say on stderr what a reader of the submission should know, the first ones by name."""
    found = [f"{one.question.id}: {each}" for one in answers for each in one.problems]
    say_some(found, "and {} more, in the log")
    missing = [one.question.id for one in answers if not one.is_complete]
    if missing:
        named = ", ".join(missing[:MOST_TOLD]) + (", ..." if len(missing) > MOST_TOLD else "")
        say(f"left out of the submission for want of an answer: {named}")


def _summary(answers: Sequence[TypedAnswer], out: Path, log: Path) -> dict[str, Any]:
    from deepera_graph.usage import Usage

    used = sum((one.total_usage for one in answers), Usage())
    return {
        "questions": len(answers),
        "outcomes": dict(sorted(Counter(one.outcome for one in answers).items())),
        "left_out": [one.question.id for one in answers if not one.is_complete],
        "out": str(out),
        "log": str(log),
        "usage": used.record(),
        "manifest": dict(answers[0].manifest),
    }


def _in_words(plain: dict[str, Any], source: Path) -> str:
    words = {
        "answered": "answered by the model",
        "extracted": "put together from the snippets by rules",
        "partly_extracted": "partly put together by rules",
        "failed": "without an answer",
    }
    told = "; ".join(f"{n} {words[name]}" for name, n in plain["outcomes"].items())
    used = plain["usage"]
    calls = used["calls"] - used["cached_calls"] + used["failed_calls"]
    cost = "" if not used["calls"] else f"\n{count(calls, 'call')}"
    return (
        f"{count(plain['questions'], 'question')}: {told}\n"
        f"submission {plain['out']}, log {plain['log']}{cost}\n"
        f"next: deepera-lab bioasq check {plain['out']} --questions {source}"
    )


def check(
    file: Annotated[Path, arg("FILE", "The submission.")],
    *,
    chosen: SubmissionOptions,
    output: options.OutputOptions,
) -> None:
    """Say what is wrong with a submission."""
    check_input(file, chosen.questions)
    from deepera_graph.bioasq.check import check_submission
    from deepera_graph.bioasq.questions import read_questions, read_raw

    if not read_raw(file):
        raise SettingsError(f"{str(file)!r} has no question")
    asked = None if chosen.questions is None else read_questions(chosen.questions)
    problems = check_submission(file, asked, phase=chosen.phase)
    n_errors = sum(one.level == "error" for one in problems)
    n_warnings = len(problems) - n_errors
    tell(
        output,
        {
            "file": str(file),
            "errors": n_errors,
            "warnings": n_warnings,
            "problems": [one._asdict() for one in problems],
        },
        lambda: (
            f"{_list_problems(problems)}{file}: {count(n_errors, 'error')}, "
            f"{count(n_warnings, 'warning')}"
        ),
    )
    if n_errors or (chosen.strict and n_warnings):
        raise typer.Exit(SOME_FAILED)


def _list_problems(problems: Sequence[SubmissionProblem]) -> str:
    """Return the problems by name, errors first, the first few of each."""
    lines = []
    ordered = sorted(problems, key=lambda one: (one.level, one.name))
    for (level, name), group in groupby(ordered, key=lambda one: (one.level, one.name)):
        same = [*group]
        lines.append(f"{level}: {name}")
        lines += [f"  {one.question}: {one.field}: {one.message}" for one in same[:_SHOWN]]
        if len(same) > _SHOWN:
            lines.append(f"  and {len(same) - _SHOWN} more, see --json")
    return "".join(f"{line}\n" for line in lines)
