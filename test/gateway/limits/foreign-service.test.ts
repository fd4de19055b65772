/** Limits by another vendor's rate-limit service, which may omit most fields of its response. */
import assert from 'node:assert/strict';
import type { RateLimitService } from '#config';
import { connectRateLimit } from '#ratelimit';
import { labelled, limitRecordOf, mappingOf, startEdge } from '../../support/edge.ts';
import { testServers } from '../../support/serve.ts';
import { startUpstream } from '../../support/upstream.ts';
import { startForeignRateLimitService } from '../../support/wire/foreign-rate-limit-service.ts';

const [OK, OVER_LIMIT, MINUTE] = [1, 2, 2];
const tenAMinute = { requestsPerUnit: 10, unit: MINUTE };

describe("another vendor's rate-limit service", () => {
  const servers = testServers(after);
  let decision: object = {};
  let limiter: ReturnType<typeof connectRateLimit>;
  let upstream: Awaited<ReturnType<typeof startUpstream>>;

  before(async () => {
    const service = await startForeignRateLimitService(() => decision);
    limiter = connectRateLimit({ target: () => ({ host: '127.0.0.1', port: service.port }), timeoutMs: 5_000 });
    servers.later(async () => {
      await limiter.close();
      service.stop();
    });
    upstream = await startUpstream(servers, (res) => res.setHeader('RateLimit-Limit', 'theirs').end('ok'));
  });

  async function ask(next: object, record: Partial<RateLimitService> = {}): Promise<Response> {
    decision = next;
    const edge = await startEdge(servers, {
      mappings: [mappingOf({ labels: { gateway: labelled('x-key') } })],
      rateLimitService: limitRecordOf({ failureModeDeny: true, ...record }),
      limiter,
      upstream,
    });
    return fetch(`${edge.origin}/v1/hotels`, { headers: { 'X-Key': 'a' } });
  }

  const valuesOf = ({ headers }: Response, ...names: string[]) => names.map((name) => headers.get(name));

  /** `expected`: status and headers of the gateway's response. */
  function check(
    what: string,
    returned: object,
    ...expected: [status: number, limit?: string | null, policy?: string | null, retryAfter?: string]
  ) {
    it(what, async () => {
      const response = await ask(returned);
      const [status, state = null, policy = null, retryAfter = null] = expected;
      const values = valuesOf(response, 'ratelimit', 'ratelimit-policy', 'retry-after');
      assert.deepEqual([response.status, ...values], [status, state, policy, retryAfter]);
    });
  }

  const over = (status: object) => ({ overallCode: OVER_LIMIT, statuses: [{ code: OVER_LIMIT, ...status }] });
  const ok = (...statuses: object[]) => ({ overallCode: OK, statuses: statuses.map((one) => ({ code: OK, ...one })) });
  const policy = '"x-key";q=10;w=60';
  const nine = { currentLimit: tenAMinute, limitRemaining: 9 };
  const nineFor30 = { ...nine, durationUntilReset: { seconds: 30 } };
  const unknownUnit = { currentLimit: { requestsPerUnit: 5, unit: 42 }, limitRemaining: 4 };
  const unknownFields = { tomorrow: 'more', quota: { requests: 1, id: 'q' }, statuses: [{ quota: { requests: 2 } }] };
  const after7 = { durationUntilReset: { seconds: 7, nanos: 1 } };

  check('causes no headers when it returns only OK', { overallCode: OK }, 200);
  check('may send unknown fields', { overallCode: OK, ...unknownFields }, 200);
  check('causes no reset when it does not report the end of the window', ok(nine), 200, '"x-key";r=9', policy);
  check(
    'may use unknown units, whose limits are omitted from the headers',
    ok(unknownUnit, { ...nineFor30, code: 77 }),
    ...([200, '"default";r=9;t=30', '"default";q=10;w=60'] as const),
  );
  const exhausted = over({ currentLimit: tenAMinute });
  check(
    'makes clients wait for the window when it rejects without a time',
    exhausted,
    429,
    '"x-key";r=0',
    policy,
    '60',
  );
  check('makes clients wait for a second when it rejects without a limit', over({}), 429, null, null, '1');
  check(
    'makes clients wait for a second when it rejects without a status',
    ...([{ overallCode: OVER_LIMIT }, 429, null, null, '1'] as const),
  );
  check('makes clients wait for the time that it reports, rounded up', over(after7), 429, null, null, '8');
  check('counts as down when it returns an unknown code', { overallCode: 77 }, 503, null, null, '1');

  it('lets requests pass when it returns an unknown code with failure_mode_deny: false', async () =>
    assert.equal((await ask({ overallCode: 77 }, { failureModeDeny: false })).status, 200));

  it('can set only the headers that the record allows, as text or bytes, even on a 429', async () => {
    const plan = { key: 'RateLimit-Limit', value: '10' };
    const responseHeadersToAdd = [plan, { key: 'Set-Cookie', value: 'a=1' }];
    const bytes = [{ key: 'ratelimit-limit', rawValue: Buffer.from('10') }];
    for (const returned of [
      { overallCode: OK, responseHeadersToAdd },
      { overallCode: OVER_LIMIT, responseHeadersToAdd },
      { overallCode: OK, responseHeadersToAdd: bytes },
    ])
      assert.deepEqual(valuesOf(await ask(returned), 'ratelimit-limit', 'set-cookie'), ['10', null]);
  });

  it('can set a header to text or bytes that are not ASCII', async () => {
    for (const more of [{ value: 'Jörg 文件' }, { rawValue: Buffer.from('Jörg 文件') }]) {
      const returned = { overallCode: OK, responseHeadersToAdd: [{ key: 'ratelimit-limit', ...more }] };
      const [sent] = valuesOf(await ask(returned), 'ratelimit-limit');
      assert.equal(Buffer.from(sent ?? '', 'latin1').toString(), 'Jörg 文件');
    }
  });

  it("cannot replace the gateway's own headers", async () => {
    const returned = { ...ok(nineFor30), responseHeadersToAdd: [{ key: 'x-ratelimit-limit', value: '10' }] };
    const response = await ask(returned, { headers: 'draft_03', allowedResponseHeaders: ['x-ratelimit-limit'] });
    assert.deepEqual(valuesOf(response, 'x-ratelimit-limit'), ['10, 10;w=60']);
  });
});
