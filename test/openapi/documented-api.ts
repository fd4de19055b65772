/** An API as its document describes it: its operations as calls, and its schemas as checks of the responses. */
import assert from 'node:assert/strict';
import type { RequestListener } from 'node:http';
import request, { type Response, type Test } from 'supertest';
import { parse } from 'yaml';
import { createJudge, type Judge, type Schema } from './judge.ts';

export interface Parameter {
  readonly name: string;
  readonly in: 'path' | 'query' | 'header';
  readonly required?: boolean;
  /** What a form has before anything is written. */
  readonly example?: string;
  readonly schema: Schema;
}

interface Answer {
  readonly $ref?: string;
  readonly headers?: Readonly<Record<string, { readonly required?: boolean; readonly schema: Schema }>>;
  readonly content?: Readonly<Record<string, { readonly schema: Schema }>>;
}

export interface Operation {
  readonly method: 'get' | 'post' | 'patch';
  readonly path: string;
  readonly operationId: string;
  readonly parameters: readonly Parameter[];
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema: Schema }>> };
  readonly responses: Readonly<Record<string, Answer>>;
}

/** How a call differs from the examples of the document. */
export interface Variation {
  readonly path?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, string>>;
  /** Undefined: without the header. */
  readonly headers?: Readonly<Record<string, string | undefined>>;
  readonly body?: unknown;
  readonly isStranger?: boolean;
}

export interface DocumentedApi {
  readonly operations: readonly Operation[];
  readonly judge: Judge;
  readonly call: (operation: Operation, variation?: Variation) => Test;
  /** Checks the status and everything that the document says of the response, and returns the body. */
  readonly expect: (operation: Operation, status: number, variation?: Variation) => Promise<unknown>;
  readonly bodyOf: (operation: Operation) => { readonly schema: Schema; readonly example: object } | undefined;
}

/** `handler`: an app, or the origin of one that listens, for many calls. */
export async function readApi(handler: RequestListener | string, prefix: string): Promise<DocumentedApi> {
  const { body: document } = await request(handler).get(`${prefix}/openapi.json`).auth('demo', 'demo').expect(200);
  assert.equal(new URL(document.servers[0].url).pathname, prefix);
  const judge = createJudge(document.components);
  const component = ({ $ref = '' }: { readonly $ref?: string }) =>
    $ref.split('/').reduce((found, step) => (step === '#' ? found : found[step]), document);
  const answerOf = ({ responses }: Operation, status: number): Answer => {
    const answer = responses[status] ?? {};
    return answer.$ref === undefined ? answer : component(answer);
  };

  function bodyOf({ requestBody }: Operation) {
    const schema = requestBody?.content['application/json']?.schema;
    return schema && { schema, example: component(schema as { $ref?: string }).examples[0] };
  }

  /** Books another stay for each call, so that no test takes the rooms of another. */
  let calls = 0;
  function nextExample(operation: Operation): object | undefined {
    calls += 1;
    const move = (_name: string, value: unknown) =>
      /^\d{4}-\d\d-\d\d/.test(String(value)) ? moved(String(value), calls) : value;
    const example = bodyOf(operation)?.example;
    return example && JSON.parse(JSON.stringify(example), move);
  }

  function call(operation: Operation, { path = {}, query = {}, headers = {}, body, isStranger }: Variation = {}): Test {
    const { method, parameters } = operation;
    const filled = operation.path.replace(/\{(\w+)\}/g, (_, name) => path[name] ?? exampleOf(parameters, name));
    const test = request(handler)
      [method](prefix + filled)
      .query(query);
    if (isStranger !== true) test.auth('demo', 'demo');
    const required = parameters.filter((one) => one.in === 'header' && one.required === true);
    const own = Object.fromEntries(required.map(({ name }) => [name, exampleOf(parameters, name)]));
    for (const [name, value] of Object.entries({ ...own, ...headers })) if (value !== undefined) test.set(name, value);
    const sent = body ?? nextExample(operation);
    return sent === undefined ? test : test.send(sent as object);
  }

  async function expect(operation: Operation, status: number, variation?: Variation): Promise<unknown> {
    const answer = await call(operation, variation);
    const name = `${operation.operationId} ${JSON.stringify(variation ?? {})}`;
    assert.equal(answer.status, status, `${name}: ${answer.text}`);
    assert.ok(operation.responses[status], `${name}: ${status} is not documented`);
    const { headers = {}, content } = answerOf(operation, status);
    assert.deepEqual(faultsOfHeaders(headers, answer, judge), [], name);
    if (content === undefined) return assert.equal(answer.text, '', name);
    const type = String(answer.headers['content-type']).replace(/;.*/, '');
    const schema = content[type]?.schema;
    assert.ok(schema, `${name}: ${type} is not documented`);
    const value = readText(type, answer.text);
    assert.deepEqual(judge(schema, value), [], `${name}: ${answer.text}`);
    return value;
  }

  return { operations: operationsOf(document.paths), judge, call, expect, bodyOf };
}

/** The reader of YAML takes twenty times as long for JSON as that of JSON. */
function readText(type: string, text: string): unknown {
  if (type.startsWith('text/')) return text;
  return type.endsWith('json') ? JSON.parse(text) : parse(text);
}

function operationsOf(paths: Readonly<Record<string, Readonly<Record<string, object>>>>): Operation[] {
  return Object.entries(paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]) => ({ parameters: [], ...operation, method, path }) as never),
  );
}

/** A date or a time, so many weeks later. */
function moved(text: string, weeks: number): string {
  const later = new Date(Date.parse(text) + weeks * 7 * 86_400_000).toISOString();
  return text.includes('T') ? later : later.slice(0, 10);
}

function exampleOf(parameters: readonly Parameter[], name: string): string {
  const example = parameters.find((parameter) => parameter.name === name)?.example;
  assert.ok(example !== undefined, `${name} has no example to call with`);
  return example;
}

function faultsOfHeaders(headers: NonNullable<Answer['headers']>, answer: Response, judge: Judge): readonly string[] {
  return Object.entries(headers).flatMap(([name, { required, schema }]) => {
    const value = answer.headers[name.toLowerCase()];
    if (value === undefined) return required === true ? [`${name} is missing`] : [];
    return judge(schema, schema['type'] === 'integer' ? Number(value) : value);
  });
}
