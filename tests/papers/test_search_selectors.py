"""DeepEra's own graph as the selector of a search for papers, and the names of selectors."""

import asyncio
from dataclasses import replace

import pytest
from langchain_core.runnables import RunnableLambda

from deepera_graph import EvidenceReranker
from deepera_graph.errors import SettingsError
from deepera_graph.judges import load_backend
from deepera_graph.papers import PaperBase, Scope
from deepera_graph.papers.agent.graph import PaperSearch
from deepera_graph.papers.agent.limits import Limits
from deepera_graph.papers.agent.selectors import (
    EvidenceSelector,
    make_selector,
    select_by_vectors,
)
from deepera_graph.schema import Intent, Judgement
from deepera_graph.usage import Usage
from papers.world import write_lines

pytestmark = pytest.mark.full

LIMITS = Limits(question="kelp counting, no sonar", topic="kelp counting", exclude=("sonar",))
PAPERS = {
    "fits": ("Kelp counting from boats", "Divers read the plots twice."),
    "hidden": ("Kelp counting below ice", "Echoes of sound pulses map the beds."),
    "named": ("Kelp counting by sonar", "Sonar does the work."),
    "denies": ("Kelp counting at low tide", "We do without sonar of any kind."),
    "other": ("Bell tuning", "A lathe lowers the pitch."),
    "fails": ("Kelp counting, garbled", "This one breaks the judge."),
}


def task(*ids, limits=LIMITS):
    seen = {
        "year": 2020, "venue": "", "score": None, "verdict": "unjudged", "fits": None,
        "reason": "", "quote": "", "against": "", "calls": ["S1"], "step": 1, "followed": [],
    }  # fmt: skip
    papers = [
        {"id": id, "title": PAPERS[id][0], "abstract": PAPERS[id][1], **seen}
        for id in ids or PAPERS
    ]
    return {"limits": limits.to_dict(), "names": [], "papers": papers}


def judge_of(asked):
    """Return a judge of single passages that keeps what it was asked."""

    def judge(passage):
        asked.append((passage["question"], passage["title"], passage["text"]))
        if "garbled" in passage["title"]:
            raise RuntimeError("no idea")
        if passage["question"] == "sonar":
            score = 0.95 if "sound pulses" in passage["text"] else 0.0
        else:
            score = 0.7 if "kelp" in passage["title"].lower() else 0.2
        quote = passage["text"] if score > 0.5 else ""
        return Judgement(score=score, reason="so it is", quote=quote, usage=Usage(calls=1))

    return judge


def backend_of(asked, intents=None):
    def intent(given):
        if intents is not None:
            intents.append(given["question"])
        named = f"thing: {given['question']}"
        return Intent(topic="sea", entity_type=named, intent="other", expected_answer_type="other")

    rules = load_backend("rules")
    played = {"judge": RunnableLambda(judge_of(asked)), "intent": RunnableLambda(intent)}
    return replace(rules, name="played", spec=None, **played)


def said_of(selected):
    return {one.id: one for one in selected.papers}


def test_deepera_scores_the_topic_and_holds_exclusions_against_papers():
    asked = []
    selected = EvidenceSelector(backend_of(asked)).invoke(task())
    said = said_of(selected)
    assert {id: one.verdict for id, one in said.items()} == {
        "named": "out", "fits": "in", "hidden": "out", "denies": "in", "other": "in",
    }  # fmt: skip
    assert (said["fits"].score, said["fits"].fits, said["fits"].reason) == (0.7, True, "so it is")
    assert said["fits"].quote == "Divers read the plots twice."
    assert (said["other"].score, said["other"].fits) == (0.2, False)
    assert said["hidden"].against == said["named"].against == "sonar"
    assert "sound pulses" in said["hidden"].quote
    assert [*selected.failures] == ["fails"]
    assert "no idea" in selected.failures["fails"]


def test_the_judge_is_asked_for_the_topic_and_apart_for_what_is_excluded():
    asked = []
    EvidenceSelector(backend_of(asked)).invoke(task("fits", "denies", "named"))
    assert {question for question, _, _ in asked} == {"kelp counting", "sonar"}
    own = {text for question, _, text in asked if question == "sonar"}
    assert own == {
        "Kelp counting from boats Divers read the plots twice.",
        "Kelp counting at low tide",
    }
    assert not any("named" in text or "Sonar does" in text for _, _, text in asked)


def test_what_fits_is_what_passes_the_threshold_of_the_reranker():
    backend = backend_of([])
    for threshold, fitting in ((None, {"fits"}), (0.1, {"fits", "other"}), (0.9, set())):
        how = {} if threshold is None else {"threshold": threshold}
        selector = EvidenceSelector(EvidenceReranker(backend, **how))
        said = said_of(selector.invoke(task("fits", "other")))
        assert {id for id, one in said.items() if one.fits} == fitting


