"""Rerank clients of other services against a running server: which get right answers.

Run it in an environment that has the clients, and not necessarily this package:

    pip install cohere litellm langchain-cohere langchain-community \
        llama-index-postprocessor-cohere-rerank llama-index-postprocessor-jinaai-rerank \
        llama-index-postprocessor-tei-rerank
    deepera serve --port 8000 &
    python benchmarks/serve/clients.py http://127.0.0.1:8000

A client is right if it puts first what `POST /v1/evidence` puts first, with the same score. A
client that is not installed is left out, and said to be. Prints a table in Markdown; the exit code
is 1 if a client is wrong.
"""

# ruff: noqa: PLC0415 - a client that is not installed is left out

import argparse
import asyncio
import json
import os
import sys
import warnings
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from typing import Any, NamedTuple
from urllib.request import Request, urlopen

QUESTION = "Does wax coating keep apples firm in storage?"
PASSAGES = [
    "Whether wax coating keeps apples firm in storage has been debated for decades.",
    "Wax coating kept apples firm: after 90 days in storage, firmness had fallen by 6% in coated "
    "apples and by 31% in uncoated apples (p < 0.001).",
    "Apples were coated with wax and stored; firmness will be measured with a penetrometer.",
]
KEY = os.environ.get("DEEPERA_SERVE_KEY", "no-key-is-needed")
Ranking = list[tuple[int, float]]  # place of a passage, its score
TOP = 2
TOLERANCE = 1e-6  # some clients keep scores as 32 bits


class Tried(NamedTuple):
    """What a client did."""

    client: str
    call: str
    version: str
    verdict: str


def cohere_v2(url: str) -> Ranking:
    """Ask by the present client of Cohere."""
    import cohere

    client = cohere.ClientV2(api_key=KEY, base_url=url)
    found = client.rerank(model="local", query=QUESTION, documents=PASSAGES, top_n=TOP)
    return [(one.index, one.relevance_score) for one in found.results]


def cohere_v1(url: str) -> Ranking:
    """Ask by its older one, with documents as objects, and have them back."""
    import cohere

    client = cohere.Client(api_key=KEY, base_url=url)
    documents: Any = [{"text": one} for one in PASSAGES]
    found = client.rerank(
        model="rerank-v3.5", query=QUESTION, documents=documents, top_n=TOP, return_documents=True
    )
    for one in found.results:
        assert one.document is not None
        assert one.document.text == PASSAGES[one.index]
    return [(one.index, one.relevance_score) for one in found.results]


def cohere_async(url: str) -> Ranking:
    """Ask by the present client, in a loop."""
    import cohere

    async def ask() -> Ranking:
        client = cohere.AsyncClientV2(api_key=KEY, base_url=url)
        found = await client.rerank(model="local", query=QUESTION, documents=PASSAGES, top_n=TOP)
        return [(one.index, one.relevance_score) for one in found.results]

    return asyncio.run(ask())


def _litellm(model: str, **more: Any) -> Callable[[str], Ranking]:
    def ask(url: str) -> Ranking:
        os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # else it is downloaded
        import litellm

        litellm.suppress_debug_info = True
        found = litellm.rerank(
            model=model,
            query=QUESTION,
            documents=PASSAGES,
            top_n=TOP,
            api_base=url,
            api_key=KEY,
            **more,
        )
        return [(one["index"], one["relevance_score"]) for one in found.results or []][:TOP]

    return ask


def langchain_cohere(url: str) -> Ranking:
    """Ask by LangChain with a client of Cohere that was given an address."""
    import cohere
    from langchain_cohere import CohereRerank

    compressor = CohereRerank(
        client=cohere.ClientV2(api_key=KEY, base_url=url), model="local", top_n=TOP
    )
    return _of_documents(compressor)


def langchain_cohere_url(url: str) -> Ranking:
    """Ask by LangChain that is given an address."""
    from langchain_cohere import CohereRerank

    return _of_documents(CohereRerank(base_url=url, cohere_api_key=KEY, model="local", top_n=TOP))


def langchain_jina(url: str) -> Ranking:
    """Ask by LangChain as if it were Jina."""
    from langchain_community.document_compressors import jina_rerank

    jina_rerank.JINA_API_URL = f"{url}/v1/rerank"  # it has no option for it
    return _of_documents(jina_rerank.JinaRerank(jina_api_key=KEY, top_n=TOP))


def llama_cohere(url: str) -> Ranking:
    """Ask by LlamaIndex as if it were Cohere."""
    from llama_index.postprocessor.cohere_rerank import CohereRerank

    return _of_nodes(CohereRerank(api_key=KEY, base_url=url, model="local", top_n=TOP))


def llama_jina(url: str) -> Ranking:
    """Ask by LlamaIndex as if it were Jina."""
    from llama_index.postprocessor.jinaai_rerank import JinaRerank

    return _of_nodes(JinaRerank(api_key=KEY, base_url=f"{url}/v1", model="local", top_n=TOP))


