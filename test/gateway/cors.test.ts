/** The CORS rule of a mapping: responses to preflights, and responses that scripts of other origins may read. */
import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import cors from '@koa/cors';
import Koa from 'koa';
import type { CorsRule, LabelGroup } from '#config';
import { isolate } from '#http';
import {
  authRecordOf,
  type EdgeOptions,
  labelled,
  limitRecordOf,
  mappingOf,
  remote,
  startEdge,
} from '../support/edge.ts';
import { testServers } from '../support/serve.ts';
import { startUpstream } from '../support/upstream.ts';

const app = 'https://app.example';

function ruleOf(fields: Partial<CorsRule> = {}): CorsRule {
  return {
    origins: [app],
    methods: ['GET', 'PUT'],
    headers: ['X-Asked'],
    exposedHeaders: ['X-Told', 'X-Request-Id'],
    credentials: true,
    maxAgeSeconds: 600,
    ...fields,
  };
}

/** Returns the CORS headers of a response. */
function permissions({ headers }: Response): Record<string, string> {
  return Object.fromEntries([...headers].filter(([name]) => name.startsWith('access-control-')));
}

const allowed = {
  'access-control-allow-origin': app,
  'access-control-allow-credentials': 'true',
};

const readable = {
  ...allowed,
  'access-control-expose-headers': 'X-Told, X-Request-Id',
};

const permitted = {
  ...allowed,
  'access-control-allow-methods': 'GET, PUT',
  'access-control-allow-headers': 'X-Asked',
  'access-control-max-age': '600',
};

const body = Buffer.from('no');
const byAddress: LabelGroup = { name: 'address', labels: [{ kind: 'remote_address', name: 'from' }] };
const limitedBy = (groups: readonly LabelGroup[]) => mappingOf({ labels: { gateway: groups }, cors: ruleOf() });
const denied = (status: number, headers = {}) => ({ outcome: 'deny', status, headers }) as const;
const failed = { outcome: 'error', reason: 'down' } as const;
const missing = (res: ServerResponse) => res.writeHead(404).end();

