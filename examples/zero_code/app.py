"""An application without a line about tracing or evaluation; run.sh starts it."""

from __future__ import annotations

from langchain_core.documents import Document
from langchain_core.language_models import FakeListLLM
from langchain_core.prompts import PromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnablePassthrough


class Shelf(BaseRetriever):
    """Finds the texts that share a word with the query."""

    texts: list[str]

    def _get_relevant_documents(self, query: str, **_: object) -> list[Document]:
        words = set(query.lower().rstrip("?").split())
        return [
            Document(text, id=str(i))
            for i, text in enumerate(self.texts)
            if words & set(text.lower().split())
        ]


shelf = Shelf(texts=["Christopher Nolan directed Inception.", "The Thames flows by."])
prompt = PromptTemplate.from_template("Answer from this: {context}\n\n{question}")
model = FakeListLLM(responses=["Christopher Nolan."])
chain = {"context": shelf, "question": RunnablePassthrough()} | prompt | model
print(chain.invoke("Who directed Inception?"))
