/** Refused calls as a client of gRPC sees them, in the access log and in the metrics. */
import assert from 'node:assert/strict';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { Metadata, status } from '@grpc/grpc-js';
import { authRecord, demoRecord, desksOf, limitRecord, mappingRecord } from '../support/desks.ts';
import { type LogLine, recordingLogger } from '../support/edge.ts';
import { among, scrape } from '../support/scrape.ts';
import { testServers } from '../support/serve.ts';
import { startUpstream } from '../support/upstream.ts';
import { connectGrpc, startGrpcService, unary } from '../support/wire/grpc-peers.ts';

const add = '/shop.Carts/Add';

describe('a call of a gRPC client that is refused', () => {
  const servers = testServers();
  const openDesk = desksOf(servers);

  async function setUp() {
    const log: LogLine[] = [];
    const carts = await startGrpcService(servers, { [add]: unary((message) => message) });
    const labels = { gateway: [{ all: [{ generic_key: 'all' }] }] };
    const limit = { key: 'generic_key', value: 'all', rate_limit: { unit: 'year', requests_per_unit: 1 } } as const;
    const desk = await openDesk({
      only: ['gateway', 'auth', 'ratelimit'],
      adminPort: 0,
      logger: recordingLogger(log),
      config: {
        records: [
          authRecord,
          limitRecord,
          mappingRecord('carts', '/shop.Carts', carts.origin, { grpc: true }),
          mappingRecord('limited', '/shop.Limited', carts.origin, { grpc: true, bypass_auth: true, labels }),
          mappingRecord('away', '/shop.Away', (await servers.refusing()).origin, { grpc: true, bypass_auth: true }),
        ],
        users: [demoRecord],
        limits: [{ domain: 'gateway', descriptors: [limit] }],
      },
    });
    const { gateway } = await desk.listen();
    return { desk, log, client: connectGrpc(servers, gateway) };
  }

  it('has the code that says what a browser would see, and why', async () => {
    const { client } = await setUp();
    const codeOf = async (path: string) => (await client.unary(path)).code;
    assert.equal(await codeOf(add), status.UNAUTHENTICATED);
    assert.equal(await codeOf('/shop.Nowhere/Add'), status.UNIMPLEMENTED);
    assert.equal(await codeOf('/shop.Away/Add'), status.UNAVAILABLE);
    const { details } = await client.unary('/shop.Nowhere/Add');
    assert.equal(details, 'Not found: There is no such resource, or you may not see it.');
  });

  it('has the challenge in its metadata, and passes with credentials', async () => {
    const { client } = await setUp();
    const refused = await client.unary(add);
    assert.match(String(refused.trailers.get('www-authenticate')), /^Basic/);
    const metadata = new Metadata();
    metadata.set('authorization', `Basic ${Buffer.from('demo:demo').toString('base64')}`);
    const { code, details } = await client.unary(add, 'a book', { metadata });
    assert.deepEqual([code, details], [status.OK, 'OK']);
  });

  it('says when to repeat it beyond a limit, is logged with both statuses, and is no success in the metrics', async () => {
    const { client, desk, log } = await setUp();
    await client.unary('/shop.Limited/Add');
    const { code, trailers } = await client.unary('/shop.Limited/Add');
    assert.equal(code, status.RESOURCE_EXHAUSTED);
    const [retryAfter] = trailers.get('retry-after');
    const pushbackMs = Math.min(Number(retryAfter) * 1000, 2 ** 31 - 1);
    assert.deepEqual(trailers.get('grpc-retry-pushback-ms'), [String(pushbackMs)]);
    const lines = () => log.filter(({ message }) => message === 'request').map(({ fields }) => fields);
    // The line is written, and the call counted, after the client has the response.
    while (lines().length < 2) await nextTurn();
    const { status: httpStatus, grpcStatus, problem } = lines().at(-1) ?? {};
    assert.deepEqual([httpStatus, grpcStatus, problem], [200, 'RESOURCE_EXHAUSTED', 'too-many-requests']);
    const series = await scrape(desk);
    const counted = among(series, 'frontdesk_requests_total');
    assert.equal(counted['limited 4xx'], 1);
    assert.equal(among(series, 'frontdesk_requests_refused_total')['limited limit'], 1);
  });

  it('is no permission for a gateway that asks an auth service behind this one', async () => {
    const service = await startUpstream(servers);
    const inner = await openDesk({
      only: ['gateway'],
      demo: false,
      config: { records: [mappingRecord('auth', '/', (await servers.refusing()).origin, { bypass_auth: true })] },
    });
    const auth = {
      ...authRecord,
      auth_service: (await inner.listen()).gateway.url,
      include_body: { max_bytes: 100, allow_partial: true },
    };
    const outer = await openDesk({
      only: ['gateway'],
      demo: false,
      config: { records: [auth, mappingRecord('all', '/', service.origin)] },
    });
    const { gateway } = await outer.listen();
    const headers = { 'content-type': 'application/grpc' };
    const response = await fetch(`${gateway.url}/a`, { method: 'POST', headers, body: 'a' });
    assert.equal(response.headers.get('grpc-status'), String(status.UNAVAILABLE));
    assert.equal(service.reached.length, 0);
  });
});
