/** The limit stage, with a scripted limiter. */
import assert from 'node:assert/strict';
import type { Decision, DescriptorStatus, Limiter, RateLimitRequest } from '#ratelimit';
import { type EdgeOptions, labelled, limitRecordOf, mappingOf, remote, startEdge } from '../../support/edge.ts';
import { testServers } from '../../support/serve.ts';
import { startUpstream } from '../../support/upstream.ts';

const currentLimit = { requestsPerUnit: 10, unit: 'minute', windowSeconds: 60, name: undefined } as const;
const status: DescriptorStatus = { code: 'OK', currentLimit, limitRemaining: 9, resetSeconds: 30 };

const ok: Decision = { overallCode: 'OK', statuses: [status] };
const over: Decision = {
  overallCode: 'OVER_LIMIT',
  statuses: [{ ...status, code: 'OVER_LIMIT', limitRemaining: 0 }],
};

const ways: Readonly<Record<string, (decide: () => Decision) => Limiter['shouldRateLimit']>> = {
  'at once': (decide) => () => decide(),
  later: (decide) => async () => decide(),
};

describe('rate limiting', () => {
  const servers = testServers();

  async function setUp(shouldRateLimit: Limiter['shouldRateLimit'], options: EdgeOptions = {}) {
    const upstream = await startUpstream(servers, (res) => res.setHeader('RateLimit', 'theirs').end('ok'));
    const edge = await startEdge(servers, {
      mappings: [mappingOf({ labels: { gateway: labelled('x-key') } })],
      rateLimitService: limitRecordOf(),
      limiter: { shouldRateLimit },
      targets: { hotel: remote(upstream) },
      ...options,
    });
    const get = (headers: Record<string, string> = { 'X-Key': 'a' }) => fetch(`${edge.origin}/v1/hotels`, { headers });
    return { upstream, edge, get };
  }

  it('sends the labels of the request in the domain of the service', async () => {
    const asked: RateLimitRequest[] = [];
    const { get } = await setUp((request) => {
      asked.push(request);
      return ok;
    });
    await get();
    assert.deepEqual(asked, [{ domain: 'gateway', descriptors: [{ entries: [{ key: 'x-key', value: 'a' }] }] }]);
  });

  it('does not ask the limiter about a request without a label', async () => {
    const { get, edge } = await setUp(() => assert.fail('asked'));
    const answer = await get({});
    assert.equal(answer.status, 200);
    assert.equal(answer.headers.get('ratelimit-policy'), null);
    assert.deepEqual(edge.gateway.snapshot().ratelimit, { ok: 0, over: 0, error: 0 });
  });

  it('does not ask the limiter about labels of another domain', async () => {
    const { get } = await setUp(() => assert.fail('asked'), {
      mappings: [mappingOf({ labels: { other: labelled('x-key') } })],
    });
    assert.equal((await get()).status, 200);
  });

  for (const [when, give] of Object.entries(ways)) {
    describe(`by a limiter that decides ${when}`, () => {
      it('replaces the limit headers of the service with its own', async () => {
        const { get, edge } = await setUp(give(() => ok));
        const { status, headers } = await get();
        assert.equal(status, 200);
        assert.equal(headers.get('ratelimit-policy'), '"x-key";q=10;w=60');
        assert.equal(headers.get('ratelimit'), '"x-key";r=9;t=30');
        assert.equal(headers.get('retry-after'), null);
        assert.deepEqual(edge.gateway.snapshot().ratelimit, { ok: 1, over: 0, error: 0 });
      });

      it('refuses with 429 and Retry-After beyond the limit', async () => {
        const { get, edge, upstream } = await setUp(give(() => over));
        const { status, headers, ...answer } = await get().then(async (response) => ({
          status: response.status,
          headers: response.headers,
          body: await response.json(),
        }));
        assert.equal(status, 429);
        assert.deepEqual(answer.body, { code: 429, message: '429: Too Many Requests' });
        assert.equal(headers.get('retry-after'), '30');
        assert.equal(headers.get('ratelimit-policy'), '"x-key";q=10;w=60');
        assert.equal(headers.get('ratelimit'), '"x-key";r=0;t=30');
        assert.equal(upstream.reached.length, 0);
        assert.deepEqual(edge.gateway.snapshot().ratelimit, { ok: 0, over: 1, error: 0 });
      });

      it('sets Retry-After to a second when the service gives no limit', async () => {
        const { get } = await setUp(give(() => ({ overallCode: 'OVER_LIMIT', statuses: [] })));
        const { status, headers } = await get();
        assert.deepEqual([status, headers.get('retry-after'), headers.get('ratelimit')], [429, '1', null]);
      });

      const broken = give(() => {
        throw new Error('connect 10.0.0.7:8081');
      });

      it('goes on without an answer, counts it and logs it', async () => {
        const { get, edge, upstream } = await setUp(broken);
        const answer = await get();
        assert.equal(answer.status, 200);
        assert.equal(answer.headers.get('ratelimit-policy'), null);
        assert.equal(upstream.reached.length, 1);
        assert.deepEqual(edge.gateway.snapshot().ratelimit, { ok: 0, over: 0, error: 1 });
        const [line] = edge.log;
        assert.deepEqual([line?.level, line?.fields['mapping'], line?.fields['denied']], ['warn', 'hotel', false]);
      });

      it('refuses without an answer with failure_mode_deny, and does not show the reason', async () => {
        const { get, edge, upstream } = await setUp(broken, {
          rateLimitService: limitRecordOf({ failureModeDeny: true }),
        });
        const answer = await get();
        assert.deepEqual([answer.status, answer.headers.get('retry-after')], [503, '1']);
        assert.deepEqual(await answer.json(), { code: 503, message: '503: Service Unavailable' });
        assert.equal(upstream.reached.length, 0);
        assert.equal(edge.gateway.snapshot().ratelimit?.error, 1);
      });
    });
  }
});
