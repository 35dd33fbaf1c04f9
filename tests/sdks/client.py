"""Official Python SDKs, as a program uses them: told the base URL and nothing else. Wishes come in as lines of JSON, what the
SDK showed goes out as lines of JSON. `tests/sdks.sh` says what is wished for and what must be seen."""

import json
import sys

TOOL = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
QUESTION = "How is the weather in Paris?"
WEATHER = "Rain until noon."
READ_BEFORE_LEAVING = 3


class Anthropic:
    model = "claude-sonnet-5"

    def __init__(self, url, patience):
        import anthropic

        more = {"timeout": patience} if patience else {}
        self.client = anthropic.Anthropic(base_url=url, api_key="made-up", **more)

    def ask(self, messages, **more):
        return self.client.messages.create(model=self.model, max_tokens=1000, messages=messages, **more)

    def plain(self, prompt, seen):
        answer = self.ask([{"role": "user", "content": prompt}])
        seen["text"] = answer.content[0].text
        seen["tokens"] = [answer.usage.input_tokens, answer.usage.output_tokens]

    def stream(self, prompt, seen, leave):
        with self.client.messages.stream(
            model=self.model, max_tokens=1000, messages=[{"role": "user", "content": prompt}]
        ) as stream:
            for text in stream.text_stream:
                if piece(seen, text) == leave:
                    return
            usage = stream.get_final_message().usage
            seen["tokens"] = [usage.input_tokens, usage.output_tokens]

    def tool(self, seen, streamed):
        tools = [{"name": "weather", "description": "Tells the weather", "input_schema": TOOL}]
        messages = [{"role": "user", "content": QUESTION}]
        if streamed:
            with self.client.messages.stream(
                model=self.model, max_tokens=1000, messages=messages, tools=tools
            ) as stream:
                first = stream.get_final_message()
        else:
            first = self.ask(messages, tools=tools)
        call = next(block for block in first.content if block.type == "tool_use")
        seen["call"] = [call.name, call.input]
        result = {"type": "tool_result", "tool_use_id": call.id, "content": WEATHER}
        messages += [{"role": "assistant", "content": first.content}, {"role": "user", "content": [result]}]
        seen["text"] = self.ask(messages, tools=tools).content[0].text

    def side(self, seen):
        models = [model.id for model in self.client.models.list()]
        count = self.client.messages.count_tokens(
            model=self.model, messages=[{"role": "user", "content": QUESTION}]
        )
        seen["side"] = {"models": len(models), "count_tokens": count.input_tokens}


class OpenAI:
    model = "gpt-5.1"

    def __init__(self, url, patience):
        import openai

        more = {"timeout": patience} if patience else {}
        self.client = openai.OpenAI(base_url=url, api_key="made-up", **more)

    def side(self, seen):
        models = [model.id for model in self.client.models.list()]
        vectors = self.client.embeddings.create(model="text-embedding-3-small", input=["one", "two"]).data
        seen["side"] = {"models": len(models), "embeddings": len(vectors)}


class Chat(OpenAI):
    def ask(self, messages, **more):
        return self.client.chat.completions.create(model=self.model, messages=messages, **more)

    def plain(self, prompt, seen):
        answer = self.ask([{"role": "user", "content": prompt}])
        seen["text"] = answer.choices[0].message.content
        seen["tokens"] = [answer.usage.prompt_tokens, answer.usage.completion_tokens]

    def stream(self, prompt, seen, leave):
        messages = [{"role": "user", "content": prompt}]
        with self.ask(messages, stream=True, stream_options={"include_usage": True}) as stream:
            for chunk in stream:
                text = chunk.choices[0].delta.content if chunk.choices else None
                if text and piece(seen, text) == leave:
                    return
                if chunk.usage:
                    seen["tokens"] = [chunk.usage.prompt_tokens, chunk.usage.completion_tokens]

    def tool(self, seen, streamed):
        tools = [{"type": "function", "function": {"name": "weather", "parameters": TOOL}}]
        messages = [{"role": "user", "content": QUESTION}]
        if streamed:
            with self.client.chat.completions.stream(model=self.model, messages=messages, tools=tools) as stream:
                first = stream.get_final_completion().choices[0].message
        else:
            first = self.ask(messages, tools=tools).choices[0].message
        call = first.tool_calls[0]
        seen["call"] = [call.function.name, json.loads(call.function.arguments)]
        sent = {"id": call.id, "type": "function"}
        sent["function"] = {"name": call.function.name, "arguments": call.function.arguments}
        messages.append({"role": "assistant", "tool_calls": [sent]})
        messages.append({"role": "tool", "tool_call_id": call.id, "content": WEATHER})
        seen["text"] = self.ask(messages, tools=tools).choices[0].message.content


