"""The traced application: a LlamaIndex RAG with two query engines, and no line about evaluation.

There is no model here. The index embeds by words, and the model quotes from what it is given.
"""

from __future__ import annotations

import math
import re
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from llama_index.core import VectorStoreIndex, get_response_synthesizer
from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.base.response.schema import RESPONSE_TYPE
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.instrumentation.events.rerank import ReRankEndEvent, ReRankStartEvent
from llama_index.core.llms import CompletionResponse, CompletionResponseGen, CustomLLM, LLMMetadata
from llama_index.core.llms.callbacks import llm_completion_callback
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.prompts import PromptTemplate
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

DIMENSIONS = 512
TOP_K = 5
FOLLOW_UP = PromptTemplate("Question: {question}\n\nFound:\n{found}\n\nSay what to look up next.")

_COMMON = frozenset(
    "a an and are as at by did do does for from had has have he her his in is it its of on or she that the "  # noqa: SIM905
    "their they this to was were what when where which who whom whose with".split()
)


def words(text: str) -> list[str]:
    """The words that tell one text from another."""
    return [word for word in re.findall(r"\w+", text.lower()) if word not in _COMMON]


class WordEmbedding(BaseEmbedding):
    """Each word has a place in the vector; rare words weigh more."""

    weights: dict[str, float]
    unknown: float

    @classmethod
    def of(cls, texts: Iterable[str]) -> WordEmbedding:
        counts = Counter(word for text in texts for word in set(words(text)))
        total = max(counts.values(), default=1)
        weights = {word: math.log((total + 1) / (count + 0.5)) for word, count in counts.items()}
        return cls(model_name="words", weights=weights, unknown=math.log(2 * total + 2), embed_batch_size=100)

    def _get_text_embedding(self, text: str) -> list[float]:
        vector = [0.0] * DIMENSIONS
        for word, count in Counter(words(text)).items():
            place = zlib.crc32(word.encode())
            sign = 1 if place & 0x10000 else -1
            vector[place % DIMENSIONS] += sign * (1 + math.log(count)) * self.weights.get(word, self.unknown)
        length = math.hypot(*vector)
        return [value / length for value in vector] if length else vector

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)


class QuotingModel(CustomLLM):
    """Answers with the first sentence it is given, and would look up what the first two are about."""

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(model_name="quoting-model")

    @llm_completion_callback()
    def complete(self, prompt: str, formatted: bool = False, **_: Any) -> CompletionResponse:  # noqa: ARG002
        if found := re.search(r"^Question: (.*?)\n\nFound:\n(.*)\n\nSay what", prompt, re.DOTALL):
            question, text = found.groups()
            return CompletionResponse(text=f"{question} {' '.join(_sentences(text)[:2])}")
        context = prompt.partition("---------------------\n")[2]
        return CompletionResponse(text=_sentences(context.strip())[0])

    @llm_completion_callback()
    def stream_complete(self, prompt: str, formatted: bool = False, **_: Any) -> CompletionResponseGen:
        yield self.complete(prompt, formatted)


def _sentences(text: str) -> list[str]:
    return re.split(r"(?<=[.!?]) ", text)


class WordReranker(BaseNodePostprocessor):
    """Puts first what shares the most with the question and with what was looked up next."""

    embedding: WordEmbedding
    top_n: int = TOP_K

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        events = get_dispatcher(__name__)
        events.event(ReRankStartEvent(query=query_bundle, nodes=nodes, top_n=self.top_n, model_name="words"))
        best: dict[str, NodeWithScore] = {}
        for node in nodes:  # one that two hops found has what both say for it
            known = best.get(node.node_id)
            score = (node.score or 0) + ((known.score or 0) if known else 0)
            best[node.node_id] = NodeWithScore(node=node.node, score=score)
        ranked = sorted(best.values(), key=lambda node: -(node.score or 0))[: self.top_n]
        events.event(ReRankEndEvent(nodes=ranked))
        return ranked


class MultiHopEngine(BaseQueryEngine):
    """Retrieves, lets the model say what to look up next, retrieves that, and answers from the best of both."""

    def __init__(self, index: VectorStoreIndex, model: CustomLLM, reranker: WordReranker) -> None:
        super().__init__(callback_manager=None)
        self._retriever = index.as_retriever(similarity_top_k=TOP_K)
        self._model = model
        self._reranker = reranker
        self._synthesizer = get_response_synthesizer(llm=model)

    def _query(self, query_bundle: QueryBundle) -> RESPONSE_TYPE:
        question = query_bundle.query_str
        first = self._retriever.retrieve(question)
        found = first[0].node.get_content() if first else ""
        second = self._retriever.retrieve(self._model.predict(FOLLOW_UP, question=question, found=found))
        best = self._reranker.postprocess_nodes([*first, *second], query_bundle)
        return self._synthesizer.synthesize(query_bundle, best)

    async def _aquery(self, query_bundle: QueryBundle) -> RESPONSE_TYPE:
        return self._query(query_bundle)

    def _get_prompt_modules(self) -> dict[str, Any]:
        return {}


def build(passages: Mapping[str, str]) -> dict[str, BaseQueryEngine]:
    """Index `passages` (id: text) and return the query engines over it: "single-hop", "wide" and "multi-hop"."""
    model, embedding = QuotingModel(), WordEmbedding.of(passages.values())
    nodes = [TextNode(id_=name, text=text) for name, text in passages.items()]
    index = VectorStoreIndex(nodes, embed_model=embedding)
    return {
        "single-hop": index.as_query_engine(llm=model, similarity_top_k=TOP_K),
        "wide": index.as_query_engine(llm=model, similarity_top_k=60),
        "multi-hop": MultiHopEngine(index, model, WordReranker(embedding=embedding)),
    }
