// Official SDKs for JavaScript and TypeScript, as a program uses them: told the base URL and nothing else. The same as client.py.
import { createInterface } from 'node:readline';
import AnthropicSdk from '@anthropic-ai/sdk';
import OpenAISdk from 'openai';
import { GoogleGenAI } from '@google/genai';

const TOOL = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] };
const QUESTION = 'How is the weather in Paris?';
const WEATHER = 'Rain until noon.';
const READ_BEFORE_LEAVING = 3;

class Anthropic {
  model = 'claude-sonnet-5';

  constructor(url, timeout) {
    this.client = new AnthropicSdk({ baseURL: url, apiKey: 'made-up', timeout });
  }

  request(messages, more = {}) {
    return { model: this.model, max_tokens: 1000, messages, ...more };
  }

  async plain(prompt, seen) {
    const answer = await this.client.messages.create(this.request([{ role: 'user', content: prompt }]));
    seen.text = answer.content[0].text;
    seen.tokens = [answer.usage.input_tokens, answer.usage.output_tokens];
  }

  async stream(prompt, seen, leave) {
    const stream = this.client.messages.stream(this.request([{ role: 'user', content: prompt }]));
    for await (const event of stream) {
      if (event.type !== 'content_block_delta') continue;
      if (piece(seen, event.delta.text) === leave) {
        stream.abort();
        return;
      }
    }
    const { usage } = await stream.finalMessage();
    seen.tokens = [usage.input_tokens, usage.output_tokens];
  }

  async tool(seen, streamed) {
    const tools = [{ name: 'weather', description: 'Tells the weather', input_schema: TOOL }];
    const messages = [{ role: 'user', content: QUESTION }];
    const request = this.request(messages, { tools });
    const first = streamed
      ? await this.client.messages.stream(request).finalMessage()
      : await this.client.messages.create(request);
    const call = first.content.find((block) => block.type === 'tool_use');
    seen.call = [call.name, call.input];
    messages.push({ role: 'assistant', content: first.content });
    messages.push({ role: 'user', content: [{ type: 'tool_result', tool_use_id: call.id, content: WEATHER }] });
    seen.text = (await this.client.messages.create(request)).content[0].text;
  }

  async side(seen) {
    const models = await all(this.client.models.list());
    const messages = [{ role: 'user', content: QUESTION }];
    const count = await this.client.messages.countTokens({ model: this.model, messages });
    seen.side = { models: models.length, count_tokens: count.input_tokens };
  }
}

class OpenAI {
  model = 'gpt-5.1';

  // This SDK tells the server of a limit only where it is set for the request.
  constructor(url, timeout) {
    this.client = new OpenAISdk({ baseURL: url, apiKey: 'made-up' });
    this.options = timeout ? { timeout } : {};
  }

  async side(seen) {
    const models = await all(this.client.models.list());
    const vectors = await this.client.embeddings.create({ model: 'text-embedding-3-small', input: ['one', 'two'] });
    seen.side = { models: models.length, embeddings: vectors.data.length };
  }
}

class Chat extends OpenAI {
  ask(messages, more = {}) {
    return this.client.chat.completions.create({ model: this.model, messages, ...more }, this.options);
  }

  async plain(prompt, seen) {
    const answer = await this.ask([{ role: 'user', content: prompt }]);
    seen.text = answer.choices[0].message.content;
    seen.tokens = [answer.usage.prompt_tokens, answer.usage.completion_tokens];
  }

  async stream(prompt, seen, leave) {
    const more = { stream: true, stream_options: { include_usage: true } };
    const stream = await this.ask([{ role: 'user', content: prompt }], more);
    for await (const { choices, usage } of stream) {
      const text = choices[0]?.delta.content;
      if (text && piece(seen, text) === leave) {
        stream.controller.abort();
        return;
      }
      if (usage) seen.tokens = [usage.prompt_tokens, usage.completion_tokens];
    }
  }

  async tool(seen, streamed) {
    const tools = [{ type: 'function', function: { name: 'weather', parameters: TOOL } }];
    const messages = [{ role: 'user', content: QUESTION }];
    const first = streamed
      ? await this.client.chat.completions.stream({ model: this.model, messages, tools }).finalChatCompletion()
      : await this.ask(messages, { tools });
    const { id, function: called } = first.choices[0].message.tool_calls[0];
    seen.call = [called.name, JSON.parse(called.arguments)];
    const sent = { id, type: 'function', function: { name: called.name, arguments: called.arguments } };
    messages.push({ role: 'assistant', tool_calls: [sent] });
    messages.push({ role: 'tool', tool_call_id: id, content: WEATHER });
    seen.text = (await this.ask(messages, { tools })).choices[0].message.content;
  }
}

class Responses extends OpenAI {
  ask(input, more = {}) {
    return this.client.responses.create({ model: this.model, input, ...more }, this.options);
  }

  async plain(prompt, seen) {
    const answer = await this.ask(prompt);
    seen.text = answer.output_text;
    seen.tokens = [answer.usage.input_tokens, answer.usage.output_tokens];
  }

