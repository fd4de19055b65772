/** The rate-limit stage, with a limiter that decides synchronously or asynchronously. */
import assert from 'node:assert/strict';
import type { Label, Mapping } from '#config';
import {
  connectRateLimit,
  createLimiter,
  type Decision,
  type DescriptorStatus,
  type Limiter,
  serveRateLimit,
} from '#ratelimit';
import { createLimitStage } from '../../../src/gateway/limits/stage.ts';
import { type EdgeOptions, labelled, limitRecordOf, mappingOf, startEdge } from '../../support/edge.ts';
import { domain, limit, node } from '../../support/limits.ts';
import { testServers } from '../../support/serve.ts';
import { startUpstream } from '../../support/upstream.ts';
import { rawRequest, sendRaw, statusOf } from '../../support/wire/raw-client.ts';

const currentLimit = { requestsPerUnit: 10, unit: 'minute', windowSeconds: 60, name: undefined } as const;
const status: DescriptorStatus = { code: 'OK', currentLimit, limitRemaining: 9, resetSeconds: 30 };
const ok: Decision = { overallCode: 'OK', statuses: [status] };
const exhausted: DescriptorStatus = { ...status, code: 'OVER_LIMIT', limitRemaining: 0 };
const over: Decision = { overallCode: 'OVER_LIMIT', statuses: [exhausted] };
const broken = (): never => {
  throw new Error('connect 10.0.0.7:8081');
};

