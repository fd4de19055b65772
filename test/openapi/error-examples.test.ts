/** The examples of errors in OpenAPI documents, compared with what the API responds. */
import assert from 'node:assert/strict';
import type { RequestListener } from 'node:http';
import Koa from 'koa';
import mount from 'koa-mount';
import request from 'supertest';
import { desksOf } from '../support/desks.ts';
import { testServers } from '../support/serve.ts';
import { type Operation, readApi, type Variation } from './documented-api.ts';

interface ErrorResponse {
  readonly $ref?: string;
  readonly content?: Readonly<Record<string, { readonly examples: Readonly<Record<string, { value: ErrorExample }>> }>>;
}

interface ErrorExample {
  readonly detail?: string;
  readonly type?: string;
  readonly title?: string;
  readonly info_url?: string;
  readonly alternatives?: readonly object[];
}

const json = { 'Content-Type': 'application/json' };

/** What makes the example of an operation fail, by the slug of the problem. The others need a certain state. */
const causes: Readonly<Record<string, Variation>> = {
  'bad-argument': { query: { fields: '' } },
  'bad-body': { headers: json, body: '' },
  'bad-request': { headers: { 'Idempotency-Key': 'k'.repeat(256) } },
  unauthorized: { isAnonymous: true },
  'not-found': { path: { id: 'none' } },
  'not-acceptable': {},
  'precondition-failed': { headers: { 'If-Match': '"other"' } },
  'precondition-required': { headers: { 'If-Match': undefined } },
  'body-too-large': { headers: json, body: JSON.stringify('x'.repeat(65_536)) },
  'unsupported-media-type': { headers: { 'Content-Type': 'text/plain' }, body: '{}' },
};

/** GET and PATCH, or POST and PATCH, describe these in different words. */
const withOwnDetail = ['precondition-failed', 'unsupported-media-type'];

/** What to accept so that no operation succeeds, and the error has the type. */
const unacceptable = {
  'application/json': 'image/png',
  'application/problem+json': 'image/png, application/problem+json',
} as const;

describe('examples of errors', () => {
  const servers = testServers(after);
  const openDesk = desksOf(servers);
  let alone: RequestListener;
  let embedded: RequestListener;

  before(async () => {
    alone = (await openDesk()).app.callback();
    const { middleware } = await openDesk({ publicUrl: 'https://shop.test' });
    embedded = new Koa().use(mount('/travel', middleware)).callback();
  });

  /** The examples by slug, in a media type. */
  const examplesIn = async (handler: RequestListener, prefix: string, type: string) => {
    const { body } = await request(handler).get(`${prefix}/openapi.json`).auth('demo', 'demo').set('Host', 'desk.test');
    return ({ path, method }: Operation): Readonly<Record<string, ErrorExample>> => {
      const responses: Readonly<Record<string, ErrorResponse>> = body.paths[path][method].responses;
      const resolved = Object.values(responses).map((response): ErrorResponse => {
        const name = response.$ref?.split('/').at(-1) ?? '';
        return body.components.responses[name] ?? response;
      });
      const examples = resolved.flatMap(({ content }) => Object.entries(content?.[type]?.examples ?? {}));
      return Object.fromEntries(examples.map(([slug, { value }]) => [slug, value]));
    };
  };

  for (const [prefix, countMin] of [
    ['/v1', 4],
    ['/v1/hotels', 10],
  ] as const)
    for (const type of ['application/json', 'application/problem+json'] as const)
      it(`are what the operations of ${prefix} respond as ${type}`, async () => {
        const { operations, call } = await readApi(alone, prefix);
        const examplesOf = await examplesIn(alone, prefix, type);
        const cases = operations.flatMap((operation) =>
          Object.entries(examplesOf(operation)).map(([slug, example]) => ({ operation, slug, example })),
        );
        const caused = cases.filter(({ slug }) => slug in causes);
        for (const { operation, slug, example } of caused) {
          const { body } = await call(operation, variationFor(slug, type));
          assert.deepEqual(withDetailOf(example, slug, body), example, `${operation.operationId}: ${slug}`);
        }
        assert.ok(new Set(caused.map(({ slug }) => slug)).size >= countMin);
      });

  it('name the problem of each example and its page, at whatever path the gateway is mounted', async () => {
    for (const [handler, prefix, types, pages] of [
      [alone, '/v1/hotels', '/gateway/v0/problems/', 'http://desk.test/gateway/v0/problems/'],
      [
        embedded,
        '/travel/v1/hotels',
        'https://shop.test/travel/gateway/v0/problems/',
        'https://shop.test/travel/gateway/v0/problems/',
      ],
    ] as const) {
      const { operations } = await readApi(handler, prefix);
      const examplesOf = await examplesIn(handler, prefix, 'application/problem+json');
      for (const operation of operations) {
        const examples = Object.entries(examplesOf(operation));
        assert.ok(examples.length > 5);
        for (const [slug, { type, info_url }] of examples)
          assert.deepEqual([type, info_url], [types + slug, pages + slug]);
      }
    }
  });

  it('have the members that a problem adds', async () => {
    const { operations } = await readApi(alone, '/v1/hotels');
    const examplesOf = await examplesIn(alone, '/v1/hotels', 'application/json');
    const operation = operations.find(({ operationId }) => operationId === 'createHotelBooking');
    assert.ok(operation);
    const { 'sold-out': soldOut, 'too-many-units': tooMany } = examplesOf(operation);
    assert.deepEqual(Object.keys(soldOut ?? {}), ['code', 'message', 'info_url', 'alternatives']);
    assert.deepEqual(Object.keys(tooMany ?? {}), ['code', 'message', 'info_url']);
    assert.deepEqual(soldOut?.alternatives, [
      {
        room_type: 'double',
        check_in: '2031-05-12',
        check_out: '2031-05-15',
        price: { amount: '120.00', currency: 'EUR' },
      },
    ]);
  });
});

function withDetailOf({ detail }: ErrorExample, slug: string, body: object): object {
  return withOwnDetail.includes(slug) ? { ...body, detail } : body;
}

function variationFor(slug: string, type: keyof typeof unacceptable): Variation {
  const Accept = slug === 'not-acceptable' ? unacceptable[type] : `application/json, ${type}`;
  const { headers, ...cause } = causes[slug] ?? {};
  return { ...cause, headers: { Host: 'desk.test', Accept, ...headers } };
}
