"""What may be asked: the fields of every request, their kinds and their bounds. What is not here is refused by name."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

MOST_TEXTS, MOST_CHOICES, MOST_STOPS = 64, 16, 8
LONGEST_TEXT, LONGEST_STOP, LONGEST_NAME = 1 << 20, 200, 400

Text = Annotated[str, Field(max_length=LONGEST_TEXT)]
Name = Annotated[str, Field(max_length=LONGEST_NAME)]
Note = Annotated[str, Field(max_length=1000)]
Token = Annotated[int, Field(ge=0, lt=2**31)]
TokenName = Annotated[str, Field(pattern=r"^[0-9]{1,9}$")]
Tokens = Annotated[list[Token], Field(min_length=1, max_length=1 << 17)]
Prompt = Text | Tokens
Stop = Annotated[str, Field(min_length=1, max_length=LONGEST_STOP)]
Real = Annotated[float, Field(allow_inf_nan=False)]
Bias = Annotated[Real, Field(ge=-100, le=100)]  # a larger one overflows beside logits in float32


class Asked(BaseModel):
    """Base of all requests: nothing is guessed, and an unknown field is an error.

    user, safety_identifier, prompt_cache_key, metadata  what a client notes for itself: it changes no answer.
    """

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)

    model: Name | None = None
    user: Name | None = None
    safety_identifier: Name | None = None
    prompt_cache_key: Name | None = None
    metadata: Annotated[dict[Name, Note], Field(max_length=16)] | None = None


class StreamOptions(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    include_usage: bool = False
    include_obfuscation: Literal[False] = False


class JsonSchema(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, populate_by_name=True)

    name: Name = "answer"
    description: Text | None = None
    schema_: dict[str, Any] = Field(alias="schema")
    strict: bool | None = None


class ResponseFormat(BaseModel):
    """What is written: any text, any JSON object, or what a JSON schema or a regular expression allows."""

    model_config = ConfigDict(extra="forbid", strict=True)

    type: Literal["text", "json_object", "json_schema", "regex"]
    json_schema: JsonSchema | None = None
    pattern: Annotated[str, Field(max_length=4000)] | None = None


class Sampled(Asked):
    """How texts are drawn. seed: none for one by chance. top_k, min_p: of regard, beside what others have.

    service_tier  there is one.
    """

    n: Annotated[int, Field(ge=1, le=MOST_CHOICES)] = 1
    stream: bool = False
    stream_options: StreamOptions | None = None
    temperature: Annotated[Real, Field(ge=0, le=100)] = 1.0
    top_p: Annotated[Real, Field(gt=0, le=1)] = 1.0
    top_k: Annotated[int, Field(ge=-1, lt=2**31)] | None = None
    min_p: Annotated[Real, Field(ge=0, le=1)] = 0.0
    seed: Annotated[int, Field(ge=-(2**63), lt=2**63)] | None = None
    stop: Stop | Annotated[list[Stop], Field(max_length=MOST_STOPS)] | None = None
    presence_penalty: Annotated[Real, Field(ge=-2, le=2)] = 0.0
    frequency_penalty: Annotated[Real, Field(ge=-2, le=2)] = 0.0
    logit_bias: Annotated[dict[TokenName, Bias], Field(max_length=1024)] | None = None
    response_format: ResponseFormat | None = None
    service_tier: Literal["auto", "default"] | None = None

    @property
    def stops(self) -> list[str]:
        return [] if self.stop is None else [self.stop] if isinstance(self.stop, str) else self.stop


class CompletionRequest(Sampled):
    """Texts that go on, or what is written from a source."""

    prompt: Prompt | Annotated[list[Prompt], Field(min_length=1, max_length=MOST_TEXTS)] = ""
    max_tokens: Annotated[int, Field(ge=0, lt=2**31)] | None = 16
    logprobs: Annotated[int, Field(ge=0, le=20)] | None = None
    echo: bool = False
    best_of: Annotated[int, Field(ge=1, le=MOST_CHOICES)] | None = None
    suffix: None = None

    @property
    def prompts(self) -> list[str | list[int]]:
        """Every prompt: one text, one list of tokens, or several of either."""
        given: Any = self.prompt
        if isinstance(given, str) or isinstance(given[0], int):
            return [given]
        return list(given)


class ContentPart(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    type: Literal["text"]
    text: Text


class ChatMessage(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    role: Literal["system", "developer", "user", "assistant"]
    content: Text | list[ContentPart]
    name: Name | None = None

    def plain(self) -> dict[str, str]:
        content = self.content if isinstance(self.content, str) else "".join(part.text for part in self.content)
        return {"role": "system" if self.role == "developer" else self.role, "content": content}


class ChatRequest(Sampled):
    """The next turn of a conversation, by a model with a template."""

    messages: Annotated[list[ChatMessage], Field(min_length=1, max_length=1024)]
    max_tokens: Annotated[int, Field(ge=1, lt=2**31)] | None = None
    max_completion_tokens: Annotated[int, Field(ge=1, lt=2**31)] | None = None
    logprobs: bool | None = None
    top_logprobs: Annotated[int, Field(ge=0, le=20)] | None = None
    store: Literal[False] | None = None


class EmbeddingRequest(Asked):
    """A vector for each text. pooling: of regard; unless told, the model's own, and else the mean."""

    input: Prompt | Annotated[list[Prompt], Field(min_length=1, max_length=2048)]
    encoding_format: Literal["float", "base64"] = "float"
    pooling: Literal["mean", "last", "first", "max"] | None = None

    @property
    def inputs(self) -> list[str | list[int]]:
        given: Any = self.input
        return [given] if isinstance(given, str) or isinstance(given[0], int) else list(given)


class PredictRequest(Asked):
    """Answers in the shape of the task: labels, tags, translations, forecasts, captions.

    input    texts, or one; of tags also lists of words; of a series tables, as objects of columns; of captions pictures
             in base64.
    options  of runs that write texts, such as beam.
    """

    input: Any
    options: Annotated[dict[str, Any], Field(max_length=16)] = {}

    @property
    def inputs(self) -> list[Any]:
        return self.input if isinstance(self.input, list) else [self.input]


class ScoreRequest(Asked):
    """How probable texts are, token by token. Of pairs: source, a tab, target."""

    input: Text | Annotated[list[Text], Field(min_length=1, max_length=MOST_TEXTS)]

    @property
    def inputs(self) -> list[str]:
        return [self.input] if isinstance(self.input, str) else self.input


class ExplainRequest(Asked):
    """A look inside. view: the one that tells most of such a model, unless named. format: json, or a page.

    input  a text; of a series a table, as an object of columns; of captions a picture in base64.
    """

    input: Text | dict[str, Any] = ""
    view: Name | None = None
    options: Annotated[dict[str, Any], Field(max_length=32)] = {}
    format: Literal["json", "html"] = "json"


# What others serve and regard does not, and why.
REFUSED = {
    "tools": "tools are not served: no model here was taught to call any",
    "tool_choice": "tools are not served: no model here was taught to call any",
    "functions": "functions are not served: no model here was taught to call any",
    "function_call": "functions are not served: no model here was taught to call any",
    "parallel_tool_calls": "tools are not served: no model here was taught to call any",
    "modalities": "texts alone are served",
    "audio": "texts alone are served",
    "verbosity": "no model here is told how long to be: say max_tokens",
    "reasoning_effort": "no model here is told how long to reason",
    "web_search_options": "nothing is looked up",
    "dimensions": "a vector has as many numbers as the model gives it",
    "suffix": "no model here fills in the middle of a text",
    "prediction": "drafts are not served",
}
