/** Ambiguous paths, by what differs between the mapping that matches and what else the path can mean. */
import assert from 'node:assert/strict';
import type { LabelGroup, Mapping, Version } from '#config';
import {
  authRecordOf,
  type EdgeOptions,
  gatewayRouteOf,
  labelled,
  limitRecordOf,
  mappingOf,
  redirectOf,
  startEdge,
} from '../support/edge.ts';
import { testServers } from '../support/serve.ts';
import { rawRequest, sendRaw, statusOf } from '../support/wire/raw-client.ts';

const servers = testServers();

const byPath: readonly LabelGroup[] = [{ name: 'path', labels: [{ kind: 'path', name: 'path' }] }];
const byService: readonly LabelGroup[] = [{ name: 'to', labels: [{ kind: 'destination_cluster', name: 'to' }] }];
const noHeaders = { add: [], remove: [] };

/** Starts a gateway with one mapping for each name, and returns a function that requests paths and lists the statuses. */
async function setUp(mappings: Readonly<Record<string, Partial<Mapping>>>, options: EdgeOptions = {}) {
  const records = Object.entries(mappings).map(([name, fields]) => mappingOf({ name, rewrite: '', ...fields }));
  const { port } = await startEdge(servers, {
    mappings: records,
    services: { hotel: async ({ response }) => void Object.assign(response, { body: 'seen' }), car: async () => {} },
    authService: authRecordOf(),
    authPort: () => ({ outcome: 'allow', headers: {} }),
    rateLimitService: limitRecordOf(),
    limiter: { shouldRateLimit: () => ({ overallCode: 'OK', statuses: [] }) },
    ...options,
  });
  return async (...paths: readonly string[]) => {
    const statuses: number[] = [];
    for (const path of paths) statuses.push(Number(statusOf(await sendRaw(port, rawRequest(`GET ${path}`)))));
    return statuses;
  };
}

/** Other spellings of `/login`. */
const spellings = ['/LOGIN', '/login;x', '/login%2F', '/login%3Fx', '/login.', '/;x/login', '/login%2Fx', '/%2Flogin'];

describe('another spelling of a path is rejected when its mapping differs in', () => {
  const fields: Readonly<Record<string, Partial<Mapping>>> = {
    authentication: { bypassAuth: true },
    'its limits': { labels: { gateway: labelled('x-client') } },
    max_request_bytes: { maxRequestBytes: 1000 },
    timeout_ms: { timeoutMs: 1000 },
    circuit_breakers: { circuitBreakers: { ...mappingOf().circuitBreakers, maxRequests: 5 } },
    remove_request_headers: { requestHeaders: { ...noHeaders, remove: ['x-debug'] } },
    add_request_headers: { requestHeaders: { ...noHeaders, add: [{ name: 'x-zone', value: 'a', append: false }] } },
    add_response_headers: {
      responseHeaders: { ...noHeaders, add: [{ name: 'x-frame-options', value: 'DENY', append: false }] },
    },
    cors: {
      cors: {
        origins: ['*'],
        methods: [],
        headers: [],
        exposedHeaders: [],
        credentials: false,
        maxAgeSeconds: undefined,
      },
    },
    allow_upgrade: { allowUpgrade: ['websocket'] },
  };
  for (const [name, given] of Object.entries(fields))
    it(name, async () => {
      const ask = await setUp({ open: { prefix: '/' }, login: { prefix: '/login', ...given } });
      assert.deepEqual(await ask('/login', '/login/x', '/', '/a;b.txt', '/Open'), [200, 200, 200, 200, 200]);
      assert.deepEqual(
        await ask(...spellings),
        Array.from(spellings, () => 400),
      );
    });

  it('the limits of each service', async () => {
    const labels = { gateway: byService };
    const ask = await setUp({ open: { prefix: '/', labels }, login: { prefix: '/login', labels, service: 'car' } });
    assert.deepEqual(await ask('/login', '/LOGIN'), [404, 400]);
  });

  it('nothing of that, but both share their requests with others that do', async () => {
    const canary = { maxRequestBytes: 1000, weight: 50 };
    const ask = await setUp({
      open: { prefix: '/' },
      login: { prefix: '/login', weight: 50 },
      canary: { prefix: '/login', ...canary },
    });
    assert.deepEqual(await ask('/login', '/LOGIN', '/login/a%20b'), [200, 400, 200]);
  });

  for (const [name, sunset] of [
    ['the sunset of its Version', Date.UTC(2020, 1)],
    ['the announced sunset of its Version', Date.UTC(2100, 1)],
  ] as const)
    it(name, async () => {
      const source = { file: 'test.yaml', line: 1 };
      const version: Version = {
        kind: 'Version',
        name: 'first',
        prefix: '/login',
        deprecatedAtMs: undefined,
        endsAtMs: sunset,
        successor: undefined,
        info: undefined,
        source,
      };
      const ask = await setUp({ open: { prefix: '/' } }, { versions: [version] });
      assert.deepEqual(await ask('/login', '/login/x'), sunset < Date.now() ? [410, 410] : [200, 200]);
      assert.deepEqual(
        await ask(...spellings),
        Array.from(spellings, () => 400),
      );
      assert.deepEqual(await ask('/Open', '/a;b'), [200, 200]);
    });
});

