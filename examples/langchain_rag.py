"""LangChain: instrument it, add the processor, and ask as before."""

from __future__ import annotations

from langchain_core.embeddings import Embeddings
from langchain_core.language_models import FakeListLLM
from langchain_core.prompts import PromptTemplate
from langchain_core.runnables import RunnablePassthrough
from langchain_core.vectorstores import InMemoryVectorStore
from openinference.instrumentation.langchain import LangChainInstrumentor
from opentelemetry.sdk.trace import TracerProvider
from shared import PASSAGES, embed, endpoint, finish

from seer_otel import SeerSpanProcessor

provider = TracerProvider()
seer = SeerSpanProcessor(endpoint=endpoint(), sample_rate=1.0)
provider.add_span_processor(seer)
LangChainInstrumentor().instrument(tracer_provider=provider)


class WordEmbeddings(Embeddings):
    """Stands for an embedding model."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [embed(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return embed(text)


store = InMemoryVectorStore(WordEmbeddings())
store.add_texts(list(PASSAGES.values()), ids=list(PASSAGES))
retriever = store.as_retriever(search_kwargs={"k": 2})
prompt = PromptTemplate.from_template("Answer from this: {context}\n\n{question}")
model = FakeListLLM(responses=["Christopher Nolan."])
chain = {"context": retriever, "question": RunnablePassthrough()} | prompt | model
print(chain.invoke("Who directed Inception?"))

finish(seer)
