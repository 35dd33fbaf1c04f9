#!/usr/bin/env python3
"""A client that calls an LLM API like the official SDKs: one streaming request, two retries with its own backoff.

Prints the answer and exits with 0, or prints the error and exits with 1. ANTHROPIC_BASE_URL is the URL of the API,
SDK_CLIENT_TIMEOUT the read timeout in seconds (default 60).
"""

import http.client
import json
import os
import random
import sys
import time
import urllib.error
import urllib.request

MAX_RETRIES = 2
RETRIED = {408, 409, 429}
LONGEST_STATED_WAIT = 60


def request(timeout):
    body = {
        "model": "claude-sonnet-5",
        "max_tokens": 1000,
        "stream": True,
        "messages": [{"role": "user", "content": "Say hello"}],
    }
    url = os.environ["ANTHROPIC_BASE_URL"].rstrip("/") + "/v1/messages"
    headers = {
        "content-type": "application/json",
        "x-api-key": os.environ.get("ANTHROPIC_API_KEY", "made-up"),
        "anthropic-version": "2023-06-01",
        "x-stainless-read-timeout": str(timeout),
    }
    sent = urllib.request.Request(url, json.dumps(body).encode(), headers)
    return urllib.request.urlopen(sent, timeout=timeout)


def answer(response):
    """Returns the text of a stream; raises an error if it breaks. SDKs do not retry after a stream has started."""
    text = []
    for line in response:
        line = line.decode()
        if not line.startswith("data:"):
            continue
        event = json.loads(line[5:])
        if event["type"] == "content_block_delta":
            text.append(event["delta"].get("text", ""))
        elif event["type"] == "error":
            raise RuntimeError(f"error event: {event['error']}")
        elif event["type"] == "message_stop":
            return "".join(text)
    raise RuntimeError("the stream ended before message_stop")


def wait_before(retry, stated):
    if stated is not None and 0 < stated <= LONGEST_STATED_WAIT:
        return stated
    return min(0.5 * 2**retry, 8) * (1 - 0.25 * random.random())


def main():
    timeout = float(os.environ.get("SDK_CLIENT_TIMEOUT", "60"))
    for retry in range(MAX_RETRIES + 1):
        stated = None
        try:
            response = request(timeout)
        except urllib.error.HTTPError as error:
            problem = f"API Error: {error.code} {error.read().decode(errors='replace')}"
            if error.code not in RETRIED and error.code < 500:
                sys.exit(problem)
            try:
                stated = float(error.headers.get("retry-after") or "")
            except ValueError:
                pass
        except (OSError, http.client.HTTPException) as error:
            problem = f"API Error: Connection error: {error}"
        else:
            try:
                print(answer(response))
                return
            except (OSError, http.client.HTTPException, RuntimeError, ValueError) as error:
                sys.exit(f"API Error: the stream failed: {error}")
        if retry < MAX_RETRIES:
            time.sleep(wait_before(retry, stated))
    sys.exit(problem)


main()