describe('another spelling of a path is accepted', () => {
  it('when the mappings differ only in where requests go', async () => {
    const ask = await setUp({
      open: { prefix: '/' },
      login: { prefix: '/login', rewrite: '/x', retryPolicy: undefined },
    });
    assert.deepEqual(
      await ask(...spellings),
      Array.from(spellings, () => 200),
    );
  });

  it('when the mappings come from different routes of the Gateway API, in whose order the host comes first', async () => {
    const host = { kind: 'suffix', value: '.example' } as const;
    const [gatewayRoute, other] = ['a', 'b'].map((place) => gatewayRouteOf({ place }));
    const ask = await setUp({
      all: { prefix: '/', host, gatewayRoute },
      login: { prefix: '/login', host, gatewayRoute: other },
      guarded: { prefix: '/login/admin', bypassAuth: true },
    });
    assert.deepEqual(await ask('/LOGIN', '/LOGIN/admin'), [200, 200]);
  });

  it('when labels have no effect, because there is no limiter for their domain', async () => {
    const labels = { elsewhere: labelled('x-client') };
    const ask = await setUp({ open: { prefix: '/' }, login: { prefix: '/login', labels } });
    assert.deepEqual(await ask('/LOGIN'), [200]);
  });

  it('when it names the default auth service or not', async () => {
    const ask = await setUp({ open: { prefix: '/' }, login: { prefix: '/login', authService: 'auth' } });
    assert.deepEqual(await ask('/LOGIN'), [200]);
  });

  it('when no mapping handles it, because then no service gets it', async () => {
    const ask = await setUp({ login: { prefix: '/login', bypassAuth: true }, other: { prefix: '/other' } });
    assert.deepEqual(await ask('/LOGIN', '/login;x'), [404, 404]);
  });

  it('when the other mapping is a redirect, or when it is redirected itself', async () => {
    const redirect = redirectOf({ status: 308, path: { kind: 'path', value: '/login/' } });
    const ask = await setUp({
      app: { prefix: '/login' },
      slash: { prefix: '/login', prefixMatch: 'exact', redirect },
      open: { prefix: '/', bypassAuth: true, redirect: { ...redirect, path: { kind: 'path', value: '/x' } } },
    });
    assert.deepEqual(await ask('/login/', '/login', '/LOGIN'), [200, 308, 308]);
  });
});

describe('a limit by path', () => {
  const labels = { gateway: byPath };

  it('does not count a path that can mean another one of the same mapping', async () => {
    const ask = await setUp({ open: { prefix: '/', labels } });
    assert.deepEqual(await ask('/login;x', '/login%2F', '/login.', '/login%3F', '//x'), [400, 400, 400, 400, 400]);
  });

  it('counts paths with escapes, capitals and a slash at the end', async () => {
    const ask = await setUp({ open: { prefix: '/', labels } });
    assert.deepEqual(await ask('/caf%C3%A9/a%20b', '/Login', '/login/', '/x'), [200, 200, 200, 200]);
  });
});

describe('mappings that one path can mean both', () => {
  it('get no requests for it if only their case differs, whatever their names and precedence', async () => {
    for (const [first, second] of [
      [{ prefix: '/Admin', bypassAuth: true, precedence: 1 }, { prefix: '/admin' }],
      [{ prefix: '/admin' }, { prefix: '/ADMIN', bypassAuth: true, method: { kind: 'exact', value: 'GET' } as const }],
    ] as const) {
      const ask = await setUp({ first, second, open: { prefix: '/', bypassAuth: true } });
      assert.deepEqual(await ask(first.prefix, second.prefix, '/aDmin', '/x'), [400, 400, 400, 200]);
    }
  });

  it('get requests for it if they have the same protection', async () => {
    const ask = await setUp({ first: { prefix: '/Admin' }, second: { prefix: '/admin' }, open: { prefix: '/' } });
    assert.deepEqual(await ask('/Admin', '/admin', '/ADMIN'), [200, 200, 200]);
  });

  it('keep their own requests if one ignores case', async () => {
    const first = { prefix: '/Admin', caseSensitive: false };
    const ask = await setUp({ first, open: { prefix: '/', bypassAuth: true } });
    assert.deepEqual(await ask('/Admin', '/admin', '/admin;x', '/%2Fadmin'), [200, 200, 400, 400]);
  });
});

describe('prefixes that have several readings', () => {
  it('keep their own requests, and protect their other spellings', async () => {
    const prefixes = ['/a;b', '/a%2Fb', '/x/%2Fy', '/caf%C3%A9', '/v1.', '/index.php/admin'];
    const mappings = prefixes.map((prefix, index) => [`guarded-${index}`, { prefix }] as const);
    const ask = await setUp({ ...Object.fromEntries(mappings), open: { prefix: '/', bypassAuth: true } });
    assert.deepEqual(
      await ask(...prefixes),
      Array.from(prefixes, () => 200),
    );
    const others = ['/a', '/a/b', '/x/y', '/CAF%C3%89', '/caf%c3%a9;x', '/v1', '/admin', '/Index.php/admin'];
    assert.deepEqual(
      await ask(...others),
      Array.from(others, () => 400),
    );
  });
});

describe('path_readings', () => {
  it('makes paths ambiguous that only such a service reads differently', async () => {
    for (const pathReadings of [['extension'], ['plus'], ['extension', 'plus'], []] as const) {
      const extension = pathReadings.some((one) => one === 'extension') ? 400 : 200;
      const plus = pathReadings.some((one) => one === 'plus') ? 400 : 200;
      const ask = await setUp({ login: { prefix: '/login', pathReadings }, open: { prefix: '/', bypassAuth: true } });
      assert.deepEqual(await ask('/login.json', '/login.json/', '/login;x.y', '/a.json'), [
        extension,
        extension,
        400,
        200,
      ]);
      assert.deepEqual(await ask('/login+', '/+login', '/a+b'), [plus, plus, 200]);
    }
  });

  it('says nothing about other services', async () => {
    const login: Partial<Mapping> = { prefix: '/login', pathReadings: ['extension'], service: 'car' };
    const ask = await setUp({ login, open: { prefix: '/', bypassAuth: true } });
    assert.deepEqual(await ask('/login.json'), [200]);
  });
});
