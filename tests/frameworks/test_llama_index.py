"""LlamaIndex with its OpenInference instrumentor: what its retrievals become."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from seer_otel import DropReason, using_ground_truth

from .conftest import PASSAGES, Traced, embed

pytestmark = [
    pytest.mark.frameworks,
    # The instrumentor calls it for each span of a model.
    pytest.mark.filterwarnings("ignore:The `json` method is deprecated:DeprecationWarning"),
]

QUESTION = "Who directed Inception?"


class World:
    """An index over the passages, and models that say what they are told to."""

    def __init__(self) -> None:
        from llama_index.core import MockEmbedding, VectorStoreIndex
        from llama_index.core.schema import TextNode

        class WordEmbedding(MockEmbedding):
            def _get_text_embedding(self, text: str) -> list[float]:
                return embed(text)

            def _get_query_embedding(self, query: str) -> list[float]:
                return embed(query)

            async def _aget_query_embedding(self, query: str) -> list[float]:
                return embed(query)

        nodes = [
            TextNode(id_=name, text=text, metadata={"source": f"{name}.md"})
            for name, text in PASSAGES.items()
        ]
        for node in nodes:
            node.excluded_embed_metadata_keys = ["source"]
        self.embedding = WordEmbedding(embed_dim=len(embed("")), model_name="words")
        self.index = VectorStoreIndex(nodes, embed_model=self.embedding)

    def retriever(self, k: int = 2) -> Any:
        return self.index.as_retriever(similarity_top_k=k)

    def engine(self, **settings: Any) -> Any:
        return self.index.as_query_engine(similarity_top_k=2, **{"llm": self.model("Nolan."), **settings})

    def model(self, *says: str) -> Any:
        """A model that gives these answers in turn, and the last one for ever."""
        from llama_index.core.llms import CompletionResponse, CompletionResponseGen, CustomLLM, LLMMetadata
        from llama_index.core.llms.callbacks import llm_completion_callback

        answers = list(says)

        class Model(CustomLLM):
            @property
            def metadata(self) -> LLMMetadata:
                return LLMMetadata(model_name="scripted")

            @llm_completion_callback()
            def complete(self, prompt: str, formatted: bool = False, **_: Any) -> CompletionResponse:
                return CompletionResponse(text=answers.pop(0) if len(answers) > 1 else answers[0])

            @llm_completion_callback()
            def stream_complete(
                self, prompt: str, formatted: bool = False, **_: Any
            ) -> CompletionResponseGen:
                text = answers.pop(0) if len(answers) > 1 else answers[0]

                def parts() -> CompletionResponseGen:
                    for end in range(1, len(text) + 1):
                        yield CompletionResponse(text=text[:end], delta=text[end - 1])

                return parts()

        return Model()

    def reranker(self) -> Any:
        """Turns the order round, with the events that a reranker of LlamaIndex gives."""
        from llama_index.core.instrumentation import get_dispatcher
        from llama_index.core.instrumentation.events.rerank import ReRankEndEvent, ReRankStartEvent
        from llama_index.core.postprocessor.types import BaseNodePostprocessor
        from llama_index.core.schema import NodeWithScore

        class Reverse(BaseNodePostprocessor):
            def _postprocess_nodes(self, nodes: Any, query_bundle: Any = None) -> Any:
                dispatcher = get_dispatcher("tests")
                dispatcher.event(
                    ReRankStartEvent(query=query_bundle, nodes=nodes, top_n=2, model_name="reverse")
                )
                turned = [
                    NodeWithScore(node=node.node, score=9.0 - rank)
                    for rank, node in enumerate(reversed(nodes))
                ]
                dispatcher.event(ReRankEndEvent(nodes=turned))
                return turned

        return Reverse()


@pytest.fixture
def world(traced: Traced) -> Iterator[World]:
    """The index, made before tracing begins."""
    from openinference.instrumentation.llama_index import LlamaIndexInstrumentor

    made = World()
    instrumentor = LlamaIndexInstrumentor()
    instrumentor.instrument(tracer_provider=traced.provider)
    yield made
    instrumentor.uninstrument()


def ids(event: dict[str, Any]) -> list[str]:
    return [passage["id"] for passage in event["context"]]


def test_retriever(world: World, traced: Traced) -> None:
    """A bare retriever gives one event with ids, texts, scores and sources, although it makes two spans."""
    world.retriever().retrieve(QUESTION)

    event = traced.event()
    assert (event["task"], event.get("subquery"), event["is_final_context"]) == (QUESTION, None, True)
    assert ids(event)[0] == "inception"
    assert event["context"][0]["text"] == PASSAGES["inception"]
    assert event["context"][0]["source"] == "inception.md"
    assert 0 <= event["context"][1]["score"] < event["context"][0]["score"] <= 1
    assert traced.seer.stats().dropped == {DropReason.NESTED: 1}


def test_query_engine(world: World, traced: Traced) -> None:
    """A query engine gives one event whose question is the engine's."""
    world.engine().query(QUESTION)

    event = traced.event()
    assert (event["task"], event["is_final_context"], len(event["context"])) == (QUESTION, True, 2)
    assert event["metadata"]["model"] == "words"


