/** What gRPC clients get when the gateway, an auth service or a limit refuses their calls. */
import assert from 'node:assert/strict';
import request from 'supertest';
import { grpcStatusName } from '#http';
import type { DescriptorStatus, Limiter } from '#ratelimit';
import { createTraffic } from '../../src/gateway/traffic/traffic.ts';
import { authRecordOf, type EdgeOptions, labelled, limitRecordOf, remote, startEdge } from '../support/edge.ts';
import { testServers } from '../support/serve.ts';
import { startUpstream } from '../support/upstream.ts';

const servers = testServers();

interface Refusal {
  readonly httpStatus: number;
  readonly status: string | undefined;
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
}

async function call(options: EdgeOptions, path = '/v1/hotels/x', type = 'application/grpc'): Promise<Refusal> {
  const upstream = options.upstream ?? (await startUpstream(servers));
  const targets = { hotel: remote(upstream), ...options.targets };
  const { listener } = await startEdge(servers, { ...options, targets });
  const response = await request(listener)
    .post(path)
    .set({ 'Content-Type': type, Accept: 'text/html', 'X-Key': 'a' })
    .send(Buffer.from('\0\0\0\0\x02ab'));
  const { headers, status: httpStatus, text = '' } = response;
  return { httpStatus, status: grpcStatusName(Number(headers['grpc-status'])), headers, text };
}

async function check(options: EdgeOptions, status: string, path?: string): Promise<Refusal> {
  const refusal = await call(options, path);
  assert.deepEqual([refusal.httpStatus, refusal.status, refusal.text], [200, status, '']);
  assert.equal(refusal.headers['content-type'], 'application/grpc');
  assert.equal(refusal.headers['content-encoding'], undefined);
  return refusal;
}

describe('a gRPC call', () => {
  it('to a path without a mapping gets UNIMPLEMENTED, and counts as a request that no mapping matched', async () => {
    const traffic = createTraffic();
    await check({ traffic }, 'UNIMPLEMENTED', '/shop.Carts/Add');
    assert.deepEqual(traffic.unmatched.totals?.byClass, { 1: 0, 2: 0, 3: 0, 4: 1, 5: 0 });
    assert.deepEqual(
      traffic.unmatchedRequests().map(({ path }) => path),
      ['/shop.Carts/Add'],
    );
  });

  it('with an ambiguous path gets INVALID_ARGUMENT', async () => {
    const { headers } = await check({}, 'INVALID_ARGUMENT', '/v1/hotels/%2e%2e/x');
    assert.match(headers['grpc-message'] ?? '', /^Bad path: ./);
  });

  it('without valid credentials gets UNAUTHENTICATED, with the challenge', async () => {
    const denial = { outcome: 'deny', status: 401, headers: { 'WWW-Authenticate': 'Basic realm="x"' } } as const;
    const { headers } = await check({ authService: authRecordOf(), authPort: () => denial }, 'UNAUTHENTICATED');
    assert.equal(headers['www-authenticate'], 'Basic realm="x"');
  });

  for (const [httpStatus, status] of [
    [401, 'UNAUTHENTICATED'],
    [403, 'PERMISSION_DENIED'],
    [302, 'UNAUTHENTICATED'],
    [429, 'RESOURCE_EXHAUSTED'],
    [418, 'UNKNOWN'],
  ] as const)
    it(`gets ${status} without the body of an auth service that responds with ${httpStatus}`, async () => {
      const auth = await startUpstream(servers, (res) => {
        res.writeHead(httpStatus, { 'Content-Type': 'text/html', 'Content-Encoding': 'identity', Location: '/login' });
        res.end('<p>no</p>');
      });
      await check({ authService: authRecordOf(), targets: { auth: remote(auth) } }, status);
    });

  it('gets UNAVAILABLE while the auth service is away, with the time after which to repeat it', async () => {
    const auth = await servers.refusing();
    const { headers } = await check({ authService: authRecordOf(), targets: { auth: remote(auth) } }, 'UNAVAILABLE');
    assert.equal(headers['grpc-retry-pushback-ms'], `${headers['retry-after']}000`);
  });

  it('beyond a limit gets RESOURCE_EXHAUSTED with the time after which to repeat it, and counts as refused', async () => {
    const traffic = createTraffic();
    const currentLimit = { requestsPerUnit: 10, unit: 'minute', windowSeconds: 60, name: undefined } as const;
    const status: DescriptorStatus = { code: 'OVER_LIMIT', currentLimit, limitRemaining: 0, resetSeconds: 5 };
    const limiter: Limiter = { shouldRateLimit: () => ({ overallCode: 'OVER_LIMIT', statuses: [status] }) };
    const { headers } = await check(
      {
        traffic,
        mapping: { labels: { gateway: labelled('x-key') } },
        rateLimitService: limitRecordOf(),
        limiter,
      },
      'RESOURCE_EXHAUSTED',
    );
    assert.equal(headers['retry-after'], '5');
    assert.equal(headers['grpc-retry-pushback-ms'], '5000');
    const { totals } = traffic.of('hotel') ?? {};
    assert.deepEqual([totals?.byClass[4], totals?.byClass[2], totals?.refusedByLimit], [1, 0, 1]);
  });

  it('gets UNAVAILABLE from a service that is away, and counts as an error', async () => {
    const traffic = createTraffic();
    await check({ traffic, upstream: await servers.refusing() }, 'UNAVAILABLE');
    assert.equal(traffic.of('hotel')?.totals?.errors, 1);
    assert.deepEqual(
      traffic.failures().map(({ status, problem }) => [status, problem]),
      [[503, 'upstream-unavailable']],
    );
  });

  it('gets DEADLINE_EXCEEDED from a service that does not respond in time', async () => {
    const upstream = await startUpstream(servers, () => {});
    await check({ upstream, mapping: { timeoutMs: 50 } }, 'DEADLINE_EXCEEDED');
  });

  it('with too large a body gets RESOURCE_EXHAUSTED', async () => {
    await check({ upstream: await startUpstream(servers), mapping: { maxRequestBytes: 3 } }, 'RESOURCE_EXHAUSTED');
  });

  it('from a refused address gets PERMISSION_DENIED', async () => {
    await check({ mapping: { denyAddresses: ['0.0.0.0/0', '::/0'] } }, 'PERMISSION_DENIED');
  });
});

describe('a gRPC-Web call', () => {
  it('gets the same statuses, in the headers of its own content type', async () => {
    const { httpStatus, status, headers } = await call({}, '/shop.Carts/Add', 'application/grpc-web-text');
    assert.deepEqual([httpStatus, status], [200, 'UNIMPLEMENTED']);
    assert.equal(headers['content-type'], 'application/grpc-web-text');
  });
});