  // A response that failed is an event of this API and no exception: a program has to look at it.
  async stream(prompt, seen, leave) {
    const stream = await this.ask(prompt, { stream: true });
    for await (const event of stream) {
      if (event.type === 'response.output_text.delta' && piece(seen, event.delta) === leave) {
        stream.controller.abort();
        return;
      }
      if (event.type === 'response.failed') {
        seen.error = 'response.failed';
        seen.message = event.response.error.message;
      }
      if (event.type === 'response.completed') {
        const { usage } = event.response;
        seen.tokens = [usage.input_tokens, usage.output_tokens];
      }
    }
  }

  async tool(seen, streamed) {
    const tools = [{ type: 'function', name: 'weather', parameters: TOOL, strict: false }];
    const input = [{ role: 'user', content: QUESTION }];
    const first = streamed
      ? await this.client.responses.stream({ model: this.model, input, tools }).finalResponse()
      : await this.ask(input, { tools });
    const call = first.output.find((item) => item.type === 'function_call');
    seen.call = [call.name, JSON.parse(call.arguments)];
    const { call_id, name, arguments: given } = call;
    input.push({ type: 'function_call', call_id, name, arguments: given });
    input.push({ type: 'function_call_output', call_id, output: WEATHER });
    seen.text = (await this.ask(input, { tools })).output_text;
  }
}

class Gemini {
  model = 'gemini-3-pro';

  constructor(url, timeout) {
    this.client = new GoogleGenAI({ apiKey: 'made-up', httpOptions: { baseUrl: url, timeout } });
  }

  async plain(prompt, seen) {
    const answer = await this.client.models.generateContent({ model: this.model, contents: prompt });
    seen.text = answer.text;
    const usage = answer.usageMetadata;
    seen.tokens = [usage.promptTokenCount, usage.candidatesTokenCount];
  }

  async stream(prompt, seen, leave) {
    const going = new AbortController();
    const config = { abortSignal: going.signal };
    const request = { model: this.model, contents: prompt, config };
    for await (const chunk of await this.client.models.generateContentStream(request)) {
      if (chunk.text && piece(seen, chunk.text) === leave) {
        going.abort();
        return;
      }
      const usage = chunk.usageMetadata;
      if (usage?.candidatesTokenCount) seen.tokens = [usage.promptTokenCount, usage.candidatesTokenCount];
    }
  }

  async tool(seen, streamed) {
    const tool = { name: 'weather', description: 'Tells the weather', parametersJsonSchema: TOOL };
    const contents = [{ role: 'user', parts: [{ text: QUESTION }] }];
    const request = { model: this.model, contents, config: { tools: [{ functionDeclarations: [tool] }] } };
    let call;
    if (streamed) {
      const chunks = await all(await this.client.models.generateContentStream(request));
      call = chunks.find((chunk) => chunk.functionCalls).functionCalls[0];
    } else {
      call = (await this.client.models.generateContent(request)).functionCalls[0];
    }
    const { name, args } = call;
    seen.call = [name, args];
    contents.push({ role: 'model', parts: [{ functionCall: { name, args } }] });
    contents.push({ role: 'user', parts: [{ functionResponse: { name, response: { result: WEATHER } } }] });
    seen.text = (await this.client.models.generateContent(request)).text;
  }

  async side(seen) {
    const models = await all(await this.client.models.list());
    const count = await this.client.models.countTokens({ model: this.model, contents: QUESTION });
    const request = { model: 'gemini-embedding-001', contents: ['one', 'two'] };
    const { embeddings } = await this.client.models.embedContent(request);
    seen.side = { models: models.length, count_tokens: count.totalTokens, embeddings: embeddings.length };
  }
}

const CLIENTS = { anthropic: Anthropic, chat: Chat, responses: Responses, gemini: Gemini };

/** Takes down a piece of a stream and tells how many there are. */
function piece(seen, text) {
  seen.text = (seen.text ?? '') + text;
  seen.pieces = (seen.pieces ?? 0) + 1;
  return seen.pieces;
}

async function all(things) {
  const list = [];
  for await (const thing of things) list.push(thing);
  return list;
}

async function fulfil(wish) {
  const seen = {};
  try {
    const client = new CLIENTS[wish.client](wish.url, wish.patience * 1000 || undefined);
    switch (wish.what) {
      case 'plain':
        await client.plain('Run the tests' + ' and'.repeat(wish.bytes / 4), seen);
        break;
      case 'stream':
        await client.stream('Run the tests', seen, 0);
        break;
      case 'cancel':
        await client.stream('Run the tests', seen, READ_BEFORE_LEAVING);
        break;
      case 'tool':
        await client.tool(seen, false);
        break;
      case 'streamed tool':
        await client.tool(seen, true);
        break;
      case 'side':
        await client.side(seen);
        break;
    }
  } catch (error) {
    seen.error = error.constructor.name;
    seen.status = error.status ?? null;
    seen.message = String(error.message).slice(0, 300);
  }
  return seen;
}

for await (const line of createInterface({ input: process.stdin })) {
  console.log(JSON.stringify(await fulfil(JSON.parse(line))));
}
