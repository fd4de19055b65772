/** The limiter in this process and the one across gRPC give clients the same responses. */
import assert from 'node:assert/strict';
import type { LimitDomain, RateLimitHeaderStyle } from '#config';
import { connectRateLimit, createLimiter, createMemoryCounters, type Limiter, serveRateLimit } from '#ratelimit';
import { labelled, limitRecordOf, mappingOf, remote, startEdge } from '../../support/edge.ts';
import { domain, limit, node, unlimited } from '../../support/limits.ts';
import { testServers } from '../../support/serve.ts';
import { startUpstream } from '../../support/upstream.ts';

const limits: readonly LimitDomain[] = [
  domain(
    'gateway',
    node('x-key', limit(2, 'minute')),
    node('x-key=free', unlimited),
    node('x-key=closed', limit(0, 'week', { name: 'closed "for" good' })),
    node('x-plan', limit(3, 'hour', { name: 'plan' })),
    node('x-plan=listed'),
    node('x-short', limit(5, 'second', { unitMultiplier: 30 })),
  ),
];

/** One request each, in turn. */
const requests: readonly Record<string, string>[] = [
  ...['a', 'a', 'a', 'free', 'closed', 'b'].map((key) => ({ 'X-Key': key })),
  ...['gold', 'gold', 'gold', 'gold', 'listed'].map((plan) => ({ 'X-Key': plan, 'X-Plan': plan })),
  { 'X-Short': '1' },
  { 'X-Key': 'closed', 'X-Plan': 'silver' },
  { 'X-Other': 'unknown' },
  {},
];

const names = ['ratelimit', 'ratelimit-policy', 'x-ratelimit-limit', 'x-ratelimit-remaining', 'x-ratelimit-reset'];

describe('the rate-limit headers of a response', () => {
  const servers = testServers();

  const inProcess = (): Limiter =>
    createLimiter({ limits, counters: createMemoryCounters({ clock: () => 1_700_000_000_000 }) });

  async function acrossGrpc(): Promise<Limiter> {
    const server = await serveRateLimit({ limiter: inProcess(), port: 0, logger: { error() {} } });
    const client = connectRateLimit({ target: () => ({ host: '127.0.0.1', port: server.port }), timeoutMs: 5_000 });
    servers.later(async () => {
      await client.close();
      await server.close();
    });
    return client;
  }

  async function responsesOf(limiter: Limiter, headers: RateLimitHeaderStyle): Promise<unknown[][]> {
    const upstream = await startUpstream(servers, (res) => res.end('ok'));
    const groups = ['x-key', 'x-plan', 'x-short', 'x-other'].flatMap((header) => labelled(header));
    const edge = await startEdge(servers, {
      mappings: [mappingOf({ labels: { gateway: groups } })],
      rateLimitService: limitRecordOf({ headers }),
      limiter,
      targets: { hotel: remote(upstream) },
    });
    const responses: unknown[][] = [];
    for (const request of requests) {
      const answer = await fetch(`${edge.origin}/v1/hotels`, { headers: request });
      const values = [...names, 'retry-after'].map((name) => answer.headers.get(name));
      responses.push([answer.status, ...values, await answer.text()]);
    }
    return responses;
  }

  for (const [style, ...first] of [
    ['ietf', '"x-key";r=1;t=40', '"x-key";q=2;w=60', null, null, null],
    ['draft_03', null, null, '2, 2;w=60', '1', '40'],
    ['none', null, null, null, null, null],
  ] as const) {
    it(`are the same in this process and across gRPC, and only those of headers: ${style}`, async () => {
      const responses = await responsesOf(inProcess(), style);
      assert.deepEqual(await responsesOf(await acrossGrpc(), style), responses);
      const statuses = [200, 200, 429, 200, 429, 200, 200, 200, 429, 429, 200, 200, 429, 200, 200];
      assert.deepEqual(
        responses.map(([status]) => status),
        statuses,
      );
      assert.deepEqual(responses[0]?.slice(1, 6), first);
    });
  }
});