def test_async(world: World, traced: Traced) -> None:
    """Questions asked at once on one event loop stay apart, each with its own passages."""
    asked = [f"{QUESTION} {number}" for number in range(5)]

    async def main() -> None:
        engine = world.engine()
        await asyncio.gather(*(engine.aquery(question) for question in asked))

    asyncio.run(main())

    events = traced.events()
    assert sorted(event["task"] for event in events) == asked
    assert all(event["is_final_context"] and ids(event)[0] == "inception" for event in events)


def test_fusion(world: World, traced: Traced) -> None:
    """A fusion of retrievers is one event: what it returned, not the parts inside."""
    from llama_index.core.retrievers import QueryFusionRetriever

    fusion = QueryFusionRetriever(
        [world.retriever(1), world.retriever(3)],
        llm=world.model(""),
        num_queries=1,
        similarity_top_k=3,
        use_async=False,
    )
    fusion.retrieve(QUESTION)

    event = traced.event()
    assert event["span_name"] == "QueryFusionRetriever.retrieve"
    assert (event["task"], event["is_final_context"], len(event["context"])) == (QUESTION, True, 3)
    assert set(traced.seer.stats().dropped) == {DropReason.NESTED}


def test_reranker(world: World, traced: Traced) -> None:
    """A reranker's output is the final context, and the retrieval before it is an event that is not."""
    world.engine(node_postprocessors=[world.reranker()]).query(QUESTION)

    before, after = traced.events()
    assert (before["task"], after["task"]) == (QUESTION, QUESTION)
    assert (before["is_final_context"], after["is_final_context"]) == (False, True)
    assert ids(after) == list(reversed(ids(before)))
    assert [passage["score"] for passage in after["context"]] == [9.0, 8.0]
    assert after["context"][1]["source"] == "inception.md"


def test_sub_questions(world: World, traced: Traced) -> None:
    """Sub-questions are hops of the one question that the user asked, and the last of them is final."""
    from llama_index.core.query_engine import SubQuestionQueryEngine
    from llama_index.core.question_gen import LLMQuestionGenerator
    from llama_index.core.response_synthesizers import get_response_synthesizer
    from llama_index.core.tools import QueryEngineTool

    steps = ["Who directed Inception?", "What award did Christopher Nolan win?"]
    items = ", ".join(f'{{"sub_question": "{step}", "tool_name": "films"}}' for step in steps)
    planner = world.model(f'```json\n{{"items": [{items}]}}\n```')
    tool = QueryEngineTool.from_defaults(world.engine(), name="films", description="about films")
    engine = SubQuestionQueryEngine(
        LLMQuestionGenerator.from_defaults(llm=planner),
        get_response_synthesizer(llm=world.model("An Academy Award.")),
        [tool],
        verbose=False,
        use_async=False,
    )
    question = "What award did the director of Inception win?"
    engine.query(question)

    first, second = traced.events()
    assert (first["task"], second["task"]) == (question, question)
    assert [first["subquery"], second["subquery"]] == steps
    assert (first["is_final_context"], second["is_final_context"]) == (False, True)
    assert "nolan" in ids(second)


