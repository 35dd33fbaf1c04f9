"""What is tried with every SDK: how the API behaves, what the program wants, and what must be seen on all three sides."""

from dataclasses import dataclass, field

TEXT = "The wind turns to the north, then it rains until ten, and the evening stays dry."
INPUT = {"city": "Paris"}
MEGABYTES = 2 << 20
# Retries of the gateway where nothing helps, so a ladder has one request more.
RETRIES = 2
ALONE = "as many as alone"

ANSWER = f'[[step]]\nanswer = {{ text = "{TEXT}" }}\ntimes = "always"\n'
PIECES = "[pace]\nchunks = 10\n"
SLOWLY = '[pace]\nchunks = 80\nbetween = "100ms"\n'
CALL = '[[step]]\ntool_call = { name = "weather", input = { city = "Paris" } }\n'
KEEP_ALIVE = '[gateway.timeouts]\nkeep_alive = "500ms"\n'


@dataclass
class Case:
    name: str
    script: str
    what: str
    # Requests that reach the API. None: as many as the SDK needs. ALONE: as many as the SDK sends without the gateway.
    requests: int | str | None
    # How the gateway's records say each call ended: one entry for each request of the SDK; for ALONE the one of each.
    calls: list[str]
    text: str | None = None
    tokens: bool = False
    pieces: int = 0
    call: bool = False
    # The class of the error by client; a short text is what an SDK shows where the class is another one in each language.
    error: dict | None = None
    bytes: int = 0
    # How long the program waits for an answer, in seconds; as long as the SDK says if 0.
    patience: int = 0
    abandoned: int = 0
    config: str = ""
    more: list[str] = field(default_factory=list)


def step(reply, times=1):
    return f"[[step]]\n{reply}\ntimes = {times!r}\n".replace("'", '"')


def fails_early():
    """An error after the frames that only open a stream; the first one of Gemini has text already."""
    opening = {"anthropic": 1, "chat": 1, "responses": 1, "gemini": 0}
    steps = [
        f'when = {{ protocol = "{protocol}" }}\nerror_at = {{ after = {frames}, error = "overloaded" }}'
        for protocol, frames in opening.items()
    ]
    return "".join(map(step, steps))


def errors(anthropic, openai, python, javascript="ApiError"):
    return {"anthropic": anthropic, "chat": openai, "responses": openai, "gemini": {"py": python, "js": javascript}}


ANY = {"anthropic": "", "chat": "", "responses": "", "gemini": ""}


def cut(by):
    script = PIECES + step(f'cut_at = {{ after = 8, by = "{by}" }}', "always")
    return Case(f"cut by {by}", script, "stream", 1, ["truncated"], error=ANY)


def refused(name, reply, error):
    return Case(name, step(f"{reply} = {{}}", "always"), "plain", 1, ["failed"], error=error)


CASES = [
    Case("plain", ANSWER, "plain", 1, ["answered"], text=TEXT, tokens=True),
    Case("stream", PIECES + ANSWER, "stream", 1, ["answered"], text=TEXT, tokens=True, pieces=10),
    Case("tool", CALL + ANSWER, "tool", 2, ["answered"] * 2, text=TEXT, call=True),
    Case("streamed tool", CALL + ANSWER, "streamed tool", 2, ["answered"] * 2, text=TEXT, call=True),
    Case("2 MB prompt", ANSWER, "plain", 1, ["answered"], text=TEXT, tokens=True, bytes=MEGABYTES),
    Case("cancel", SLOWLY + ANSWER, "cancel", 1, ["cancelled"], pieces=3, abandoned=1),
    Case("side questions", "", "side", None, []),
    Case("429, then good", step("rate_limit = { retry_after = 1 }") + ANSWER, "plain", 2, ["recovered"], text=TEXT),
    Case(
        "stream fails early",
        PIECES + fails_early() + ANSWER,
        "stream", 2, ["recovered"], text=TEXT, tokens=True, pieces=10,
    ),
    Case(
        "stream held 3 s",
        PIECES + step("rate_limit = { retry_after = 3 }") + ANSWER,
        "stream", 2, ["recovered"], text=TEXT, tokens=True, pieces=10, config=KEEP_ALIVE,
    ),
    Case(
        "held, then failed",
        PIECES + step("rate_limit = { retry_after = 2 }", "always"),
        "stream", RETRIES + 1, ["failed"], error=ANY, config=KEEP_ALIVE, more=["--retries", str(RETRIES)],
    ),
    Case(
        "500 forever",
        step("server_error = {}", "always"),
        "plain", RETRIES + 1, ["failed"], more=["--retries", str(RETRIES)],
        error=errors("InternalServerError", "InternalServerError", "ServerError"),
    ),
    # A client that goes away before the wait is over is told to come back, and does what it does without the gateway.
    Case(
        "429 for 8 s, waits 3",
        step("rate_limit = { retry_after = 8 }", "always"),
        "plain", ALONE, ["failed"], patience=3, error=errors("RateLimitError", "RateLimitError", "ClientError"),
    ),
    cut("end"),
    cut("close"),
    cut("reset"),
    refused("quota", "quota", errors("BadRequestError", "RateLimitError", "ClientError")),
    refused("auth", "auth", errors("AuthenticationError", "AuthenticationError", "ClientError")),
    refused("context limit", "context_limit", errors("BadRequestError", "BadRequestError", "ClientError")),
]


def expected_error(case, client, language):
    if case.error is None:
        return None
    error = case.error[client]
    return error[language] if isinstance(error, dict) else error


def problems(case, client, language, seen, world):
    """What is not as it must be. `world` is what the API and the gateway counted."""
    found = []
    requests, calls = case.requests, case.calls
    if requests == ALONE:
        requests, calls = world["alone"], case.calls * world["alone"]

    def must(name, is_, shall):
        if is_ != shall:
            found.append(f"{name}: {is_!r} instead of {shall!r}")

    error = expected_error(case, client, language)
    if error is None:
        must("error", seen.get("error"), None)
    elif "error" not in seen:
        found.append(f"no error, but {seen.get('text')!r}")
    elif error:
        must("error", seen["error"], error)
    if case.text is not None:
        must("text", seen.get("text"), case.text)
    if case.pieces:
        must("pieces", seen.get("pieces"), case.pieces)
    if case.tokens:
        least = case.bytes // 4 or 1
        tokens = seen.get("tokens") or [0, 0]
        if tokens[0] < least or tokens[1] < 1:
            found.append(f"tokens: {tokens} instead of at least [{least}, 1]")
    if case.call:
        must("tool call", seen.get("call"), ["weather", INPUT])
    if case.what == "side":
        counts = seen.get("side") or {"side": 0}
        found += [f"{name}: nothing" for name, count in counts.items() if not count]
    if case.what == "stream" and error is not None and len(seen.get("text", "")) >= len(TEXT):
        found.append("the whole text of an interrupted stream")
    if requests is not None:
        must("requests at the API", world["requests"], requests)
    if case.what != "side":
        must("recorded calls", world["calls"], calls)
    if world["bodies"] > max(1, len(calls)) and case.what != "side":
        found.append(f"{world['bodies']} different requests for {len(calls)} calls")
    must("abandoned by the client", world["abandoned"], case.abandoned)
    return found
