/** The limit stage, with a scripted limiter. */
import assert from 'node:assert/strict';
import type { Decision, DescriptorStatus, Limiter } from '#ratelimit';
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

  it('does not ask the limiter about a request without a label, or with labels of another domain', async () => {
    const other = { mappings: [mappingOf({ labels: { other: labelled('x-key') } })] };
    for (const [headers, options] of [[{}], [undefined, other]] as const) {
      const { get, edge } = await setUp(() => assert.fail('asked'), options);
      const answer = await get(headers);
      assert.deepEqual([answer.status, answer.headers.get('ratelimit')], [200, 'theirs']);
      assert.deepEqual(edge.gateway.snapshot().ratelimit, { ok: 0, over: 0, error: 0 });
    }
  });

  const deny = { rateLimitService: limitRecordOf({ failureModeDeny: true }) };
  const headers = ['ratelimit-policy', 'ratelimit', 'retry-after'];

  for (const [when, give] of Object.entries(ways)) {
    /** `expected`: the status of the response, its `headers`, and the counts of decisions. */
    async function check(decide: () => Decision, expected: readonly unknown[], options: EdgeOptions = {}) {
      const { get, edge, upstream } = await setUp(give(decide), options);
      const answer = await get();
      const seen = [
        answer.status,
        ...headers.map((name) => answer.headers.get(name)),
        edge.gateway.snapshot().ratelimit,
      ];
      assert.deepEqual(seen, expected);
      assert.equal(upstream.reached.length, answer.status === 200 ? 1 : 0);
      return { body: await answer.text(), log: edge.log };
    }

    const policy = '"x-key";q=10;w=60';
    const broken = () => {
      throw new Error('connect 10.0.0.7:8081');
    };

    describe(`by a limiter that decides ${when}`, () => {
      it('replaces the limit headers of the service with its own', async () => {
        await check(() => ok, [200, policy, '"x-key";r=9;t=30', null, { ok: 1, over: 0, error: 0 }]);
      });

      it('refuses with 429 and Retry-After beyond the limit', async () => {
        const { body } = await check(() => over, [429, policy, '"x-key";r=0;t=30', '30', { ok: 0, over: 1, error: 0 }]);
        assert.deepEqual(JSON.parse(body), { code: 429, message: '429: Too Many Requests' });
      });

      it('goes on without an answer, counts it and logs it', async () => {
        const { log } = await check(broken, [200, null, 'theirs', null, { ok: 0, over: 0, error: 1 }]);
        const [line] = log;
        assert.deepEqual([line?.level, line?.fields['mapping'], line?.fields['denied']], ['warn', 'hotel', false]);
      });

      it('refuses without an answer with failure_mode_deny, and does not show the reason', async () => {
        const { body } = await check(broken, [503, null, null, '1', { ok: 0, over: 0, error: 1 }], deny);
        assert.deepEqual(JSON.parse(body), { code: 503, message: '503: Service Unavailable' });
      });
    });
  }
});
