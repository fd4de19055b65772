/** Limits by address, which count all requests before authentication. Other limits count only authenticated ones. */
import assert from 'node:assert/strict';
import type { LabelGroup } from '#config';
import { createLimiter, createMemoryCounters, type RateLimitRequest } from '#ratelimit';
import { authRecordOf, labelled, limitRecordOf, mappingOf, startEdge } from '../../support/edge.ts';
import { domain, limit, node } from '../../support/limits.ts';
import { testServers } from '../../support/serve.ts';

const byAddress: LabelGroup = { name: 'address', labels: [{ kind: 'remote_address', name: 'from' }] };
const byNetwork: LabelGroup = {
  name: 'network',
  labels: [{ kind: 'masked_remote_address', name: 'from', ipv4: 24, ipv6: 64 }],
};
const byAddressAndKey: LabelGroup = {
  name: 'both',
  labels: [...byAddress.labels, ...(labelled('x-key')[0]?.labels ?? [])],
};
const byUser = labelled('x-travel-user', 'user');

const limits = [
  domain('gateway', node('from', limit(3)), node('user', limit(2)), node('x-key', limit(9)), node('at', limit(4))),
];

describe('a limit by address', () => {
  const servers = testServers();

  async function setUp(groups: readonly LabelGroup[], options: { headers?: 'draft_03'; later?: true } = {}) {
    const asked: (readonly string[])[] = [];
    const limiter = createLimiter({ limits, counters: createMemoryCounters({ clock: () => 0 }) });
    const edge = await startEdge(servers, {
      mappings: [mappingOf({ labels: { gateway: groups } })],
      services: {
        async hotel(ctx) {
          ctx.body = 'ok';
        },
      },
      authService: authRecordOf(),
      authPort({ headers }) {
        if (headers.authorization === undefined) return { outcome: 'deny', status: 401, headers: {} };
        return { outcome: 'allow', headers: { 'x-travel-user': headers.authorization } };
      },
      rateLimitService: limitRecordOf(options.headers && { headers: options.headers }),
      limiter: {
        shouldRateLimit(request: RateLimitRequest) {
          asked.push(request.descriptors.map(({ entries }) => entries.map(({ key }) => key).join('+')));
          const decision = limiter.shouldRateLimit(request);
          return options.later ? Promise.resolve(decision) : decision;
        },
      },
    });
    const get = (credentials?: string) =>
      fetch(`${edge.origin}/v1/hotels`, {
        headers: { 'X-Key': 'k', ...(credentials && { Authorization: credentials }) },
      });
    const statuses = async (...credentials: (string | undefined)[]) => {
      const seen: number[] = [];
      for (const one of credentials) seen.push((await get(one)).status);
      return seen;
    };
    return { edge, asked, get, statuses };
  }

  for (const [whose, group] of [
    ['an address', byAddress],
    ['a network', byNetwork],
  ] as const)
    it(`counts requests from ${whose} with wrong credentials, and rejects further guesses with 429`, async () => {
      const { statuses, edge } = await setUp([group]);
      assert.deepEqual(await statuses(undefined, undefined, undefined, undefined, 'ann'), [401, 401, 401, 429, 429]);
      const { refusedByAuth, refusedByLimit } = edge.gateway.parts.table.routes[0]?.traffic.totals ?? assert.fail();
      assert.deepEqual([refusedByAuth, refusedByLimit], [3, 2]);
    });

  for (const later of [undefined, true] as const) {
    const where = later ? 'in another process' : 'in this process';
    it(`is checked separately from the other limits of the mapping, by a limiter ${where}`, async () => {
      const at: LabelGroup = { name: 'path', labels: [{ kind: 'path', name: 'at' }] };
      const { asked, statuses } = await setUp([...byUser, byAddress, at], later && { later });
      assert.deepEqual(await statuses(undefined, 'ann'), [401, 200]);
      assert.deepEqual(asked, [['from'], ['from'], ['user', 'at']]);
    });
  }

  it("counts after authentication with a header in its group, to protect other clients' quotas", async () => {
    const { asked, statuses } = await setUp([byAddressAndKey]);
    assert.deepEqual(await statuses(undefined, 'ann'), [401, 200]);
    assert.deepEqual(asked, [['from+x-key']]);
  });

  it('counts a request that a later limit rejects', async () => {
    const { statuses } = await setUp([byAddress, ...byUser]);
    assert.deepEqual(await statuses('ann', 'ann', 'ann', 'bob'), [200, 200, 429, 429]);
  });

  it('is listed in the headers together with the other limits, and alone on a 401', async () => {
    const { get } = await setUp([...byUser, byAddress]);
    const policyOf = ({ headers }: Response) => headers.get('ratelimit-policy');
    assert.equal(policyOf(await get()), '"from";q=3;w=60');
    const { headers } = await get('ann');
    assert.equal(headers.get('ratelimit-policy'), '"from";q=3;w=60, "user";q=2;w=60');
    assert.match(headers.get('ratelimit') ?? '', /^"from";r=1;t=\d+, "user";r=1;t=\d+$/);
    await get('ann');
    const rejected = await get('ann');
    assert.deepEqual([rejected.status, policyOf(rejected)], [429, '"from";q=3;w=60']);
  });

  for (const [what, statusCounts, expected] of [
    ['omits the last status', [1, 1], '"from";q=9;w=60, "user";q=9;w=60'],
    ['returns one status too many', [3, 1], '"from";q=9;w=60, "network";q=9;w=60, "default";q=9;w=60, "user";q=9;w=60'],
  ] as const)
    it(`keeps its name among later limits, even if the service ${what}`, async () => {
      const currentLimit = { requestsPerUnit: 9, unit: 'minute', windowSeconds: 60, name: undefined } as const;
      const status = { code: 'OK', currentLimit, limitRemaining: 8, resetSeconds: 60 } as const;
      const network: LabelGroup = { name: 'network', labels: [{ kind: 'remote_address', name: 'network' }] };
      const counts = statusCounts.values();
      const statuses = () => Array.from({ length: counts.next().value ?? 0 }, () => status);
      const edge = await startEdge(servers, {
        mappings: [mappingOf({ labels: { gateway: [byAddress, network, ...byUser] } })],
        services: { hotel: async () => {} },
        authService: authRecordOf(),
        authPort: () => ({ outcome: 'allow', headers: { 'x-travel-user': 'ann' } }),
        rateLimitService: limitRecordOf(),
        limiter: { shouldRateLimit: () => ({ overallCode: 'OK', statuses: statuses() }) },
      });
      const { headers } = await fetch(`${edge.origin}/v1/hotels`);
      assert.equal(headers.get('ratelimit-policy'), expected);
    });

  it('is considered for the headers that describe the limit with the smallest remaining quota', async () => {
    const { get } = await setUp([...byUser, byAddress], { headers: 'draft_03' });
    const { headers } = await get('ann');
    assert.deepEqual(
      ['limit', 'remaining'].map((name) => headers.get(`x-ratelimit-${name}`)),
      ['2, 3;w=60, 2;w=60', '1'],
    );
  });
});