def llama_tei(url: str) -> Ranking:
    """Ask by LlamaIndex as if it were text-embeddings-inference."""
    from llama_index.postprocessor.tei_rerank import TextEmbeddingInference

    return _of_nodes(TextEmbeddingInference(base_url=url, auth_token=f"Bearer {KEY}", top_n=TOP))


def _of_documents(compressor: Any) -> Ranking:
    from langchain_core.documents import Document

    documents = [Document(one, metadata={"place": n}) for n, one in enumerate(PASSAGES)]
    found = compressor.compress_documents(documents, QUESTION)
    return [(one.metadata["place"], one.metadata["relevance_score"]) for one in found]


def _of_nodes(postprocessor: Any) -> Ranking:
    from llama_index.core.schema import NodeWithScore, TextNode

    nodes = [NodeWithScore(node=TextNode(text=one, id_=str(n))) for n, one in enumerate(PASSAGES)]
    found = postprocessor.postprocess_nodes(nodes, query_str=QUESTION)
    return [(int(one.node.node_id), one.score) for one in found]


CLIENTS: dict[str, tuple[str, str, Callable[[str], Ranking]]] = {  # label: package, call, function
    "cohere v2": ("cohere", "ClientV2.rerank", cohere_v2),
    "cohere v2, async": ("cohere", "AsyncClientV2.rerank", cohere_async),
    "cohere v1": ("cohere", "Client.rerank, {text}, return_documents", cohere_v1),
    "litellm, cohere": ("litellm", "rerank(model='cohere/local')", _litellm("cohere/local")),
    "litellm, jina": ("litellm", "rerank(model='jina_ai/local')", _litellm("jina_ai/local")),
    "litellm, vllm": ("litellm", "rerank(model='hosted_vllm/...')", _litellm("hosted_vllm/local")),
    "litellm, infinity": (
        "litellm",
        "rerank(model='infinity/...', return_documents=False)",
        _litellm("infinity/local", return_documents=False),
    ),
    "litellm, tei": ("litellm", "rerank(model='huggingface/...')", _litellm("huggingface/local")),
    "langchain, cohere": ("langchain-cohere", "CohereRerank(base_url=)", langchain_cohere_url),
    "langchain, cohere client": ("langchain-cohere", "CohereRerank(client=)", langchain_cohere),
    "langchain, jina": ("langchain-community", "JinaRerank", langchain_jina),
    "llama-index, cohere": (
        "llama-index-postprocessor-cohere-rerank", "CohereRerank(base_url=)", llama_cohere,
    ),
    "llama-index, jina": (
        "llama-index-postprocessor-jinaai-rerank", "JinaRerank(base_url=)", llama_jina,
    ),
    "llama-index, tei": (
        "llama-index-postprocessor-tei-rerank", "TextEmbeddingInference(base_url=)", llama_tei,
    ),
}  # fmt: skip


def ask_directly(url: str) -> Ranking:
    """Return what the server's own path says, best first."""
    body = json.dumps({"question": QUESTION, "passages": PASSAGES, "n": 1}).encode()
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {KEY}"}
    with urlopen(Request(f"{url}/v1/evidence", body, headers)) as response:
        told = json.load(response)
    ranked = sorted(told["ranking"], key=lambda one: -one["score"])
    return [(int(one["id"]) - 1, one["score"]) for one in ranked]


def try_client(url: str, name: str, expected: Ranking) -> Tried:
    """Ask by one client, and compare."""
    package, call, ask = CLIENTS[name]
    try:
        installed = version(package)
    except PackageNotFoundError:
        return Tried(package, call, "-", "not installed")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = ask(url)
    except Exception as error:  # noqa: BLE001 - of any client; the others go on
        said = " ".join(str(error).split())
        return Tried(package, call, installed, f"failed: {type(error).__name__}: {said:.160}")
    return Tried(package, call, installed, _compare(found, expected[: len(found)]))


def _compare(found: Ranking, expected: Ranking) -> str:
    right = len(found) == TOP and all(
        place == other and abs(score - wanted) < TOLERANCE
        for (place, score), (other, wanted) in zip(found, expected, strict=True)
    )
    return "right" if right else f"wrong: {found}, expected {expected}"


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("url", help="of a running server")
    parser.add_argument("--only", help="clients whose name has this in it")
    given = parser.parse_args()
    url = given.url.rstrip("/")
    expected = ask_directly(url)
    tried = [try_client(url, name, expected) for name in CLIENTS if (given.only or "") in name]
    rows = [f"| `{one.client}` | {one.version} | `{one.call}` | {one.verdict} |" for one in tried]
    head = ["| client | version | call | answer |", "|---|---|---|---|"]
    sys.stdout.write("\n".join([*head, *rows]) + "\n")
    return int(any(one.verdict not in ("right", "not installed") for one in tried))


if __name__ == "__main__":
    sys.exit(main())
