/** Calls every operation of every document and checks the responses against the document. */
import assert from 'node:assert/strict';
import { desksOf } from '../support/desks.ts';
import { testServers } from '../support/serve.ts';
import { type DocumentedApi, type Operation, type Parameter, readApi, type Variation } from './documented-api.ts';
import { documentPrefixes } from './written-documents.ts';

/** A demo car that exists only once. This test books it. */
const lastCar = '47378190-96da-4dac-b2ff-5d2a386ecbe0';

/** Requests that fail in the booking services, by status. */
const failuresOfBookings: Readonly<Record<number, readonly Variation[]>> = {
  401: [{ isAnonymous: true }],
  413: [{ body: { padding: 'x'.repeat(1024 * 1024) } }],
  415: [{ headers: { 'Content-Type': 'application/xml' }, body: '<booking/>' }],
  428: [{ headers: { 'If-Match': undefined } }],
};

/** Returns texts that do not match the schema of an argument. */
function invalidTexts(schema: Parameter['schema']): readonly string[] {
  const { maxLength } = schema as { maxLength?: number };
  const isPlainText = schema['type'] === 'string' && !('enum' in schema || 'format' in schema);
  return ['', ...(isPlainText ? [] : ['~']), ...(maxLength === undefined ? [] : ['x'.repeat(maxLength + 1)])];
}

describe('every documented operation', () => {
  const servers = testServers(after);
  const openDesk = desksOf(servers);
  let apis: ReadonlyMap<string, DocumentedApi>;

  before(async () => {
    const { app } = await openDesk({ publicUrl: 'http://desk.test' });
    const { origin } = await servers.http(app.callback());
    const read = documentPrefixes.map(async (prefix) => [prefix, await readApi(origin, prefix)] as const);
    apis = new Map(await Promise.all(read));
  });

  for (const prefix of documentPrefixes) {
    describe(`of ${prefix}`, () => {
      /** Visits the operations that pass the filter. Fails if there are none. */
      async function each(
        isChosen: (operation: Operation) => boolean,
        visit: (api: DocumentedApi, operation: Operation) => Promise<unknown>,
      ): Promise<void> {
        const api = apis.get(prefix) as DocumentedApi;
        const chosen = api.operations.filter(isChosen);
        assert.ok(chosen.length > 0, 'no operation is chosen');
        for (const operation of chosen) await visit(api, operation);
      }
      const every = () => true;
      const documents = (status: number) => (operation: Operation) => status in operation.responses;
      const isSignedIn = prefix.length > '/v1'.length;

      it('succeeds with the examples of the document', async () => {
        await each(every, (api, operation) => api.expect(operation, successOf(operation)));
      });

      it('has examples that match its own schemas', async () => {
        await each(every, async ({ findFaults, bodyOf }, operation) => {
          const examples = operation.parameters.flatMap(({ schema, example: first }) =>
            [first ?? [], (schema['examples'] ?? []) as unknown[]].flat().map((example) => ({ schema, example })),
          );
          const body = bodyOf(operation);
          const faults = [...examples, ...(body ? [body] : [])].flatMap(({ schema, example }) =>
            findFaults(schema, example),
          );
          assert.deepEqual(faults, [], operation.operationId);
        });
      });

      it('responds in each documented representation', async () => {
        await each(every, async ({ expect, call }, operation) => {
          const types = Object.keys(operation.responses[successOf(operation)]?.content ?? {});
          assert.deepEqual(types, ['application/json', 'application/yaml']);
          for (const type of types) {
            const { headers } = await call(operation, { headers: { Accept: type } });
            assert.equal(String(headers['content-type']).replace(/;.*/, ''), type);
            await expect(operation, successOf(operation), { headers: { Accept: type } });
          }
        });
      });

      it('responds in HTML to people, although the document describes only what programs read', async () => {
        await each(every, async ({ call }, operation) => {
          const { status, type } = await call(operation, { headers: { Accept: 'text/html' } });
          assert.deepEqual([status, type], [successOf(operation), 'text/html']);
        });
      });

      it('accepts every documented argument, and returns the requested fields', async () => {
        await each(every, async ({ call, expect }, operation) => {
          const { items: [first = {}] = [] } = (await call(operation)).body;
          const query = argumentsOf(operation, first);
          await expect(operation, successOf(operation), { query });
          if ('limit' in query) await expect(operation, 200, { query: { after: 'start', limit: '1' } });
          const fields = operation.parameters.find(({ name }) => name === 'fields');
          const { body } = await call(operation, { query: { fields: textFor(fields) } });
          const [item] = body.items ?? [body];
          if (item !== undefined) assert.deepEqual(Object.keys(item), [textFor(fields)]);
        });
      });

      it('rejects an argument that does not match its schema', async () => {
        await each(every, async ({ expect }, operation) => {
          for (const { name, schema } of operation.parameters.filter((one) => one.in === 'query')) {
            for (const value of invalidTexts(schema)) await expect(operation, 400, { query: { [name]: value } });
          }
        });
      });

      it('responds 304 to its own entity tag', async () => {
        await each(documents(304), async ({ call, expect }, operation) => {
          const { headers } = await call(operation);
          await expect(operation, 304, { headers: { 'If-None-Match': String(headers['etag']) } });
        });
      });

      const failures: Readonly<Record<number, readonly Variation[]>> = {
        400: [
          { query: { nonsense: '1' } },
          { query: { nonsense: '1' }, headers: { Accept: 'application/json, application/problem+json' } },
        ],
        404: [{ path: { id: '3f1c9a52-0000-4000-8000-000000000000' } }],
        406: [{ headers: { Accept: 'image/png' } }],
        412: [{ headers: { 'If-Match': '"0-json"' }, body: { status: 'confirmed' } }],
        ...(isSignedIn && failuresOfBookings),
      };
      /** Statuses that are tested below, or that occur only when a part of the server fails. */
      const others = [409, 422, 429, 503];

      it('documents only errors that are tested', async () => {
        const tested = [...Object.keys(failures).map(Number), ...others];
        await each(every, async (_api, { responses }) => {
          const statuses = Object.keys(responses).filter((status) => Number(status) >= 400);
          assert.deepEqual(
            statuses.filter((status) => !tested.includes(Number(status))),
            [],
          );
        });
      });

      for (const [status, variations] of Object.entries(failures)) {
        it(`responds ${status} as documented`, async () => {
          await each(documents(Number(status)), async ({ expect }, operation) => {
            for (const variation of variations) await expect(operation, Number(status), variation);
          });
        });
      }

      if (!isSignedIn) return;

      it('rejects a body that does not match its schema', async () => {
        await each(documents(415), async ({ expect, bodyOf }, operation) => {
          const example = bodyOf(operation)?.example ?? {};
          for (const body of [{}, { ...example, nonsense: 1 }]) await expect(operation, 400, { body });
        });
      });

      it('replays the response for an idempotency key, and rejects another request with it', async () => {
        await each(documents(422), async ({ expect, bodyOf }, operation) => {
          const headers = { 'Idempotency-Key': `walk-${operation.operationId}` };
          const body = bodyOf(operation)?.example;
          const first = await expect(operation, successOf(operation), { headers, body });
          assert.deepEqual(await expect(operation, successOf(operation), { headers, body }), first);
          const other = operation.method === 'patch' ? { status: 'confirmed' } : { ...body, hold: true };
          await expect(operation, 422, { headers, body: other });
        });
      });

      it('responds 409 when the current state does not allow a change', async () => {
        await each(documents(409), async ({ expect, bodyOf }, operation) => {
          if (operation.method === 'patch') {
            await expect(operation, 409, { body: { status: 'confirmed' } });
            return;
          }
          const alternative = prefix.endsWith('hotels')
            ? { hotel_id: '972a8469-1641-4f82-8b9d-2434e465e150', room_type: 'suite' }
            : { car_id: lastCar };
          const body = { ...bodyOf(operation)?.example, ...alternative };
          await expect(operation, 201, { body });
          const { alternatives } = (await expect(operation, 409, { body })) as { alternatives: unknown[] };
          assert.ok(alternatives.length > 0);
        });
      });
    });
  }

  it('responds 429 with Retry-After when a limit is exhausted', async () => {
    const { operations, expect } = apis.get('/v1/hotels') as DocumentedApi;
    const list = operations.find(({ operationId }) => operationId === 'listHotels') as Operation;
    const headers = { 'x-gateway-test-allow': 'walk' };
    for (let count = 0; count < 10; count += 1) await expect(list, 200, { headers });
    await expect(list, 429, { headers });
  });
});