def test_the_intent_of_a_question_is_read_once_for_all_batches():
    intents = []
    selector = EvidenceSelector(backend_of([], intents))
    for _ in range(3):
        selector.invoke(task("fits", "other"))
    assert sorted(intents) == ["kelp counting", "sonar"]


def test_sync_and_async_select_alike():
    one, other = EvidenceSelector(backend_of([])), EvidenceSelector(backend_of([]))
    assert one.invoke(task()) == asyncio.run(other.ainvoke(task()))


def test_the_local_judge_orders_papers_of_the_topic_first_and_keeps_all():
    selector = make_selector("deepera", None)
    limits = Limits(question="kelp counting", topic="kelp counting")
    said = said_of(selector.role.invoke(task(limits=limits)))
    assert said["other"].score < said["fits"].score
    assert all(one.fits for one in said.values())
    assert all(one.reason for one in said.values())
    assert (selector.name, selector.is_costly) == ("deepera", False)


@pytest.fixture
def base(tmp_path):
    papers = [{"id": id, "title": title, "abstract": text} for id, (title, text) in PAPERS.items()]
    with PaperBase.build(tmp_path / "b.papers", write_lines(tmp_path / "p.jsonl", papers)) as made:
        yield made


@pytest.mark.parametrize("wrap", [EvidenceReranker, lambda backend: backend])
def test_a_search_takes_a_reranker_or_a_backend_as_its_selector(base, wrap):
    search = PaperSearch(base, style="sparse", selector=wrap(backend_of([])), screen=-1.0)
    found = search.search("Papers on kelp counting, excluding sonar")
    assert {one.id for one in found.papers} == {"fits", "denies", "fails"}
    assert {one.id for one in found.left_out} == {"hidden", "named"}
    (failed,) = (one for one in found.papers if one.verdict == "unjudged")
    assert failed.reason.startswith("not judged: ")
    assert "no idea" in failed.reason
    assert found.has_failed
    assert found.usage["judge"].calls >= 5
    assert search.describe()["selector"] == "deepera"
    assert search.describe()["judge"] == "played, threshold 0.5"


def test_a_budget_counts_each_call_of_the_judge_once(base):
    asked = []
    search = PaperSearch(
        base, style="sparse", selector=backend_of(asked), screen=-1.0, budget={"max_calls": 4}
    )
    found = search.search("Papers on kelp counting", scope=Scope(hide=("fails",)))
    assert len(asked) == 3  # and one for the intent
    assert sum(one.verdict == "unjudged" for one in found.papers) == found.n_seen - 3


def test_the_old_name_of_the_selector_by_vectors_says_where_it_went(base):
    with pytest.raises(SettingsError, match=r"'local' is called 'vectors' now.*'deepera'"):
        PaperSearch(base, selector="local")
    with pytest.raises(SettingsError, match="did you mean 'vectors'"):
        PaperSearch(base, selector="vector")


@pytest.mark.parametrize(("denial", "verdict"), [("", "out"), (" Vaccines were excluded.", "in")])
def test_nearness_in_meaning_is_not_held_against_a_paper_that_denies_the_thing(denial, verdict):
    limits = Limits(question="influenza", topic="influenza spread", exclude=("vaccines",))
    text = f"Immunisation began a year later.{denial}"
    asked = {**task("fits", limits=limits), "limits": limits.to_dict()}
    asked["papers"] = [{**asked["papers"][0], "title": "Influenza in schools", "abstract": text}]
    assert select_by_vectors(asked).papers[0].verdict == verdict


MOS2 = {
    "on": ("Thermal conductivity of MoS2", "Heat flow in exfoliated flakes was measured."),
    "stray": (
        "Vitamin D and influenza",
        "We conducted a trial. It was in schools. Pupils took drops.",
    ),
    "title": ("A riddle", ""),
}


@pytest.mark.parametrize(
    ("topic", "out"),
    [("thermal conductivity of MoS2", ["stray"]), ("Wärmeleitfähigkeit von MoS2 und WS2", [])],
)
def test_a_paper_of_which_nothing_is_near_the_topic_is_left_out(topic, out):
    asked = task("fits", limits=Limits(question=topic, topic=topic))
    seen = asked["papers"][0]
    papers = [
        {**seen, "id": id, "title": title, "abstract": text} for id, (title, text) in MOS2.items()
    ]
    found = select_by_vectors({**asked, "papers": papers}).papers
    assert [one.id for one in found if one.verdict == "out"] == out