describe('a mapping with cors', () => {
  const servers = testServers();

  async function setUp(fields: Partial<CorsRule> = {}, options: EdgeOptions = {}) {
    const upstream = await startUpstream(servers);
    const edge = await startEdge(servers, {
      mappings: [mappingOf({ cors: ruleOf(fields) })],
      upstream,
      ...options,
    });
    const ask = (headers: Record<string, string>, method = 'GET', path = '/v1/hotels') =>
      fetch(`${edge.origin}${path}`, { method, headers });
    const preflight = (origin: string, method = 'PUT', path = '/v1/hotels') =>
      ask({ Origin: origin, 'Access-Control-Request-Method': method }, 'OPTIONS', path);
    return { upstream, edge, ask, preflight };
  }

  it('can allow all subdomains of a domain, with credentials', async () => {
    const { ask, preflight } = await setUp({ origins: ['https://*.shop.example'] });
    const origin = 'https://eu.shop.example';
    for (const respond of [() => ask({ Origin: origin }), () => preflight(origin)]) {
      const { 'access-control-allow-origin': allowed, 'access-control-allow-credentials': credentials } = permissions(
        await respond(),
      );
      assert.deepEqual([allowed, credentials], [origin, 'true']);
    }
    assert.deepEqual(permissions(await ask({ Origin: 'https://evil-shop.example' })), {});
    assert.deepEqual(permissions(await preflight('https://shop.example')), {});
  });

  it('responds to preflights without authentication and without counting them', async () => {
    const { preflight, upstream, edge } = await setUp(
      {},
      {
        mappings: [mappingOf({ cors: ruleOf(), labels: { gateway: [...labelled('origin'), byAddress] } })],
        authService: authRecordOf(),
        authPort: () => assert.fail('asked'),
        rateLimitService: limitRecordOf(),
        limiter: { shouldRateLimit: () => assert.fail('counted') },
      },
    );
    const response = await preflight(app);
    assert.deepEqual(
      [response.status, permissions(response), response.headers.get('vary')],
      [204, permitted, 'Origin'],
    );
    assert.equal(upstream.reached.length, 0);
    assert.deepEqual(edge.log, []);
  });

  it('denies other origins, and sends Vary: Origin for shared caches', async () => {
    const { preflight, ask } = await setUp();
    const denied = await preflight('https://evil.example');
    assert.deepEqual([denied.status, permissions(denied)], [204, {}]);
    const origins = ['https://evil.example', 'null', 'https://app.example.evil.example', 'http://app.example'];
    for (const headers of [{}, ...origins.map((origin) => ({ Origin: origin }))]) {
      const response = await ask(headers);
      assert.deepEqual([response.status, permissions(response), response.headers.get('vary')], [200, {}, 'Origin']);
    }
  });

  for (const [vary, expected] of [
    ['Origin', 'Origin'],
    ['origin, Accept', 'Origin, Accept'],
    ['Accept, Origin', 'Origin, Accept'],
  ] as const)
    it(`sends Vary: Origin once if the service sends Vary: ${vary}`, async () => {
      const upstream = await startUpstream(servers, (res) => res.writeHead(200, { Vary: vary }).end());
      const edge = await startEdge(servers, { mappings: [mappingOf({ cors: ruleOf() })], upstream });
      const { headers } = await fetch(`${edge.origin}/v1/hotels`, { headers: { Origin: app } });
      assert.equal(headers.get('vary'), expected);
    });

  it('replaces the CORS headers of the service, and keeps both values of Vary', async () => {
    const theirs = {
      'Access-Control-Allow-Origin': '*',
      'Access-Control-Allow-Methods': 'DELETE',
      'Access-Control-Max-Age': '1',
      Vary: 'Accept-Language',
    };
    const upstream = await startUpstream(servers, (res) => res.writeHead(200, theirs).end());
    const { ask } = await setUp({ credentials: false }, { upstream });
    const { 'access-control-allow-credentials': _, ...expected } = readable;
    const response = await ask({ Origin: app });
    assert.deepEqual(permissions(response), expected);
    assert.deepEqual(response.headers.get('vary')?.split(', ').sort(), ['Accept-Language', 'Origin']);
    assert.deepEqual(permissions(await ask({ Origin: 'https://evil.example' })), {});
  });

  it('replaces the headers of @koa/cors in a service in this process, even on errors', async () => {
    const inner = new Koa();
    inner.use(cors({ origin: () => 'https://theirs.example', credentials: true, exposeHeaders: 'X-Theirs' }));
    inner.use((ctx) => {
      if (ctx.path === '/broken') ctx.throw(409, 'broken');
      ctx.body = 'ok';
    });
    const { ask } = await setUp({}, { targets: {}, services: { hotel: isolate(inner) } });
    for (const [path, status] of [
      ['/v1/hotels', 200],
      ['/v1/hotels/broken', 409],
    ] as const) {
      const response = await ask({ Origin: app }, 'GET', path);
      assert.deepEqual([response.status, permissions(response)], [status, readable]);
      assert.ok(response.headers.get('vary')?.includes('Origin'));
      assert.deepEqual(permissions(await ask({ Origin: 'https://evil.example' }, 'GET', path)), {});
    }
  });

  const over = { shouldRateLimit: () => ({ overallCode: 'OVER_LIMIT', statuses: [] }) as const };
  const limited = { rateLimitService: limitRecordOf(), limiter: over };
  const authenticated = { authService: authRecordOf() };
  const html = { 'content-type': 'text/html' };
  const responses: readonly (readonly [status: number, what: string, options: () => Promise<EdgeOptions>])[] = [
    [401, 'from the auth service', async () => ({ ...authenticated, authPort: () => denied(401) })],
    [
      403,
      'with a body from the auth service',
      async () => ({ ...authenticated, authPort: () => ({ ...denied(403, html), body }) }),
    ],
    [503, 'when the auth service fails', async () => ({ ...authenticated, authPort: () => failed })],
    [429, 'from a limit after authentication', async () => ({ ...limited, mappings: [limitedBy(labelled('x-key'))] })],
    [429, 'from a limit before authentication', async () => ({ ...limited, mappings: [limitedBy([byAddress])] })],
    [200, 'from the service', async () => ({})],
    [404, 'from the service', async () => ({ targets: { hotel: remote(await startUpstream(servers, missing)) } })],
    [503, 'when the service is down', async () => ({ targets: { hotel: remote(await servers.refusing()) } })],
  ];

  for (const [status, what, options] of responses) {
    it(`lets scripts read a ${status} ${what}`, async () => {
      const { ask } = await setUp({}, await options());
      const response = await ask({ Origin: app, 'X-Key': 'a' });
      assert.deepEqual([response.status, permissions(response)], [status, readable]);
      assert.ok(response.headers.get('vary')?.includes('Origin'));
    });
  }

  it('never permits credentials for any origin, even if the rule does', async () => {
    const { ask, preflight } = await setUp({ origins: ['*'] });
    for (const response of [await ask({ Origin: 'https://any.example' }), await preflight('https://any.example')]) {
      assert.equal(response.headers.get('access-control-allow-origin'), '*');
      assert.equal(response.headers.get('access-control-allow-credentials'), null);
    }
  });

  it('sends no headers in response to a request without Origin, even if any origin is permitted', async () => {
    const { ask } = await setUp({ origins: ['*'] });
    assert.deepEqual(permissions(await ask({})), {});
  });

  it('sets the headers before a service in this process sends the response itself', async () => {
    const hotel = isolate(async (ctx) => {
      ctx.respond = false;
      ctx.res.end('sent');
    });
    const { ask, edge } = await setUp({}, { targets: {}, services: { hotel } });
    const response = await ask({ Origin: app });
    assert.deepEqual([await response.text(), permissions(response)], ['sent', readable]);
    assert.deepEqual(edge.log, []);
  });

  it('omits headers that the rule does not set from a preflight response', async () => {
    const { preflight } = await setUp({ methods: [], headers: [], maxAgeSeconds: undefined, credentials: false });
    assert.deepEqual(permissions(await preflight(app)), { 'access-control-allow-origin': app });
  });

  it('permits no headers if the rule lists none, whatever a preflight names', async () => {
    const { ask } = await setUp({ headers: [] });
    const asking = { 'Access-Control-Request-Method': 'PUT', 'Access-Control-Request-Headers': 'x-secret' };
    const { 'access-control-allow-headers': _, ...expected } = permitted;
    assert.deepEqual(permissions(await ask({ Origin: app, ...asking }, 'OPTIONS')), expected);
  });

  it('lets browsers cache a preflight for no time with max_age: 0', async () => {
    const { preflight } = await setUp({ maxAgeSeconds: 0 });
    assert.equal((await preflight(app)).headers.get('access-control-max-age'), '0');
  });

  it('lets scripts read the response to an OPTIONS request that is no preflight', async () => {
    const { ask, upstream } = await setUp();
    assert.deepEqual(permissions(await ask({ Origin: app }, 'OPTIONS')), readable);
    assert.equal(upstream.only().method, 'OPTIONS');
  });

  it('forwards a preflight for a mapping without a rule that its own method takes to one with a rule', async () => {
    const options = { kind: 'exact', value: 'OPTIONS' } as const;
    const mappings = [mappingOf({ name: 'own', method: options, cors: ruleOf() }), mappingOf()];
    const { preflight, upstream } = await setUp({}, { mappings });
    const response = await preflight(app);
    assert.deepEqual([response.status, permissions(response)], [200, readable]);
    assert.equal(upstream.only().method, 'OPTIONS');
  });

  it('responds to a preflight with the rule of the mapping that matches the announced method', async () => {
    const put = { kind: 'exact', value: 'PUT' } as const;
    const read = mappingOf({ name: 'read', cors: ruleOf({ methods: ['GET'], credentials: false }) });
    const mappings = [mappingOf({ name: 'write', method: put, cors: ruleOf() }), read];
    const { preflight, upstream } = await setUp({}, { mappings });
    const methodsFor = async (method: string) =>
      (await preflight(app, method)).headers.get('access-control-allow-methods');
    assert.deepEqual([await methodsFor('PUT'), await methodsFor('GET')], ['GET, PUT', 'GET']);
    assert.equal(upstream.reached.length, 0);
  });

  it('forwards other OPTIONS requests, and preflights for mappings without a rule, to the service', async () => {
    const mappings = [mappingOf({ cors: ruleOf() }), mappingOf({ name: 'car', prefix: '/v1/cars' })];
    const { ask, preflight, upstream } = await setUp({}, { mappings });
    assert.equal((await ask({ Origin: app }, 'OPTIONS')).status, 200);
    assert.equal((await ask({ 'Access-Control-Request-Method': 'PUT' }, 'OPTIONS')).status, 200);
    const response = await preflight(app, 'PUT', '/v1/cars');
    assert.deepEqual([response.status, permissions(response), response.headers.get('vary')], [200, {}, null]);
    assert.equal(upstream.reached.map(({ method }) => method).join(), 'OPTIONS,OPTIONS,OPTIONS');
  });

  describe('and grpc: true', () => {
    const grpc = {
      methods: ['POST'],
      headers: ['authorization', 'x-grpc-web'],
      exposedHeaders: ['cart-id', 'grpc-message'],
    };
    const calls = (fields: Partial<CorsRule> = grpc) => ({
      mappings: [mappingOf({ grpc: true, cors: ruleOf(fields) })],
    });

    it('lets clients of gRPC-Web send and read what they need, without a rule that lists it', async () => {
      const { preflight, edge } = await setUp(
        {},
        { ...calls(), authService: authRecordOf(), authPort: () => denied(401) },
      );
      const { 'access-control-allow-headers': sent } = permissions(await preflight(app, 'POST'));
      assert.equal(sent, 'authorization, x-grpc-web, Content-Type, Grpc-Timeout, X-User-Agent');
      const headers = { Origin: app, 'Content-Type': 'application/grpc-web+proto' };
      const response = await fetch(`${edge.origin}/v1/hotels/x`, { method: 'POST', headers });
      const { 'access-control-expose-headers': read } = permissions(response);
      assert.deepEqual([response.status, response.headers.get('grpc-status')], [200, '16']);
      assert.equal(read, 'cart-id, grpc-message, Grpc-Status, Grpc-Status-Details-Bin');
    });

    it('allows these headers also if its rule lists none', async () => {
      const { preflight } = await setUp({}, calls({ methods: ['POST'], headers: [], exposedHeaders: [] }));
      const { 'access-control-allow-headers': sent } = permissions(await preflight(app, 'POST'));
      assert.equal(sent, 'Content-Type, Grpc-Timeout, X-Grpc-Web, X-User-Agent');
    });
  });

  it('replaces the CORS headers of a host app around the gateway', async () => {
    const { ask } = await setUp({}, { host: [cors({ origin: () => '*', exposeHeaders: 'X-Host' })] });
    assert.deepEqual(permissions(await ask({ Origin: app })), readable);
    assert.deepEqual(permissions(await ask({ Origin: 'https://evil.example' })), {});
  });
});