function successOf({ responses }: Operation): number {
  return Number(Object.keys(responses).find((status) => status.startsWith('2')));
}

/** Returns all arguments that can be combined. Filters have the values of the item. */
function argumentsOf({ parameters }: Operation, item: object): Record<string, string> {
  const combinable = parameters.filter((one) => one.in === 'query' && !['after', 'fields'].includes(one.name));
  return Object.fromEntries(
    combinable.map((parameter) => [parameter.name, String(Reflect.get(item, parameter.name) ?? textFor(parameter))]),
  );
}

/** The start and end of the stays in the examples. */
const ends: Readonly<Record<string, string>> = {
  check_in: '2030-06-03',
  check_out: '2030-06-06',
  pickup_at: '2030-06-03T10:00:00Z',
  dropoff_at: '2030-06-06T10:00:00Z',
};

const byFormat: Readonly<Record<string, string>> = {
  date: '2030-06-03',
  'date-time': '2030-06-03T10:00:00Z',
  int32: '1',
};

function textFor(parameter: Parameter | undefined): string {
  assert.ok(parameter);
  const { name, schema } = parameter;
  const items = schema['items'] as { readonly enum: readonly string[] } | undefined;
  const [value] = [
    (schema['examples'] as unknown[] | undefined)?.[0],
    ends[name],
    schema['default'] ?? schema['minimum'],
    (schema['enum'] as unknown[] | undefined)?.[0],
    items?.enum[0],
    byFormat[String(schema['format'])],
    'x',
  ].filter((one) => one !== undefined);
  return String(value);
}
