/** Formatting an explanation as text for a terminal. */
import assert from 'node:assert/strict';
import { type ExplainRequest, formatExplanation } from '#explain';
import { createLimiter } from '#ratelimit';
import {
  authRecordOf,
  explainOf,
  type GatewayFields,
  gatewayOf,
  gatewayRouteOf,
  labelled,
  limitRecordOf,
  mappingOf,
  redirectOf,
} from '../support/edge.ts';
import { domain, limit, node, unlimited } from '../support/limits.ts';
import { testServers } from '../support/serve.ts';

const elsewhere = {
  kind: 'remote',
  origins: () => ['http://10.0.0.1:9001', 'http://10.0.0.2:9001'],
  path: '',
} as const;

describe('formatExplanation', () => {
  const servers = testServers(after);

  async function read(options: GatewayFields, request: Partial<ExplainRequest> = {}): Promise<string> {
    const gateway = gatewayOf({ resolve: () => elsewhere, ...options });
    servers.later(gateway.close);
    return formatExplanation(await explainOf(gateway)({ method: 'GET', url: '/v1/hotels/x', ...request }));
  }

  const verdict = (text: string) => text.split('\n')[1];

  /** Returns the lines below a heading. */
  function section(text: string, heading: string): readonly string[] {
    const [, ...lines] =
      text
        .trimEnd()
        .split('\n\n')
        .find((block) => block.startsWith(heading))
        ?.split('\n') ?? [];
    return lines.map((line) => line.trim().replace(/ {2,}/g, ' | '));
  }

  it('starts with the request and its outcome', async () => {
    const text = await read({}, { user: 'ann' });
    assert.equal(text.split('\n')[0], 'GET /v1/hotels/x by ann');
    assert.equal(
      verdict(text),
      '  Mapping hotel sends it to hotel (http://10.0.0.1:9001 or http://10.0.0.2:9001) as GET /x',
    );
    assert.ok(text.endsWith('\n') && !text.endsWith('\n\n') && !/[^\S\n]$/m.test(text));
  });

  it('shows the address of a service once if the record names it by its URL', async () => {
    const service = 'http://10.0.0.1:9001';
    const resolve = () => ({ ...elsewhere, origins: () => [service] });
    const text = await read({ mappings: [mappingOf({ service })], resolve });
    assert.equal(verdict(text), '  Mapping hotel sends it to http://10.0.0.1:9001 as GET /x');
  });

  it('summarises the outcome of canaries, redirects, preflights and rejected requests', async () => {
    const redirect = redirectOf({ path: { kind: 'path', value: '/there' }, status: 308 });
    assert.equal(
      verdict(await read({ mappings: [mappingOf({ redirect })] })),
      '  redirected with 308 to http://localhost/there',
    );
    const canary = await read({ mappings: [mappingOf(), mappingOf({ name: 'beta', weight: 20 })] });
    assert.match(verdict(canary) ?? '', /^ {2}Mapping beta \(one of several: weight 20 of 100\) sends it to hotel /);
    assert.match(
      verdict(await read({}, { url: '/x' })) ?? '',
      /^ {2}rejected with 404 \(not-found\): no mapping matches; `frontdesk check` lists all mappings$/,
    );
    const cors = {
      origins: ['https://a.example'],
      methods: ['GET'],
      headers: [],
      exposedHeaders: [],
      credentials: false,
    };
    const mappings = [mappingOf({ cors: { ...cors, maxAgeSeconds: undefined } })];
    const preflightFrom = async (origin: string) => {
      const headers = Object.entries({ Origin: origin, 'Access-Control-Request-Method': 'GET' });
      return read({ mappings }, { method: 'OPTIONS', headers });
    };
    assert.match(verdict(await preflightFrom('https://a.example')) ?? '', /preflight: .* permits the request/);
    assert.match(verdict(await preflightFrom('https://b.example')) ?? '', /preflight: .* does not permit the request/);
  });

  it('shows which RoutePolicy decides about which fields of a route of the Gateway API', async () => {
    const policies = [
      { name: 'RoutePolicy shop/gold', fields: ['auth_service', 'labels'] },
      { name: 'RoutePolicy shop/basic', fields: [] },
    ];
    const text = await read({ mappings: [mappingOf({ gatewayRoute: gatewayRouteOf({ policies }) })] });
    assert.deepEqual(section(text, 'Mapping').slice(-2), [
      'policy | RoutePolicy shop/gold: auth_service, labels',
      'policy | RoutePolicy shop/basic, which decides nothing here',
    ]);
    assert.doesNotMatch(await read({}), /policy/);
  });

  it('shows how each limit counts, and its source in the configuration', async () => {
    const labels = {
      gateway: [...labelled('x-user', 'user'), ...labelled('x-plan', 'plan'), ...labelled('x-city', 'city')],
    };
    const limits = [
      limit(5, 'second', { unitMultiplier: 30, algorithm: 'token_bucket', burst: 20, name: 'slow' }),
      limit(7, 'day', { shadowMode: true }),
    ];
    const limiter = createLimiter({ limits: [domain('gateway', node('user', limits), node('plan', unlimited))] });
    const options = { mappings: [mappingOf({ labels })], rateLimitService: limitRecordOf(), limiter };
    const headers = Object.entries({ 'X-User': 'ann', 'X-Plan': 'gold', 'X-City': 'Rome' });
    assert.deepEqual(section(await read(options, { headers }), 'Rate limit').slice(2, -3), [
      'domain | gateway',
      'descriptor | user=ann',
      '5 per 30 seconds, token bucket of 20, "slow" (limits.yaml:1)',
      '7 per day, shadow mode: counts but never rejects (limits.yaml:1)',
      'descriptor | plan=gold',
      'unlimited (limits.yaml:1)',
      'descriptor | city=Rome',
      'no limit applies',
    ]);
  });

  it('shows time-outs with their source, and the bounds of the cluster', async () => {
    const retryPolicy = { retryOn: ['5xx', 'reset'], numRetries: 2, perTryTimeoutMs: 100, statusCodes: [] } as const;
    const mappings = [mappingOf({ timeoutMs: 0, retryPolicy, allowUpgrade: ['websocket'] })];
    assert.deepEqual(section(await read({ mappings }, { method: 'POST' }), 'Upstream settings'), [
      'protocol | HTTP/1.1',
      'time-out | no limit (mapping), until the response headers',
      'connect | 3000 ms (UPSTREAM_CONNECT_TIMEOUT_MS)',
      'idle body | 60000 ms (default)',
      'body | no limit',
      'balancing | round robin',
      'retries | 2 on 5xx, reset, 100 ms per attempt; not for this method',
      'at most | 1024 connections per address, 1024 pending requests, 1024 active requests, 3 retries',
      'upgrades | websocket, at most 10000 connections',
    ]);
  });

  it('shows that a service is called over HTTP/2', async () => {
    const lines = section(await read({ mappings: [mappingOf({ http2: true })] }), 'Upstream settings');
    assert.equal(lines[0], 'protocol | HTTP/2');
  });

  it('shows the request to the auth service, and how long its decision is cached', async () => {
    const record = authRecordOf({ cacheMs: 500, failureModeAllow: true });
    const lines = section(
      await read({ authServices: [{ record }] }, { headers: [['Authorization', 'Basic abcd']] }),
      'Authen',
    );
    assert.ok(
      lines.includes('headers | authorization: Basic …') && lines.includes('cached | positive decisions for 500 ms'),
    );
    assert.ok(lines.includes('on failure | the request continues without an identity'));
  });
});
