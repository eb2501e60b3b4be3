"""`deepera-lab bioasq search` and `ensemble`: files in, files out, nothing lost."""

import json
from contextlib import contextmanager

import pytest

from cli.conftest import deepera, own_cache  # noqa: F401 - fixtures
from deepera_graph.bioasq.questions import BioasqQuestion, read_questions, write_questions
from deepera_graph.bioasq.runs import ScoredDocument, read_run, write_run
from support.moths import ABSTRACTS, QUESTION, play
from support.openai_server import ChatServer, Reply

ASKED = [
    BioasqQuestion(id="q1", type="yesno", body=QUESTION, exact_answer="yes"),
    BioasqQuestion(
        id="q2",
        type="summary",
        body="What is known of wax moth venom in the blood of rats under pressure?",
    ),
    BioasqQuestion(
        id="q3",
        type="list",
        body="Which peptides are in moth venom, and do rats at low pressure mind?",
    ),
]


@pytest.fixture
def files(tmp_path, deepera):  # noqa: F811
    """A collection of abstracts, and a file of questions."""
    source = tmp_path / "corpus.jsonl"
    lines = [
        {"id": name, "title": title, "text": text} for name, (title, text, _) in ABSTRACTS.items()
    ]
    source.write_text("".join(json.dumps(one) + "\n" for one in lines))
    done = deepera("index", source, "-l", "moths", "--path", tmp_path / "store", "-q")
    assert done.exit_code == 0, done.output
    write_questions(tmp_path / "questions.json", ASKED)
    return tmp_path


@pytest.fixture
def search(deepera_lab, files):
    """Runs the search over both, with no judge, which loads fastest."""

    def run(*more, backend="none"):
        place = ("-l", "moths", "--path", files / "store", "--backend", backend)
        return deepera_lab(
            "bioasq", "search", files / "questions.json", *place, "-o", files / "a.json", *more
        )

    return run


@contextmanager
def served(answer):
    """Options for a chat model on a server that answers as told, and the server."""
    with ChatServer(answer) as server:
        yield ("--model", "m", "--base-url", server.base_url, "--cache", "off"), server


@pytest.mark.full
def test_a_submission_and_its_runs_are_written(search, files):
    with served(play) as (model, _):
        done = search("--run", files / "run.jsonl", "--stages", files / "stages", *model)
    assert done.exit_code == 0, done.output
    assert "3 questions: 30 documents" in done.stdout
    found = read_questions(files / "a.json")
    assert [(one.id, one.type, one.body) for one in found] == [
        (one.id, one.type, one.body) for one in ASKED
    ]
    assert found[0].exact_answer is None
    assert all(len(one.documents) == 10 and one.snippets for one in found)
    run = read_run(files / "run.jsonl")
    urls = [f"http://www.ncbi.nlm.nih.gov/pubmed/{one.pmid}" for one in run["q1"][:10]]
    assert urls == [*found[0].documents]
    assert len(run["q1"]) > 10
    stages = {one.stem: read_run(one) for one in (files / "stages").iterdir()}
    assert set(stages) == {"retrieved", "judged", "listed", "final"}
    assert {one.pmid for one in stages["retrieved"]["q1"]} == {one.pmid for one in run["q1"]}


@pytest.mark.full
def test_what_failed_is_told_and_searched_for_again(search, files):
    def fail(request):
        return Reply(status=400) if "and do rats" in request.user else play(request)

    with served(fail) as (model, _):
        done = search(*model)
    assert done.exit_code == 1
    assert "question 'q3': sort: " in done.stderr
    assert "--resume" in done.stderr
    assert len(read_questions(files / "a.json")[2].documents) == 10
    with served(play) as (model, server):
        again = search(*model, "--resume")
        assert server.calls == 1  # q3 alone
    assert again.exit_code == 0, again.output


@pytest.mark.full
def test_a_search_goes_on_where_it_was_cut_short(search, files):
    assert search("--limit", "1").exit_code == 0
    assert len(read_questions(files / "a.json")) == 1
    manifest = files / "a.manifest"
    manifest.write_bytes(manifest.read_bytes() + b'{"question": {"id": "q2", "bo')  # killed
    done = search("--resume", "--json")
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert (told["questions"], told["earlier"]) == (3, 1)
    first = (files / "a.json").read_bytes()
    assert search("--resume").exit_code == 0
    assert (files / "a.json").read_bytes() == first
    (files / "a.json").unlink()
    assert search("--overwrite").exit_code == 0
    assert (files / "a.json").read_bytes() == first