class Responses(OpenAI):
    def ask(self, given, **more):
        return self.client.responses.create(model=self.model, input=given, **more)

    def plain(self, prompt, seen):
        answer = self.ask(prompt)
        seen["text"] = answer.output_text
        seen["tokens"] = [answer.usage.input_tokens, answer.usage.output_tokens]

    def stream(self, prompt, seen, leave):
        # A response that failed is an event of this API and no exception; only the final response raises one.
        with self.client.responses.stream(model=self.model, input=prompt) as stream:
            for event in stream:
                if event.type == "response.output_text.delta" and piece(seen, event.delta) == leave:
                    return
            usage = stream.get_final_response().usage
            seen["tokens"] = [usage.input_tokens, usage.output_tokens]

    def tool(self, seen, streamed):
        tools = [{"type": "function", "name": "weather", "parameters": TOOL, "strict": False}]
        given = [{"role": "user", "content": QUESTION}]
        if streamed:
            with self.client.responses.stream(model=self.model, input=given, tools=tools) as stream:
                first = stream.get_final_response()
        else:
            first = self.ask(given, tools=tools)
        call = next(item for item in first.output if item.type == "function_call")
        seen["call"] = [call.name, json.loads(call.arguments)]
        sent = {"type": "function_call", "call_id": call.call_id, "name": call.name, "arguments": call.arguments}
        result = {"type": "function_call_output", "call_id": call.call_id, "output": WEATHER}
        seen["text"] = self.ask([*given, sent, result], tools=tools).output_text


class Gemini:
    model = "gemini-3-pro"

    def __init__(self, url, patience):
        from google import genai

        more = {"timeout": patience * 1000} if patience else {}
        self.client = genai.Client(api_key="made-up", http_options={"base_url": url, **more})

    def plain(self, prompt, seen):
        answer = self.client.models.generate_content(model=self.model, contents=prompt)
        seen["text"] = answer.text
        usage = answer.usage_metadata
        seen["tokens"] = [usage.prompt_token_count, usage.candidates_token_count]

    def stream(self, prompt, seen, leave):
        stream = self.client.models.generate_content_stream(model=self.model, contents=prompt)
        for chunk in stream:
            if chunk.text and piece(seen, chunk.text) == leave:
                stream.close()
                return
            usage = chunk.usage_metadata
            if usage and usage.candidates_token_count:
                seen["tokens"] = [usage.prompt_token_count, usage.candidates_token_count]

    def tool(self, seen, streamed):
        tool = {"name": "weather", "description": "Tells the weather", "parameters_json_schema": TOOL}
        more = {"model": self.model, "config": {"tools": [{"function_declarations": [tool]}]}}
        contents = [{"role": "user", "parts": [{"text": QUESTION}]}]
        if streamed:
            chunks = list(self.client.models.generate_content_stream(contents=contents, **more))
            call = next(chunk.function_calls[0] for chunk in chunks if chunk.function_calls)
        else:
            call = self.client.models.generate_content(contents=contents, **more).function_calls[0]
        seen["call"] = [call.name, call.args]
        contents.append({"role": "model", "parts": [{"function_call": {"name": call.name, "args": call.args}}]})
        result = {"name": call.name, "response": {"result": WEATHER}}
        contents.append({"role": "user", "parts": [{"function_response": result}]})
        seen["text"] = self.client.models.generate_content(contents=contents, **more).text

    def side(self, seen):
        models = list(self.client.models.list())
        count = self.client.models.count_tokens(model=self.model, contents=QUESTION)
        vectors = self.client.models.embed_content(model="gemini-embedding-001", contents=["one", "two"]).embeddings
        seen["side"] = {"models": len(models), "count_tokens": count.total_tokens, "embeddings": len(vectors)}


CLIENTS = {"anthropic": Anthropic, "chat": Chat, "responses": Responses, "gemini": Gemini}


def piece(seen, text):
    """Takes down a piece of a stream and tells how many there are."""
    seen["text"] = seen.get("text", "") + text
    seen["pieces"] = seen.get("pieces", 0) + 1
    return seen["pieces"]


def fulfil(wish):
    seen = {}
    try:
        client = CLIENTS[wish["client"]](wish["url"], wish["patience"])
        match wish["what"]:
            case "plain":
                client.plain("Run the tests" + " and" * (wish["bytes"] // 4), seen)
            case "stream":
                client.stream("Run the tests", seen, leave=0)
            case "cancel":
                client.stream("Run the tests", seen, leave=READ_BEFORE_LEAVING)
            case "tool":
                client.tool(seen, streamed=False)
            case "streamed tool":
                client.tool(seen, streamed=True)
            case "side":
                client.side(seen)
    except Exception as error:
        seen["error"] = type(error).__name__
        seen["status"] = getattr(error, "status_code", None) or getattr(error, "code", None)
        seen["message"] = str(error)[:300]
    return seen


for line in sys.stdin:
    print(json.dumps(fulfil(json.loads(line))), flush=True)
