/** Limits decided by a rate-limit service of another vendor, which may leave out most fields. */
import assert from 'node:assert/strict';
import type { RateLimitService } from '#config';
import { connectRateLimit } from '#ratelimit';
import { labelled, limitRecordOf, mappingOf, remote, startEdge } from '../../support/edge.ts';
import { testServers } from '../../support/serve.ts';
import { startUpstream } from '../../support/upstream.ts';
import { startRateLimitStranger } from '../../support/wire/rate-limit-stranger.ts';

const [OK, OVER_LIMIT, MINUTE] = [1, 2, 2];
const tenAMinute = { requestsPerUnit: 10, unit: MINUTE };

describe('a client of a gateway with a rate-limit service by another vendor', () => {
  const servers = testServers();

  async function ask(answer: object, record: Partial<RateLimitService> = {}): Promise<Response> {
    const stranger = await startRateLimitStranger(() => answer);
    const limiter = connectRateLimit({ target: () => ({ host: '127.0.0.1', port: stranger.port }), timeoutMs: 5_000 });
    servers.later(async () => {
      await limiter.close();
      stranger.stop();
    });
    const upstream = await startUpstream(servers, (res) => res.setHeader('RateLimit-Limit', 'theirs').end('ok'));
    const edge = await startEdge(servers, {
      mappings: [mappingOf({ labels: { gateway: labelled('x-key') } })],
      rateLimitService: limitRecordOf({ failureModeDeny: true, ...record }),
      limiter,
      targets: { hotel: remote(upstream) },
    });
    return fetch(`${edge.origin}/v1/hotels`, { headers: { 'X-Key': 'a' } });
  }

  async function check(answer: object, status: number, expected: Readonly<Record<string, string | null>>) {
    const { headers, ...response } = await ask(answer).then((got) => ({ status: got.status, headers: got.headers }));
    assert.equal(response.status, status);
    const seen = Object.fromEntries(Object.keys(expected).map((name) => [name, headers.get(name)]));
    assert.deepEqual(seen, expected);
  }

  const nothing = { ratelimit: null, 'ratelimit-policy': null };
  const policy = '"x-key";q=10;w=60';

  it('gets no headers when the service says only OK', () =>
    check({ overallCode: OK }, 200, { ...nothing, 'retry-after': null }));

  it('gets quota and remainder when the service does not say when the window ends', () =>
    check({ overallCode: OK, statuses: [{ code: OK, currentLimit: tenAMinute, limitRemaining: 9 }] }, 200, {
      ratelimit: '"x-key";r=9',
      'ratelimit-policy': policy,
    }));

  it('waits the whole window when the service does not say when it ends', () =>
    check({ overallCode: OVER_LIMIT, statuses: [{ code: OVER_LIMIT, currentLimit: tenAMinute }] }, 429, {
      ratelimit: '"x-key";r=0',
      'ratelimit-policy': policy,
      'retry-after': '60',
    }));

  it('waits a second when the service refuses without limits, or without statuses', async () => {
    await check({ overallCode: OVER_LIMIT, statuses: [{ code: OVER_LIMIT }] }, 429, { ...nothing, 'retry-after': '1' });
    await check({ overallCode: OVER_LIMIT }, 429, { ...nothing, 'retry-after': '1' });
  });

  it('waits as long as the service says, rounded up', () =>
    check(
      { overallCode: OVER_LIMIT, statuses: [{ code: OVER_LIMIT, durationUntilReset: { seconds: 7, nanos: 1 } }] },
      429,
      { ...nothing, 'retry-after': '8' },
    ));

  it('gets no headers of a limit in an unknown unit, and those of the other limits', () => {
    const statuses = [
      { code: OK, currentLimit: { requestsPerUnit: 5, unit: 42 }, limitRemaining: 4 },
      { code: 77, currentLimit: tenAMinute, limitRemaining: 9, durationUntilReset: { seconds: 30 } },
    ];
    return check({ overallCode: OK, statuses }, 200, { ratelimit: '"default";r=9;t=30' });
  });

  it('is treated as without an answer when the decision is unknown', async () => {
    assert.equal((await ask({ overallCode: 77 })).status, 503);
    assert.equal((await ask({ overallCode: 77 }, { failureModeDeny: false })).status, 200);
  });

  it('does not notice unknown fields of the protocol', () =>
    check(
      { overallCode: OK, tomorrow: 'more', quota: { requests: 1, id: 'q' }, statuses: [{ quota: { requests: 2 } }] },
      200,
      nothing,
    ));

  it("reads the service's headers that the record allows, over the upstream's, and no others", async () => {
    const responseHeadersToAdd = [
      { key: 'RateLimit-Limit', value: '10' },
      { key: 'Set-Cookie', value: 'a=1' },
    ];
    const allowed = { 'ratelimit-limit': '10', 'set-cookie': null };
    await check({ overallCode: OK, responseHeadersToAdd }, 200, allowed);
    await check({ overallCode: OVER_LIMIT, responseHeadersToAdd }, 429, allowed);
  });

  it("reads the service's headers that come as bytes", () =>
    check({ overallCode: OK, responseHeadersToAdd: [{ key: 'ratelimit-limit', rawValue: Buffer.from('10') }] }, 200, {
      'ratelimit-limit': '10',
    }));

  it("reads the gateway's headers where the service writes the same ones", async () => {
    const answer = await ask(
      {
        overallCode: OK,
        statuses: [{ code: OK, currentLimit: tenAMinute, limitRemaining: 9, durationUntilReset: { seconds: 30 } }],
        responseHeadersToAdd: [{ key: 'x-ratelimit-limit', value: '10' }],
      },
      { headers: 'draft_03', allowedResponseHeaders: ['x-ratelimit-limit'] },
    );
    assert.equal(answer.headers.get('x-ratelimit-limit'), '10, 10;w=60');
  });
});
