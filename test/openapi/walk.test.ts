/** Calls every operation of every document and compares the answer with the document. */
import assert from 'node:assert/strict';
import { desksOf } from '../support/desks.ts';
import { testServers } from '../support/serve.ts';
import { type DocumentedApi, type Operation, type Parameter, readApi, type Variation } from './documented-api.ts';

const prefixes = ['/v1', '/v2', '/v1/hotels', '/v1/cars'];

/** A demo car of which there is one, which this test books. */
const lastCar = '47378190-96da-4dac-b2ff-5d2a386ecbe0';

/** Refusals of requests without credentials, and of bookings. */
const refusalsOfWrites: Readonly<Record<number, readonly Variation[]>> = {
  401: [{ isStranger: true }],
  412: [{ headers: { 'If-Match': '"0-json"' }, body: { status: 'confirmed' } }],
  413: [{ body: { padding: 'x'.repeat(1024 * 1024) } }],
  415: [{ headers: { 'Content-Type': 'application/xml' }, body: '<booking/>' }],
  428: [{ headers: { 'If-Match': undefined } }],
};

/** Texts that the schema of an argument refuses. */
function refusedBy(schema: Parameter['schema']): readonly string[] {
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
    const read = prefixes.map(async (prefix) => [prefix, await readApi(origin, prefix)] as const);
    apis = new Map(await Promise.all(read));
  });

  for (const prefix of prefixes) {
    describe(`of ${prefix}`, () => {
      /** Visits the operations that pass the filter; there must be some. */
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

      it('has examples that its own schemas accept', async () => {
        await each(every, async ({ judge, bodyOf }, operation) => {
          const examples = operation.parameters.flatMap(({ schema, example: first }) =>
            [first ?? [], (schema['examples'] ?? []) as unknown[]].flat().map((example) => ({ schema, example })),
          );
          const body = bodyOf(operation);
          const faults = [...examples, ...(body ? [body] : [])].flatMap(({ schema, example }) =>
            judge(schema, example),
          );
          assert.deepEqual(faults, [], operation.operationId);
        });
      });

      it('answers in each documented representation', async () => {
        await each(every, async ({ expect, call }, operation) => {
          const types = Object.keys(operation.responses[successOf(operation)]?.content ?? {});
          assert.deepEqual(types, ['application/json', 'application/yaml', 'text/html']);
          for (const type of types) {
            const { headers } = await call(operation, { headers: { Accept: type } });
            assert.equal(String(headers['content-type']).replace(/;.*/, ''), type);
            await expect(operation, successOf(operation), { headers: { Accept: type } });
          }
        });
      });

      it('accepts every documented argument, and gives the fields asked for', async () => {
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

      it('refuses an argument that its schema refuses', async () => {
        await each(every, async ({ expect }, operation) => {
          for (const { name, schema } of operation.parameters.filter((one) => one.in === 'query')) {
            for (const value of refusedBy(schema)) await expect(operation, 400, { query: { [name]: value } });
          }
        });
      });

      it('answers 304 to its own entity tag', async () => {
        await each(documents(304), async ({ call, expect }, operation) => {
          const { headers } = await call(operation);
          await expect(operation, 304, { headers: { 'If-None-Match': String(headers['etag']) } });
        });
      });

      const refusals: Readonly<Record<number, readonly Variation[]>> = {
        400: [
          { query: { nonsense: '1' } },
          { query: { nonsense: '1' }, headers: { Accept: 'application/json, application/problem+json' } },
        ],
        404: [{ path: { id: '3f1c9a52-0000-4000-8000-000000000000' } }],
        406: [{ headers: { Accept: 'image/png' } }],
        ...(isSignedIn && refusalsOfWrites),
      };
      /** Tested below, or impossible without a failure. */
      const others = [409, 422, 429, 503];

      it('documents no refusal that is not tested', async () => {
        const tried = [...Object.keys(refusals).map(Number), ...others];
        await each(every, async (_api, { responses }) => {
          const statuses = Object.keys(responses).filter((status) => Number(status) >= 400);
          assert.deepEqual(
            statuses.filter((status) => !tried.includes(Number(status))),
            [],
          );
        });
      });

      for (const [status, variations] of Object.entries(refusals)) {
        it(`is refused with ${status} as the document says`, async () => {
          await each(documents(Number(status)), async ({ expect }, operation) => {
            for (const variation of variations) await expect(operation, Number(status), variation);
          });
        });
      }

      if (!isSignedIn) return;

      it('refuses a body that its schema refuses', async () => {
        await each(documents(415), async ({ expect, bodyOf }, operation) => {
          const example = bodyOf(operation)?.example ?? {};
          for (const body of [{}, { ...example, nonsense: 1 }]) await expect(operation, 400, { body });
        });
      });

      it('repeats the answer for an idempotency key, and refuses another request with it', async () => {
        await each(documents(422), async ({ expect, bodyOf }, operation) => {
          const headers = { 'Idempotency-Key': `walk-${operation.operationId}` };
          const body = bodyOf(operation)?.example;
          const first = await expect(operation, 201, { headers, body });
          assert.deepEqual(await expect(operation, 201, { headers, body }), first);
          await expect(operation, 422, { headers, body: { ...body, hold: true } });
        });
      });

      it('answers 409 when the state does not allow a change', async () => {
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

  it('answers 429 with Retry-After when a limit is exhausted', async () => {
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

/** All arguments that can be combined; filters have the values of an item. */
function argumentsOf({ parameters }: Operation, shown: object): Record<string, string> {
  const taken = parameters.filter((one) => one.in === 'query' && !['after', 'fields'].includes(one.name));
  return Object.fromEntries(
    taken.map((parameter) => [parameter.name, String(Reflect.get(shown, parameter.name) ?? textFor(parameter))]),
  );
}

/** Both ends of a stay share their examples. */
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
    schema['default'],
    (schema['enum'] as unknown[] | undefined)?.[0],
    items?.enum[0],
    byFormat[String(schema['format'])],
    'x',
  ].filter((one) => one !== undefined);
  return String(value);
}
