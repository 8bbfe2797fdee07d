"""LangChain with its OpenInference instrumentor: what its retrievals become."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from seer_otel import DropReason, using_ground_truth, using_task

from .conftest import PASSAGES, Traced, embed

pytestmark = [
    pytest.mark.frameworks,
    # The instrumentor calls it for each message of a chat model.
    pytest.mark.filterwarnings("ignore:Calling .text\\(\\) as a method is deprecated:DeprecationWarning"),
]

QUESTION = "Who directed Inception?"


class World:
    """A store with the passages, and models that say what they are told to."""

    def __init__(self) -> None:
        from langchain_core.embeddings import Embeddings
        from langchain_core.vectorstores import InMemoryVectorStore

        class WordEmbeddings(Embeddings):
            def embed_documents(self, texts: list[str]) -> list[list[float]]:
                return [embed(text) for text in texts]

            def embed_query(self, text: str) -> list[float]:
                return embed(text)

        self.store = InMemoryVectorStore(WordEmbeddings())
        metadatas = [{"source": f"{name}.md"} for name in PASSAGES]
        self.store.add_texts(list(PASSAGES.values()), metadatas, ids=list(PASSAGES))

    def retriever(self, k: int = 2) -> Any:
        return self.store.as_retriever(search_kwargs={"k": k})

    def chain(self, retriever: Any = None) -> Any:
        from langchain_core.language_models import FakeListLLM
        from langchain_core.prompts import PromptTemplate
        from langchain_core.runnables import RunnablePassthrough

        prompt = PromptTemplate.from_template("{context}\n\n{question}")
        found = retriever or self.retriever()
        model = FakeListLLM(responses=["Nolan."])
        return {"context": found, "question": RunnablePassthrough()} | prompt | model

    def returning(self, *documents: Any, error: Exception | None = None) -> Any:
        """A retriever that finds these documents, or fails."""
        from langchain_core.retrievers import BaseRetriever

        class Fixed(BaseRetriever):
            def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Any]:
                if error is not None:
                    raise error
                return list(documents)

        return Fixed()


@pytest.fixture
def world(traced: Traced) -> Iterator[World]:
    """The store, traced."""
    from openinference.instrumentation.langchain import LangChainInstrumentor

    instrumentor = LangChainInstrumentor()
    instrumentor.instrument(tracer_provider=traced.provider)
    yield World()
    instrumentor.uninstrument()


def ids(event: dict[str, Any]) -> list[str | None]:
    return [passage.get("id") for passage in event["context"]]


def test_retriever(world: World, traced: Traced) -> None:
    """A bare retriever gives one final event, with the ids that stand only in its output."""
    world.retriever().invoke(QUESTION)

    event = traced.event()
    assert (event["task"], event.get("subquery"), event["is_final_context"]) == (QUESTION, None, True)
    assert ids(event)[0] == "inception"
    assert event["context"][0] == {
        "text": PASSAGES["inception"],
        "id": "inception",
        "source": "inception.md",
        "metadata": {"source": "inception.md"},
    }
    assert len(event["context"]) == 2


def test_chain(world: World, traced: Traced) -> None:
    """A chain's retrieval has the chain's input as its question."""
    assert world.chain().invoke(QUESTION) == "Nolan."

    event = traced.event()
    assert (event["task"], event["is_final_context"], ids(event)[0]) == (QUESTION, True, "inception")


def test_rewritten_query(world: World, traced: Traced) -> None:
    """What a chain makes of the question for its retriever is the subquery."""
    from langchain_core.runnables import RunnableLambda

    (RunnableLambda(str.lower) | world.retriever()).invoke(QUESTION)

    event = traced.event()
    assert (event["task"], event["subquery"]) == (QUESTION, "who directed inception?")


def test_async(world: World, traced: Traced) -> None:
    """Questions asked at once on one event loop stay apart, each with its own passages."""
    asked = [f"{QUESTION} {number}" for number in range(5)]

    async def main() -> None:
        chain = world.chain()
        await asyncio.gather(*(chain.ainvoke(question) for question in asked))

    asyncio.run(main())

    events = traced.events()
    assert sorted(event["task"] for event in events) == asked
    assert all(event["is_final_context"] and ids(event)[0] == "inception" for event in events)


def test_ensemble(world: World, traced: Traced) -> None:
    """An ensemble is one event: what it returned, not the retrievals inside."""
    from langchain_classic.retrievers import EnsembleRetriever
    from langchain_community.retrievers import BM25Retriever

    words = BM25Retriever.from_texts(
        list(PASSAGES.values()), k=1, preprocess_func=lambda text: text.lower().strip("?.").split()
    )
    EnsembleRetriever(retrievers=[words, world.retriever()], weights=[0.5, 0.5]).invoke(QUESTION)

    event = traced.event()
    assert event["span_name"] == "EnsembleRetriever"
    assert (event["task"], event["is_final_context"]) == (QUESTION, True)
    assert event["context"][0]["text"] == PASSAGES["inception"]
    assert traced.seer.stats().dropped == {DropReason.NESTED: 2}


def test_compression(world: World, traced: Traced) -> None:
    """Reranking by compression is one event: what is left, in the new order, with scores from the metadata."""
    from langchain_classic.retrievers import ContextualCompressionRetriever
    from langchain_core.documents import BaseDocumentCompressor

    class Reverse(BaseDocumentCompressor):
        def compress_documents(self, documents: Any, query: str, callbacks: Any = None) -> Any:
            turned = list(reversed(documents))[:2]
            for rank, document in enumerate(turned):
                document.metadata["relevance_score"] = 0.9 - rank / 10
            return turned

    reranking = ContextualCompressionRetriever(base_compressor=Reverse(), base_retriever=world.retriever(4))
    reranking.invoke(QUESTION)

    event = traced.event()
    assert event["span_name"] == "ContextualCompressionRetriever"
    assert (event["is_final_context"], len(event["context"])) == (True, 2)
    assert "inception" not in ids(event)
    assert [passage["score"] for passage in event["context"]] == pytest.approx([0.9, 0.8])


def test_agent(world: World, traced: Traced) -> None:
    """An agent's retrievals are hops of the user's question, and the last of them is final."""
    from langchain.agents import create_agent
    from langchain_core.language_models import FakeMessagesListChatModel
    from langchain_core.messages import AIMessage
    from langchain_core.tools import create_retriever_tool

    class Model(FakeMessagesListChatModel):
        def bind_tools(self, *_: Any, **__: Any) -> Any:
            return self

    def call(query: str) -> AIMessage:
        return AIMessage("", tool_calls=[{"name": "films", "args": {"query": query}, "id": query}])

    steps = ["director of Inception", "award of Christopher Nolan"]
    model = Model(responses=[call(steps[0]), call(steps[1]), AIMessage("An Academy Award.")])
    agent = create_agent(model, [create_retriever_tool(world.retriever(), "films", "about films")])
    question = "What award did the director of Inception win?"
    answer = agent.invoke({"messages": [{"role": "user", "content": question}]})
    assert answer["messages"][-1].content == "An Academy Award."

    first, second = traced.events()
    assert (first["task"], second["task"]) == (question, question)
    assert [first["subquery"], second["subquery"]] == steps
    assert (first["is_final_context"], second["is_final_context"]) == (False, True)
    assert (ids(first)[0], ids(second)[0]) == ("inception", "nolan")


def test_stream_read(world: World, traced: Traced) -> None:
    """A stream that is read to its end is a trace seen whole."""
    assert "".join(world.chain().stream(QUESTION)) == "Nolan."

    event = traced.event()
    assert (event["task"], event["is_final_context"]) == (QUESTION, True)
    assert "seer_otel.partial" not in event["metadata"]


def test_stream_left(world: World, traced: Traced) -> None:
    """A stream that is closed after its first part still gives its event, once."""
    stream = world.chain().stream(QUESTION)
    next(stream)
    stream.close()

    event = traced.event()
    assert (event["task"], ids(event)[0]) == (QUESTION, "inception")


def test_batch(world: World, traced: Traced) -> None:
    """A batch of questions gives each its own trace, event and final context."""
    asked = [f"{QUESTION} {number}" for number in range(4)]
    world.retriever().batch(asked)

    events = traced.events()
    assert sorted(event["task"] for event in events) == asked
    assert len({event["trace_id"] for event in events}) == 4
    assert all(event["is_final_context"] for event in events)


def test_threads(world: World, traced: Traced) -> None:
    """Chains in many threads at once stay apart."""
    chain, gate = world.chain(), threading.Barrier(4)
    asked = [f"{QUESTION} {number}" for number in range(4)]

    def ask(question: str) -> None:
        gate.wait(10)
        chain.invoke(question)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(ask, asked))

    events = traced.events()
    assert sorted(event["task"] for event in events) == asked
    assert all(event["is_final_context"] for event in events)


def test_exception(world: World, traced: Traced) -> None:
    """A retrieval that fails is counted and not sent, and its exception reaches the application."""
    broken = world.returning(error=RuntimeError("the store is away"))

    with pytest.raises(RuntimeError, match="the store is away"):
        world.chain(broken).invoke(QUESTION)

    assert traced.events() == []
    assert traced.seer.stats().dropped == {DropReason.FAILED: 1}


def test_fallback(world: World, traced: Traced) -> None:
    """Where a retriever fails and another one takes its place, that one's result is the final context."""
    broken = world.returning(error=RuntimeError("the store is away"))
    world.chain(broken.with_fallbacks([world.retriever()])).invoke(QUESTION)

    event = traced.event()
    assert (event["task"], event["is_final_context"], ids(event)[0]) == (QUESTION, True, "inception")
    assert traced.seer.stats().dropped == {DropReason.FAILED: 1}


def test_nothing_found(world: World, traced: Traced) -> None:
    """A retrieval that finds nothing is an event with an empty context, and final."""
    world.chain(world.returning()).invoke(QUESTION)

    event = traced.event()
    assert (event["task"], event["context"], event["is_final_context"]) == (QUESTION, [], True)


def test_documents_without_ids(world: World, traced: Traced) -> None:
    """Documents without an id are passages without one, also beside others that have one."""
    from langchain_core.documents import Document

    world.returning(Document("One."), Document("Two.", id="2", metadata={"score": 0.5})).invoke(QUESTION)

    assert traced.event()["context"] == [
        {"text": "One."},
        {"text": "Two.", "id": "2", "score": 0.5, "metadata": {"score": 0.5}},
    ]


def test_using(world: World, traced: Traced) -> None:
    """What the application says around a call beats what the spans say."""
    with using_task("Whose film is Inception?"), using_ground_truth(["inception"]):
        world.chain().invoke(QUESTION)

    event = traced.event()
    assert (event["task"], event["subquery"]) == ("Whose film is Inception?", QUESTION)
    assert event["ground_truth"] == {"gold_doc_ids": ["inception"]}
