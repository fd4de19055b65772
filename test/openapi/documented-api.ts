/** Reads an OpenAPI document: makes its operations callable, and checks responses against its schemas. */
import assert from 'node:assert/strict';
import type { RequestListener } from 'node:http';
import request, { type Response, type Test } from 'supertest';
import { parse } from 'yaml';
import { createFaultFinder, type FindFaults, type Schema } from './schema-faults.ts';

export interface Parameter {
  readonly name: string;
  readonly in: 'path' | 'query' | 'header';
  readonly required?: boolean;
  /** The value with which forms are prefilled. */
  readonly example?: string;
  readonly schema: Schema;
}

interface DocumentedResponse {
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
  readonly responses: Readonly<Record<string, DocumentedResponse>>;
}

/** The differences between a call and the examples of the document. */
export interface Variation {
  readonly path?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, string>>;
  /** An undefined value removes the header. */
  readonly headers?: Readonly<Record<string, string | undefined>>;
  readonly body?: unknown;
  /** Sends no credentials. */
  readonly isAnonymous?: boolean;
}

export interface DocumentedApi {
  readonly operations: readonly Operation[];
  readonly findFaults: FindFaults;
  readonly call: (operation: Operation, variation?: Variation) => Test;
  /** Checks the status, headers and body of the response against the document, and returns the body. */
  readonly expect: (operation: Operation, status: number, variation?: Variation) => Promise<unknown>;
  readonly bodyOf: (operation: Operation) => { readonly schema: Schema; readonly example: object } | undefined;
}

/** Reads the document of an app, given as a handler or, for many calls, as the origin of a listening server. */
export async function readApi(handler: RequestListener | string, prefix: string): Promise<DocumentedApi> {
  const { body: document } = await request(handler).get(`${prefix}/openapi.json`).auth('demo', 'demo').expect(200);
  assert.equal(new URL(document.servers[0].url).pathname, prefix);
  const findFaults = createFaultFinder(document.components);
  const component = ({ $ref = '' }: { readonly $ref?: string }) =>
    $ref.split('/').reduce((found, step) => (step === '#' ? found : found[step]), document);
  const documentedResponse = ({ responses }: Operation, status: number): DocumentedResponse => {
    const documented = responses[status] ?? {};
    return documented.$ref === undefined ? documented : component(documented);
  };

  function bodyOf({ requestBody }: Operation) {
    const schema = requestBody?.content['application/json']?.schema;
    return schema && { schema, example: component(schema as { $ref?: string }).examples[0] };
  }

  let calls = 0;
  /** Returns the example with a different stay for each call, so that tests do not take each other's rooms. */
  function nextExample(operation: Operation): object | undefined {
    calls += 1;
    const shift = (_name: string, value: unknown) =>
      /^\d{4}-\d\d-\d\d/.test(String(value)) ? addWeeks(String(value), calls) : value;
    const example = bodyOf(operation)?.example;
    return example && JSON.parse(JSON.stringify(example), shift);
  }

  function call(
    operation: Operation,
    { path = {}, query = {}, headers = {}, body, isAnonymous }: Variation = {},
  ): Test {
    const { method, parameters } = operation;
    const filled = operation.path.replace(/\{(\w+)\}/g, (_, name) => path[name] ?? exampleOf(parameters, name));
    const test = request(handler)
      [method](prefix + filled)
      .query(query);
    if (isAnonymous !== true) test.auth('demo', 'demo');
    const required = parameters.filter((one) => one.in === 'header' && one.required === true);
    const own = Object.fromEntries(required.map(({ name }) => [name, exampleOf(parameters, name)]));
    for (const [name, value] of Object.entries({ ...own, ...headers })) if (value !== undefined) test.set(name, value);
    const sent = body ?? nextExample(operation);
    return sent === undefined ? test : test.send(sent as object);
  }

  async function expect(operation: Operation, status: number, variation?: Variation): Promise<unknown> {
    const response = await call(operation, variation);
    const name = `${operation.operationId} ${JSON.stringify(variation ?? {})}`;
    assert.equal(response.status, status, `${name}: ${response.text}`);
    assert.ok(operation.responses[status], `${name}: ${status} is not documented`);
    const { headers = {}, content } = documentedResponse(operation, status);
    assert.deepEqual(findHeaderFaults(headers, response, findFaults), [], name);
    if (content === undefined) return assert.equal(response.text, '', name);
    const type = String(response.headers['content-type']).replace(/;.*/, '');
    const schema = content[type]?.schema;
    assert.ok(schema, `${name}: ${type} is not documented`);
    const value = parseBody(type, response.text);
    assert.deepEqual(findFaults(schema, value), [], `${name}: ${response.text}`);
    return value;
  }

  return { operations: operationsOf(document.paths), findFaults, call, expect, bodyOf };
}

/** Does not parse JSON as YAML, which would take twenty times as long. */
function parseBody(type: string, text: string): unknown {
  if (type.startsWith('text/')) return text;
  return type.endsWith('json') ? JSON.parse(text) : parse(text);
}

function operationsOf(paths: Readonly<Record<string, Readonly<Record<string, object>>>>): Operation[] {
  return Object.entries(paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]) => ({ parameters: [], ...operation, method, path }) as never),
  );
}

/** Moves a date or time to a later week. */
function addWeeks(text: string, weeks: number): string {
  const later = new Date(Date.parse(text) + weeks * 7 * 86_400_000).toISOString();
  return text.includes('T') ? later : later.slice(0, 10);
}

function exampleOf(parameters: readonly Parameter[], name: string): string {
  const example = parameters.find((parameter) => parameter.name === name)?.example;
  assert.ok(example !== undefined, `the required parameter ${name} has no example`);
  return example;
}

function findHeaderFaults(
  headers: NonNullable<DocumentedResponse['headers']>,
  response: Response,
  findFaults: FindFaults,
): readonly string[] {
  return Object.entries(headers).flatMap(([name, { required, schema }]) => {
    const value = response.headers[name.toLowerCase()];
    if (value === undefined) return required === true ? [`${name} is missing`] : [];
    return findFaults(schema, schema['type'] === 'integer' ? Number(value) : value);
  });
}