@pytest.mark.full
def test_what_was_searched_for_before_and_is_not_asked_now_is_told(search):
    assert search("--snippets", "0").exit_code == 0
    fewer = search("--snippets", "0", "--resume", "--limit", "1")
    assert "2 questions of an earlier search not asked now: kept in " in fewer.stderr


@pytest.mark.full
def test_another_search_is_not_gone_on_with(search, files):
    assert search("--limit", "1").exit_code == 0
    done = search("--resume", "--depth", "5")
    assert done.exit_code == 2
    assert "settings.depth was 1000 and is 5" in done.stderr
    write_questions(files / "questions.json", [BioasqQuestion(id="q1", type="list", body="Other?")])
    done = search("--resume")
    assert done.exit_code == 2
    assert "'q1' is not the one that was searched for" in done.stderr


def test_nothing_is_overwritten_unless_that_is_said(search, files):
    (files / "a.json").write_text("precious")
    done = search()
    assert done.exit_code == 2
    assert "exists; give --overwrite" in done.stderr
    assert (files / "a.json").read_text() == "precious"


def test_rankings_that_cannot_be_written_are_named_before_the_search(search, files):
    (files / "file").write_text("")
    for name in ("--run", "--stages"):
        done = search(name, files / "file" / "out")
        assert done.exit_code == 2
        assert f"'{files / 'file' / 'out'}' cannot be written" in done.stderr
    assert not (files / "a.manifest").exists()


@pytest.mark.full
def test_a_wrong_key_ends_the_search_at_once(search, files):
    with served(lambda request: Reply(status=401)) as (model, server):
        done = search(*model)
        assert server.calls <= 4
    assert done.exit_code == 3
    assert "refused the API key" in done.stderr


@pytest.mark.full
@pytest.mark.parametrize(
    ("args", "problem"),
    [
        (["--weights", "1,7"], "--weights needs --model"),
        (["--rewrite"], "--rewrite needs --model"),
        (["--snippets", "many"], "--snippets must be auto or a number from 0 to 10, got 'many'"),
        (["--snippets", "11"], "--snippets must be auto or a number from 0 to 10, got '11'"),
        (["--model", "openai:m", "--weights", "1,-7"], "--weights must be two numbers >= 0"),
        (["--mode", "fused"], "--mode goes with --backend llm"),
        (["--resume", "--overwrite"], "give --resume or --overwrite, not both"),
    ],
)
def test_options_that_make_no_sense_are_named(search, args, problem):
    done = search(*args)
    assert done.exit_code == 2
    assert problem in done.stderr


@pytest.fixture
def runs(tmp_path):
    """Two runs and golden questions that the second answers better."""
    one = {"q1": [ScoredDocument("1", 3.0), ScoredDocument("2", 2.0)]}
    other = {"q1": [ScoredDocument("3", 9.0), ScoredDocument("1", 8.0)]}
    write_run(tmp_path / "one.jsonl", one)
    write_run(tmp_path / "other.jsonl", other)
    golden = BioasqQuestion(id="q1", type="list", body="?", documents=("http://x/3",))
    write_questions(tmp_path / "golden.json", [golden])
    return tmp_path


@pytest.fixture
def ensemble(deepera_lab, runs):
    def run(*more, out="both.jsonl"):
        both = (runs / "one.jsonl", runs / "other.jsonl")
        return deepera_lab("bioasq", "ensemble", *both, "-o", runs / out, *more)

    return run


@pytest.mark.parametrize(
    ("args", "wanted"),
    [
        ([], ["1", "2", "3"]),
        (["--nominate", "1,1"], ["1", "3"]),
        (["--weights", "0,1"], ["3", "1", "2"]),
        (["--weights", "1,1", "--scores", "min-max"], ["1", "3", "2"]),
        (["--weights", "0,1", "--documents", "1"], ["3"]),
    ],
)
def test_two_runs_become_one(ensemble, runs, args, wanted):
    done = ensemble(*args)
    assert done.exit_code == 0, done.output
    assert [one.pmid for one in read_run(runs / "both.jsonl")["q1"]] == wanted


