/** Which scripts of other origins may call a mapping, and what they may read of its answers. */
import assert from 'node:assert/strict';
import cors from '@koa/cors';
import Koa from 'koa';
import type { CorsRule } from '#config';
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

/** The headers of an answer that speak of CORS. */
function permissions({ headers }: Response): Record<string, string> {
  return Object.fromEntries([...headers].filter(([name]) => name.startsWith('access-control-')));
}

const readable = {
  'access-control-allow-origin': app,
  'access-control-allow-credentials': 'true',
  'access-control-expose-headers': 'X-Told, X-Request-Id',
};

const permitted = {
  'access-control-allow-origin': app,
  'access-control-allow-credentials': 'true',
  'access-control-allow-methods': 'GET, PUT',
  'access-control-allow-headers': 'X-Asked',
  'access-control-max-age': '600',
};

describe('a mapping with cors', () => {
  const servers = testServers();

  async function setUp(fields: Partial<CorsRule> = {}, options: EdgeOptions = {}) {
    const upstream = await startUpstream(servers);
    const edge = await startEdge(servers, {
      mappings: [mappingOf({ cors: ruleOf(fields) })],
      targets: { hotel: remote(upstream) },
      ...options,
    });
    const ask = (headers: Record<string, string>, method = 'GET', path = '/v1/hotels') =>
      fetch(`${edge.origin}${path}`, { method, headers });
    const preflight = (origin: string, method = 'PUT', path = '/v1/hotels') =>
      ask({ Origin: origin, 'Access-Control-Request-Method': method }, 'OPTIONS', path);
    return { upstream, edge, ask, preflight };
  }

  it('answers a preflight before anybody is asked who or how often', async () => {
    const { preflight, upstream, edge } = await setUp(
      {},
      {
        mappings: [mappingOf({ cors: ruleOf(), labels: { gateway: labelled('origin') } })],
        authService: authRecordOf(),
        authPort: () => assert.fail('asked'),
        rateLimitService: limitRecordOf(),
        limiter: { shouldRateLimit: () => assert.fail('counted') },
      },
    );
    const answer = await preflight(app);
    assert.equal(answer.status, 204);
    assert.deepEqual(permissions(answer), permitted);
    assert.equal(answer.headers.get('vary'), 'Origin');
    assert.equal(upstream.reached.length, 0);
    assert.deepEqual(edge.log, []);
  });

  it('gives no permission to another origin, and asks nobody either', async () => {
    const { preflight, ask, upstream } = await setUp();
    const answer = await preflight('https://evil.example');
    assert.equal(answer.status, 204);
    assert.deepEqual(permissions(answer), {});
    assert.equal(upstream.reached.length, 0);
    for (const origin of ['https://evil.example', 'null', 'https://app.example.evil.example', 'http://app.example']) {
      const actual = await ask({ Origin: origin });
      assert.deepEqual([actual.status, permissions(actual), actual.headers.get('vary')], [200, {}, 'Origin'], origin);
    }
  });

  it('lets the script read what its service answers', async () => {
    const { ask } = await setUp();
    const answer = await ask({ Origin: app });
    assert.equal(answer.status, 200);
    assert.deepEqual(permissions(answer), readable);
  });

  it('says Vary: Origin to clients without an origin too, for the caches between', async () => {
    const { ask } = await setUp();
    const answer = await ask({});
    assert.equal(answer.headers.get('vary'), 'Origin');
    assert.deepEqual(permissions(answer), {});
  });

  it('has the only say: what the service says of CORS is dropped, and of Vary both are kept', async () => {
    const upstream = await startUpstream(servers, (res) =>
      res
        .writeHead(200, {
          'Access-Control-Allow-Origin': '*',
          'Access-Control-Allow-Methods': 'DELETE',
          'Access-Control-Max-Age': '1',
          Vary: 'Accept-Language',
        })
        .end(),
    );
    const { ask } = await setUp({ credentials: false }, { targets: { hotel: remote(upstream) } });
    const { 'access-control-allow-credentials': _, ...expected } = readable;
    const answer = await ask({ Origin: app });
    assert.deepEqual(permissions(answer), expected);
    assert.deepEqual(answer.headers.get('vary')?.split(', ').sort(), ['Accept-Language', 'Origin']);
    assert.deepEqual(permissions(await ask({ Origin: 'https://evil.example' })), {});
  });

  describe('to a service of this process', () => {
    const inner = new Koa();
    inner.use(cors({ origin: () => 'https://theirs.example', credentials: true, exposeHeaders: 'X-Theirs' }));
    inner.use((ctx) => {
      if (ctx.path === '/broken') ctx.throw(409, 'broken');
      ctx.set('Vary', 'Accept-Language');
      ctx.body = 'ok';
    });
    const options: EdgeOptions = { targets: {}, services: { hotel: isolate(inner) } };

    for (const [path, status] of [
      ['/v1/hotels', 200],
      ['/v1/hotels/broken', 409],
    ] as const) {
      it(`has the only say as well, with ${status}`, async () => {
        const { ask } = await setUp({}, options);
        const answer = await ask({ Origin: app }, 'GET', path);
        assert.equal(answer.status, status);
        assert.deepEqual(permissions(answer), readable);
        assert.ok(answer.headers.get('vary')?.includes('Origin'));
        assert.deepEqual(permissions(await ask({ Origin: 'https://evil.example' }, 'GET', path)), {});
      });
    }
  });

  describe('lets the script read refusals and errors', () => {
    const labels = { gateway: labelled('x-key') };
    const over = { shouldRateLimit: () => ({ overallCode: 'OVER_LIMIT', statuses: [] }) as const };
    const limited = { rateLimitService: limitRecordOf(), limiter: over };
    const refusing = { authService: authRecordOf() };
    const html = { 'content-type': 'text/html' };
    const refusals: readonly (readonly [number, string, EdgeOptions])[] = [
      [401, 'of the auth service', { ...refusing, authPort: () => ({ outcome: 'deny', status: 401, headers: {} }) }],
      [
        403,
        'with a body of its own',
        { ...refusing, authPort: () => ({ outcome: 'deny', status: 403, headers: html, body: Buffer.from('no') }) },
      ],
      [503, 'without an answer', { ...refusing, authPort: () => ({ outcome: 'error', reason: 'down' }) }],
      [429, 'of the limiter', { ...limited, mappings: [mappingOf({ labels, cors: ruleOf() })] }],
    ];

    for (const [status, what, options] of refusals) {
      it(`${status} ${what}`, async () => {
        const { ask } = await setUp({}, options);
        const answer = await ask({ Origin: app, 'X-Key': 'a' });
        assert.equal(answer.status, status);
        assert.deepEqual(permissions(answer), readable);
        assert.ok(answer.headers.get('vary')?.includes('Origin'));
      });
    }

    it('404 of the service, and 503 when it is down', async () => {
      const missing = await startUpstream(servers, (res) => res.writeHead(404).end());
      const down = await servers.refusing();
      for (const [service, status] of [
        [missing, 404],
        [down, 503],
      ] as const) {
        const { ask } = await setUp({}, { targets: { hotel: remote(service) } });
        const answer = await ask({ Origin: app });
        assert.deepEqual([answer.status, permissions(answer)], [status, readable]);
      }
    });
  });

  it('with any origin allows no credentials, whatever the rule says', async () => {
    const { ask, preflight } = await setUp({ origins: ['*'] });
    const answer = await ask({ Origin: 'https://any.example' });
    assert.equal(answer.headers.get('access-control-allow-origin'), '*');
    assert.equal(answer.headers.get('access-control-allow-credentials'), null);
    assert.equal((await preflight('https://any.example')).headers.get('access-control-allow-credentials'), null);
  });

  it('leaves out of a preflight what the rule leaves to the browser', async () => {
    const { preflight } = await setUp({ methods: [], headers: [], maxAgeSeconds: undefined, credentials: false });
    assert.deepEqual(permissions(await preflight(app)), { 'access-control-allow-origin': app });
  });

  it('answers a preflight for the mapping that the announced method meets', async () => {
    const upstream = await startUpstream(servers);
    const put = { kind: 'exact', value: 'PUT' } as const;
    const { preflight, edge } = await setUp(
      {},
      {
        mappings: [
          mappingOf({ name: 'write', method: put, cors: ruleOf() }),
          mappingOf({ name: 'read', cors: ruleOf({ methods: ['GET'], credentials: false }) }),
        ],
        targets: { hotel: remote(upstream) },
      },
    );
    const methods = async (method: string) =>
      (await preflight(app, method)).headers.get('access-control-allow-methods');
    assert.equal(await methods('PUT'), 'GET, PUT');
    assert.equal(await methods('GET'), 'GET');
    assert.equal(upstream.reached.length, 0);
    assert.deepEqual(edge.log, []);
  });

  it('leaves other requests with OPTIONS to the service', async () => {
    const { ask, upstream } = await setUp();
    assert.equal((await ask({ Origin: app }, 'OPTIONS')).status, 200);
    assert.equal((await ask({ 'Access-Control-Request-Method': 'PUT' }, 'OPTIONS')).status, 200);
    assert.deepEqual(
      upstream.reached.map(({ method }) => method),
      ['OPTIONS', 'OPTIONS'],
    );
  });

  it('says nothing of other mappings, whose preflights go the way of any request', async () => {
    const { preflight, upstream } = await setUp(
      {},
      { mappings: [mappingOf({ cors: ruleOf() }), mappingOf({ name: 'car', prefix: '/v1/cars' })] },
    );
    const answer = await preflight(app, 'PUT', '/v1/cars');
    assert.deepEqual([answer.status, permissions(answer), answer.headers.get('vary')], [200, {}, null]);
    assert.equal(upstream.only().method, 'OPTIONS');
  });

  it('goes before what a host app around the gateway says of CORS', async () => {
    const { ask } = await setUp({}, { host: [cors({ origin: () => '*', exposeHeaders: 'X-Host' })] });
    assert.deepEqual(permissions(await ask({ Origin: app })), readable);
    assert.deepEqual(permissions(await ask({ Origin: 'https://evil.example' })), {});
  });
});
