"""FastAPI under uvicorn: http://127.0.0.1:8000/search?question=Who+directed+Inception

What is searched is not what was asked, and the request's own span does not say it, so `using_task` does. At the end
`provider.shutdown()` sends what is left. PORT chooses another port.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import uvicorn
from fastapi import FastAPI
from opentelemetry.instrumentation.fastapi import FastAPIInstrumentor
from opentelemetry.sdk.trace import TracerProvider
from shared import endpoint, retrieve

from seer_otel import attach, using_task

provider = TracerProvider()
attach(provider, endpoint=endpoint(), sample_rate=1.0)
tracer = provider.get_tracer("fastapi-app")


@asynccontextmanager
async def lifespan(_: FastAPI) -> AsyncIterator[None]:
    yield
    provider.shutdown()


app = FastAPI(lifespan=lifespan)
FastAPIInstrumentor.instrument_app(app, tracer_provider=provider)


@app.get("/search")
async def find(question: str) -> dict[str, str]:
    with using_task(question):
        return retrieve(tracer, question.removesuffix("?").lower())


if __name__ == "__main__":
    uvicorn.run(app, host="127.0.0.1", port=int(os.environ.get("PORT", "8000")), log_level="warning")