describe('rate limiting', () => {
  const servers = testServers();

  async function setUp(shouldRateLimit: Limiter['shouldRateLimit'], options: EdgeOptions = {}) {
    const upstream = await startUpstream(servers, (res) => res.setHeader('RateLimit', 'theirs').end('ok'));
    const edge = await startEdge(servers, {
      mappings: [mappingOf({ labels: { gateway: labelled('x-key') } })],
      rateLimitService: limitRecordOf(),
      limiter: { shouldRateLimit },
      upstream,
      ...options,
    });
    const get = (headers: Record<string, string> = { 'X-Key': 'a' }) => fetch(`${edge.origin}/v1/hotels`, { headers });
    return { upstream, edge, get };
  }

  it('does not call the limiter for a request without labels, or with labels of another domain', async () => {
    const other = { mappings: [mappingOf({ labels: { other: labelled('x-key') } })] };
    for (const [headers, options] of [[{}], [undefined, other]] as const) {
      const { get, edge } = await setUp(() => assert.fail('asked'), options);
      const response = await get(headers);
      assert.deepEqual([response.status, response.headers.get('ratelimit')], [200, 'theirs']);
      assert.deepEqual(edge.gateway.snapshot().ratelimit, { ok: 0, over: 0, error: 0 });
    }
  });

  const spellings: readonly (readonly [
    string,
    Partial<Mapping>,
    Label,
    limit: string,
    readonly (readonly [string, string])[],
  ])[] = [
    [
      'a host',
      { host: { kind: 'exact', value: 'a.example' } },
      { kind: 'header', name: 'site', header: 'host', omitIfNotPresent: false, default: '' },
      'site=a.example',
      ['a.example', 'A.example', 'a.example:81', 'a.example.'].map((host) => ['/v1/hotels', host]),
    ],
    [
      'a path under a regex that ignores case',
      { prefix: '(?i)/v1/.*', prefixMatch: 'regex', rewrite: '' },
      { kind: 'path', name: 'at' },
      'at=/v1/hotels',
      ['/v1/hotels', '/V1/hotels', '/v1/hOtels', '/v1/hotel%73'].map((path) => [path, 'x']),
    ],
  ];
  for (const [what, match, label, limited, requests] of spellings)
    it(`counts all spellings of ${what} together`, async () => {
      const limits = [domain('gateway', node(limited, limit(1, 'year')))];
      const mappings = [mappingOf({ ...match, labels: { gateway: [{ name: 'all', labels: [label] }] } })];
      const { edge } = await setUp(createLimiter({ limits }).shouldRateLimit, { mappings });
      const statuses: number[] = [];
      for (const [path, host] of requests)
        statuses.push(statusOf(await sendRaw(edge.port, rawRequest(`GET ${path}`).replace('front.example', host))));
      assert.deepEqual(statuses, [200, 429, 429, 429]);
    });

  it('counts paths in different case separately under a regex that does not ignore case', async () => {
    const limits = [domain('gateway', node('at', limit(1, 'year')))];
    const labels = { gateway: [{ name: 'all', labels: [{ kind: 'path', name: 'at' }] }] } as const;
    const mappings = [mappingOf({ prefix: '/[vV]1/.*', prefixMatch: 'regex', rewrite: '', labels })];
    const { edge } = await setUp(createLimiter({ limits }).shouldRateLimit, { mappings });
    for (const path of ['/v1/hotels', '/V1/hotels']) assert.equal((await fetch(edge.origin + path)).status, 200);
  });

  const wait = 'Send the request again after 30 seconds.';
  const both = [{ ...exhausted, currentLimit: { ...currentLimit, name: 'burst' } }, status, exhausted];
  for (const [what, headers, statuses, detail] of [
    [
      'the exhausted limits',
      'ietf',
      both,
      `The limits "burst" of 10 requests in 60 seconds and "default" of 10 requests in 60 seconds are exhausted. ${wait}`,
    ],
    ['only the wait, if the record hides the limits', 'none', both, `A limit is exhausted. ${wait}`],
    [
      'only the wait, if the service does not report the limit',
      'ietf',
      [{ ...exhausted, currentLimit: undefined }],
      `A limit is exhausted. ${wait}`,
    ],
  ] as const)
    it(`names ${what} in the detail of a 429`, async () => {
      const { get } = await setUp(() => ({ overallCode: 'OVER_LIMIT', statuses }), {
        rateLimitService: { ...limitRecordOf(), headers },
      });
      const response = await get();
      assert.equal(((await response.json()) as { detail: string }).detail, detail);
    });

  it('counts long values against a limit with a wildcard', async () => {
    const limits = [domain('gateway', { ...node('x-key=*bot*', limit(2, 'year')), shareThreshold: true })];
    const { get } = await setUp(createLimiter({ limits }).shouldRateLimit);
    const statuses: number[] = [];
    for (const key of ['bot', 'bot', `bot${'x'.repeat(8_000)}`, `${'x'.repeat(8_000)}bot`])
      statuses.push((await get({ 'X-Key': key })).status);
    assert.deepEqual(statuses, [200, 200, 429, 429]);
  });

  it('counts long values of many labels, which a rate-limit service accepts in one request', async () => {
    const service = await serveRateLimit({
      limiter: createLimiter({ limits: [domain('gateway', node('k0', limit(2, 'year')))] }),
      port: 0,
      logger: { error: assert.fail },
    });
    const client = connectRateLimit({ target: () => ({ host: '127.0.0.1', port: service.port }), timeoutMs: 5_000 });
    servers.later(async () => {
      await client.close();
      await service.close(0);
    });
    const gateway = Array.from({ length: 40 }, (_, index) => labelled('x-key', `k${index}`)).flat();
    const { get } = await setUp(client.shouldRateLimit, {
      mappings: [mappingOf({ labels: { gateway } })],
      rateLimitService: limitRecordOf({ timeoutMs: 5_000 }),
    });
    const key = 'é'.repeat(15_000);
    const statuses: number[] = [];
    for (let times = 0; times < 3; times += 1) statuses.push((await get({ 'X-Key': key })).status);
    assert.deepEqual(statuses, [200, 200, 429]);
  });

  const policy = '"x-key";q=10;w=60';
  const none = { ok: 0, over: 0, error: 0 };
  const deny = limitRecordOf({ failureModeDeny: true });
  const refused = `${JSON.stringify({
    code: 429,
    message: '429: Too Many Requests',
    detail: `The limit "x-key" of 10 requests in 60 seconds is exhausted. ${wait}`,
  })}\n`;
  const unavailable = '{"code":503,"message":"503: Service Unavailable"}\n';

  /**
   * `expected`: status, body, policy, state and Retry-After of the response, the counts of decisions, and the log line.
   */
  for (const [what, decide, rateLimitService, ...expected] of [
    [
      'replaces the RateLimit headers of the service',
      () => ok,
      limitRecordOf(),
      200,
      'ok',
      policy,
      '"x-key";r=9;t=30',
      null,
      { ...none, ok: 1 },
    ],
    [
      'rejects with 429 and Retry-After beyond the limit',
      () => over,
      limitRecordOf(),
      429,
      refused,
      policy,
      '"x-key";r=0;t=30',
      '30',
      { ...none, over: 1 },
    ],
    [
      'continues without a decision, and counts and logs the failure',
      broken,
      limitRecordOf(),
      200,
      'ok',
      null,
      'theirs',
      null,
      { ...none, error: 1 },
      ['warn', 'hotel', false],
    ],
    [
      'rejects without a decision with failure_mode_deny, and does not expose the reason',
      broken,
      deny,
      503,
      unavailable,
      null,
      null,
      '1',
      { ...none, error: 1 },
      ['warn', 'hotel', true],
    ],
  ] as const)
    for (const [when, limiter] of [
      ['synchronously', () => decide()],
      ['asynchronously', async () => decide()],
    ] as const)
      it(`${what}, with a limiter that decides ${when}`, async () => {
        const { get, edge, upstream } = await setUp(limiter, { rateLimitService });
        const response = await get();
        const headers = ['ratelimit-policy', 'ratelimit', 'retry-after'].map((name) => response.headers.get(name));
        const decisions = edge.log.filter(({ fields }) => 'denied' in fields);
        const logged = decisions.map(({ level, fields }) => [level, fields['mapping'], fields['denied']]);
        const seen = [response.status, await response.text(), ...headers, edge.gateway.snapshot().ratelimit, ...logged];
        assert.deepEqual(seen, expected);
        assert.equal(upstream.reached.length, response.status === 200 ? 1 : 0);
      });

  it('leaves an outage of the counters in this process to the log of their server', async () => {
    const { get, edge } = await setUp(() => {
      throw Object.assign(new Error('down'), { name: 'CountersUnavailable' });
    });
    assert.equal((await get()).status, 200);
    assert.deepEqual(edge.log, []);
  });

  for (const decision of [ok, over])
    it(`ends an outage with a decision (${decision.overallCode})`, async () => {
      const ends: string[] = [];
      const askLimiter = createLimitStage({
        record: limitRecordOf(),
        limiter: { shouldRateLimit: () => decision },
        counts: { ok: 0, over: 0, error: 0 },
        onError: assert.fail,
        outage: { failed: assert.fail, answered: () => void ends.push(decision.overallCode) },
      });
      const request = { ctx: { res: { setHeader() {} } }, statuses: [], descriptors: [] };
      try {
        await askLimiter(request as never, [{ entries: [{ key: 'x-key', value: 'a' }] }]);
      } catch {}
      assert.deepEqual(ends, [decision.overallCode]);
    });

  const soon = limitRecordOf({ timeoutMs: 20 });
  for (const [what, returned, reason] of [
    ['does not respond', new Promise(() => {}), /^it did not respond within 20 ms$/],
    ['returns undefined', undefined, /^the limiter returned undefined, which is not a valid decision$/],
    ['returns no statuses', { overallCode: 'OK' }, /returned \{ overallCode \}, which is not a valid decision$/],
    [
      'returns NaN',
      { ...ok, statuses: [{ ...status, limitRemaining: Number.NaN }] },
      /\{ overallCode, statuses \}, which is not a valid decision$/,
    ],
  ] as const)
    for (const [when, limiter] of [
      ['synchronously', () => returned],
      ['asynchronously', async () => returned],
    ] as const)
      it(`has no decision when a custom limiter ${what}, ${when}`, async () => {
        for (const [rateLimitService, expected] of [
          [soon, 200],
          [{ ...soon, failureModeDeny: true }, 503],
        ] as const) {
          const { get, edge } = await setUp(limiter as Limiter['shouldRateLimit'], { rateLimitService });
          assert.equal((await get()).status, expected);
          const lines = edge.log.filter(({ fields }) => 'denied' in fields);
          assert.match(lines.map(({ fields }) => (fields['err'] as Error).message).join('\n'), reason);
        }
      });
});