def test_weights_are_searched_for_on_golden_questions(ensemble, runs):
    done = ensemble("--search-weights", "--golden", runs / "golden.json", "--json")
    told = json.loads(done.stdout)
    assert told["map"] == 1.0
    assert len(told["tried"]) == 121
    assert read_run(runs / "both.jsonl")["q1"][0].pmid == "3"
    shown = ensemble("--search-weights", "--golden", runs / "golden.json", "--overwrite")
    best = shown.stdout.partition("best weights by MAP@10 of 1 golden question: ")[2]
    ratios = [one.split()[0].split(":") for one in best.splitlines()[0].split(", ")]
    shares = {int(one) / (int(one) + int(other)) for one, other in ratios}
    assert len(shares) == len(ratios) == 5


def test_a_run_becomes_a_submission(ensemble, runs):
    done = ensemble("--questions", runs / "golden.json", out="new.json")
    assert done.exit_code == 0, done.output
    [made] = read_questions(runs / "new.json")
    assert [one.rpartition("/")[2] for one in made.documents] == ["1", "2", "3"]


def test_a_trec_run_is_written_by_its_name(ensemble, runs):
    assert ensemble(out="both.trec").exit_code == 0
    assert (runs / "both.trec").read_text().split()[:3] == ["q1", "Q0", "1"]


def test_a_run_without_a_document_is_refused(ensemble, runs):
    write_run(runs / "other.jsonl", {"q1": [], "q2": []})
    done = ensemble()
    assert done.exit_code == 2
    assert "other.jsonl' ranks no document" in done.stderr
    assert not (runs / "both.jsonl").exists()


def test_what_only_one_run_has_is_told(ensemble, runs):
    write_run(runs / "one.jsonl", {name: [ScoredDocument("1", 1.0)] for name in ("q1", "q2")})
    done = ensemble()
    assert f"{runs / 'other.jsonl'} has no document for 1 of 2 questions" in done.stderr
    assert "2 questions in " in done.stdout
    assert ensemble("--overwrite", "-q").stderr == ""


def test_questions_that_no_run_has_are_told_and_all_of_them_refused(ensemble, runs):
    unknown = BioasqQuestion(id="q9", type="list", body="?")
    write_questions(runs / "golden.json", [*read_questions(runs / "golden.json"), unknown])
    done = ensemble("--questions", runs / "golden.json", out="new.json")
    assert "1 of 2 questions in " in done.stderr
    assert "2 questions in " in done.stdout
    write_questions(runs / "golden.json", [unknown])
    refused = ensemble("--questions", runs / "golden.json", out="none.json")
    assert refused.exit_code == 2
    assert "neither run has a question of " in refused.stderr
    assert not (runs / "none.json").exists()


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        (["--weights", "1,7", "--nominate", "6,4"], "got --weights and --nominate"),
        (["--search-weights"], "--search-weights and --golden go together"),
        (["--scores", "rank"], "--scores goes with --weights"),
        (["--documents", "5"], "--documents goes with --weights or --search-weights"),
        (["--weights", "1"], "--weights must be two numbers >= 0, got '1'"),
        (["--weights", "1,x"], "--weights must be numbers"),
        (["--questions", "nowhere.json"], "no such file: 'nowhere.json'"),
    ],
)
def test_ways_that_make_no_sense_are_named(ensemble, args, problem):
    done = ensemble(*args)
    assert done.exit_code == 2
    assert problem in done.stderr


def settings_in(files):
    return json.loads((files / "a.manifest").read_text().splitlines()[0])


@pytest.mark.full
def test_the_preset_of_the_paper_scores_all_that_is_retrieved(search, files):
    assert search("--preset", "paper").exit_code == 0
    said = json.dumps(settings_in(files))
    assert '"judged": 1000' in said
    assert '"depth": 1000' in said


def test_an_option_beside_the_preset_wins(search, files):
    assert search("--preset", "paper", "--judged", "7").exit_code == 0
    said = json.dumps(settings_in(files))
    assert '"judged": 7' in said
    assert '"depth": 1000' in said


def test_other_presets_are_of_a_chat_model_that_judges(search):
    done = search("--preset", "careful")
    assert done.exit_code == 2
    assert "--preset goes with --backend llm" in done.stderr
