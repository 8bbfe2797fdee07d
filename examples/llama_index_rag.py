"""LlamaIndex: instrument it, add the processor, and ask as before."""

from __future__ import annotations

from llama_index.core import MockEmbedding, VectorStoreIndex
from llama_index.core.llms import MockLLM
from llama_index.core.schema import TextNode
from openinference.instrumentation.llama_index import LlamaIndexInstrumentor
from opentelemetry.sdk.trace import TracerProvider
from shared import PASSAGES, embed, endpoint, finish

from seer_otel import SeerSpanProcessor

provider = TracerProvider()
seer = SeerSpanProcessor(endpoint=endpoint(), sample_rate=1.0)
provider.add_span_processor(seer)
LlamaIndexInstrumentor().instrument(tracer_provider=provider)


class WordEmbedding(MockEmbedding):
    """Stands for an embedding model."""

    def _get_text_embedding(self, text: str) -> list[float]:
        return embed(text)

    def _get_query_embedding(self, query: str) -> list[float]:
        return embed(query)


nodes = [TextNode(id_=name, text=text) for name, text in PASSAGES.items()]
index = VectorStoreIndex(nodes, embed_model=WordEmbedding(embed_dim=len(embed("")), model_name="words"))
engine = index.as_query_engine(llm=MockLLM(max_tokens=8), similarity_top_k=2)
engine.query("Who directed Inception?")

finish(seer)