# The workflow's context asks an agent for all its attributes, and the ReAct agent asks whether it runs.
@pytest.mark.filterwarnings("ignore:The `__fields(_set)?__` attribute is deprecated:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:Accessing the 'model_(computed_)?fields' attribute:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:is_running called from within a step:DeprecationWarning")
def test_agent(world: World, traced: Traced) -> None:
    """An agent's retrieval has the user's question, although the agent's own span does not hold it."""
    from llama_index.core.agent.workflow import ReActAgent
    from llama_index.core.tools import QueryEngineTool

    model = world.model(
        'Thought: I must look it up.\nAction: films\nAction Input: {"input": "director of Inception"}',
        "Thought: I can answer without using any more tools.\nAnswer: Christopher Nolan",
    )
    tool = QueryEngineTool.from_defaults(world.engine(), name="films", description="about films")
    agent = ReActAgent(tools=[tool], llm=model)

    async def main() -> str:
        return str(await agent.run(QUESTION))

    assert asyncio.run(main()) == "Christopher Nolan"

    event = traced.event()
    assert (event["task"], event["subquery"]) == (QUESTION, "director of Inception")
    assert event["is_final_context"] is True
    assert ids(event)[0] == "inception"


def test_stream_read(world: World, traced: Traced) -> None:
    """A streamed answer that is read to its end is a trace seen whole."""
    response = world.engine(streaming=True).query(QUESTION)
    assert "".join(response.response_gen) == "Nolan."

    event = traced.event()
    assert (event["task"], event["is_final_context"]) == (QUESTION, True)
    assert "seer_otel.partial" not in event["metadata"]


def test_stream_left_unread(world: World, traced: Traced) -> None:
    """A streamed answer that nobody reads leaves spans open; a flush sends the retrieval, marked as partial."""
    response = world.engine(streaming=True).query(QUESTION)

    event = traced.event()
    assert ids(event)[0] == "inception"
    assert event["metadata"]["seer_otel.partial"] == "flush"
    assert event.get("subquery") is None
    del response


def test_threads(world: World, traced: Traced) -> None:
    """Questions from many threads give each its own trace, event and final context."""
    engine, gate = world.engine(), threading.Barrier(4)
    asked = [f"{QUESTION} {number}" for number in range(4)]

    def ask(question: str) -> None:
        gate.wait(10)
        engine.query(question)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(ask, asked))

    events = traced.events()
    assert sorted(event["task"] for event in events) == asked
    assert len({event["trace_id"] for event in events}) == 4
    assert all(event["is_final_context"] for event in events)


def test_exception(world: World, traced: Traced) -> None:
    """A retrieval that fails is counted and not sent, and its exception reaches the application."""
    from llama_index.core.retrievers import BaseRetriever

    class Broken(BaseRetriever):
        def _retrieve(self, query_bundle: Any) -> Any:
            raise RuntimeError("the index is away")

    with pytest.raises(RuntimeError, match="the index is away"):
        Broken().retrieve(QUESTION)

    assert traced.events() == []
    assert traced.seer.stats().dropped[DropReason.FAILED] >= 1


def test_nothing_found(world: World, traced: Traced) -> None:
    """A retrieval that finds nothing is an event with an empty context, and final."""
    from llama_index.core.retrievers import BaseRetriever

    class Nothing(BaseRetriever):
        def _retrieve(self, query_bundle: Any) -> Any:
            return []

    Nothing().retrieve(QUESTION)

    event = traced.event()
    assert (event["task"], event["context"], event["is_final_context"]) == (QUESTION, [], True)


def test_ground_truth(world: World, traced: Traced) -> None:
    """Labels given around a query reach the event of the retrieval inside."""
    with using_ground_truth(["inception"], answer="Christopher Nolan"):
        world.engine().query(QUESTION)

    assert traced.event()["ground_truth"] == {"gold_doc_ids": ["inception"], "answer": "Christopher Nolan"}
