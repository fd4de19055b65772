/** Mappings that come from routes of the Gateway API, as the gateway handles their requests. */
import assert from 'node:assert/strict';
import { Agent, request } from 'node:https';
import type { Context } from 'koa';
import type { GatewayRoute, Mapping } from '#config';
import type { Target } from '#gateway';
import {
  authRecordOf,
  explainOf,
  gatewayOf,
  gatewayRouteOf,
  mappingOf,
  redirectOf,
  remote,
  startEdge,
} from '../support/edge.ts';
import { testServers } from '../support/serve.ts';
import { temporaryFiles } from '../support/temporary-files.ts';
import { startUpstream } from '../support/upstream.ts';
import { createDeferred, eventually } from '../support/waiting.ts';
import { type Certificate, makeCertificate } from '../support/wire/certificate.ts';
import { startHttp } from '../support/wire/http-server.ts';
import { openHttp2 } from '../support/wire/http2-client.ts';
import { rawRequest, sendRaw } from '../support/wire/raw-client.ts';

const servers = testServers();

function routed(fields: Partial<Mapping> = {}, gatewayRoute: Partial<GatewayRoute> = {}): Mapping {
  return mappingOf({ prefix: '/', rewrite: '', ...fields, gatewayRoute: gatewayRouteOf(gatewayRoute) });
}

describe('a Mapping for the requests of one listener', () => {
  const writeFiles = temporaryFiles();
  let tls: Certificate | undefined;

  before(async function () {
    tls = await makeCertificate(await writeFiles(), 'IP:127.0.0.1');
    if (tls === undefined) this.skip();
  });

  const mappings = (['http', 'https'] as const).map((scheme) =>
    routed({ name: scheme, service: scheme, bypassAuth: true }, { scheme, place: scheme }),
  );
  const services = Object.fromEntries(
    mappings.map(({ name }) => [name, async ({ response }: Context) => void Object.assign(response, { body: name })]),
  );

  async function listenerOf(withTls: boolean): Promise<string> {
    const edge = await startEdge(servers, { mappings, services, addresses: { trustedProxies: ['127.0.0.1'] } });
    const { port } = await startHttp(servers, { handler: edge.listener, ...(withTls && { tls, http2: true }) });
    return `${withTls ? 'https' : 'http'}://127.0.0.1:${port}`;
  }

  it('gets those over TLS of both versions of HTTP, or those over plain HTTP, whatever X-Forwarded-Proto says', async () => {
    const plain = await fetch(await listenerOf(false), { headers: { 'X-Forwarded-Proto': 'https' } });
    assert.equal(await plain.text(), 'http');
    const origin = await listenerOf(true);
    assert.equal(await textOver1(origin, { 'X-Forwarded-Proto': 'http' }), 'https');
    const { session, send } = openHttp2(origin, { rejectUnauthorized: false });
    servers.later(() => session.destroy());
    assert.equal((await send({ 'x-forwarded-proto': 'http' })).body, 'https');
  });

  it('is explained by the scheme of the URL', async () => {
    const explain = explainOf(gatewayOf({ mappings, services }));
    for (const [url, name] of [
      ['/', 'http'],
      ['http://gw.example/', 'http'],
      ['https://gw.example/', 'https'],
    ] as const)
      assert.equal((await explain({ method: 'GET', url })).mapping?.name, name);
  });
});

async function textOver1(origin: string, headers: Readonly<Record<string, string>>): Promise<string> {
  const agent = new Agent({ rejectUnauthorized: false });
  const response = await new Promise<AsyncIterable<Buffer>>((resolve, reject) => {
    request(origin, { headers, agent }, resolve).on('error', reject).end();
  });
  let text = '';
  for await (const chunk of response) text += chunk;
  return text;
}

const services = { hotel: async ({ response }: Context) => void Object.assign(response, { body: 'seen' }) };

describe('a Mapping without a backend', () => {
  const fault = 'Service shop/none does not exist';
  const asked: string[] = [];
  const setUp = (...mappings: readonly Mapping[]) => ({
    mappings,
    services,
    authService: authRecordOf(),
    authPort: () => {
      asked.push('auth');
      return { outcome: 'allow' as const, headers: {} };
    },
  });

  it('answers 500 and asks nobody, without saying which backend it is', async () => {
    const { origin, log } = await startEdge(servers, setUp(routed({}, { fault })));
    const response = await fetch(origin);
    assert.equal(response.status, 500);
    assert.doesNotMatch(await response.text(), /shop|none/);
    assert.deepEqual(asked, []);
    assert.deepEqual(
      log.map(({ fields }) => [fields['problem'], String(fields['err'])]),
      [['no-backend', `Error: ${fault}`]],
    );
  });

  it('answers so for its share of the requests', async () => {
    const shares = [routed({ name: 'a', weight: 50 }), routed({ name: 'b', weight: 50 }, { fault })];
    const { origin } = await startEdge(servers, setUp(...shares));
    const statuses = new Set<number>();
    for (let count = 0; count < 100 && statuses.size < 2; count += 1) statuses.add((await fetch(origin)).status);
    assert.deepEqual(statuses, new Set([200, 500]));
  });

  it('answers 503 if it is refused as well', async () => {
    const { origin } = await startEdge(servers, setUp({ ...routed({}, { fault }), refusal: 'refused' }));
    assert.equal((await fetch(origin)).status, 503);
  });

  it('answers UNAVAILABLE to gRPC calls', async () => {
    const { origin } = await startEdge(servers, setUp(routed({ grpc: true }, { fault })));
    const { headers } = await fetch(origin, { method: 'POST', headers: { 'Content-Type': 'application/grpc' } });
    assert.equal(headers.get('grpc-status'), '14');
  });

  for (const [what, fields, gatewayRoute] of [
    ['has no backend', {}, { fault }],
    ['is refused', { refusal: 'refused' }, {}],
    ['is a redirect', { redirect: redirectOf({ host: 'b.example' }) }, {}],
  ] as const)
    it(`has nothing copied to its shadow, because nobody has checked the request: it ${what}`, async () => {
      const copies = await startUpstream(servers);
      const copy = { name: 'copy', service: 'copy', shadow: true };
      const served = [routed({ prefix: '/later' }), routed({ ...copy, prefix: '/later' })];
      const options = setUp(routed(fields, gatewayRoute), routed(copy), ...served);
      const edge = await startEdge(servers, { ...options, targets: { copy: remote(copies) } });
      await fetch(`${edge.origin}/first`, { redirect: 'manual' });
      await fetch(`${edge.origin}/later`);
      await eventually(() => assert.ok(copies.reached.some(({ url }) => url === '/later')));
      assert.deepEqual(
        copies.reached.map(({ url }) => url),
        ['/later'],
      );
      const { shadow, mapping } = await explainOf(edge.gateway)({ method: 'GET', url: '/' });
      assert.deepEqual([shadow, mapping?.name], [undefined, 'hotel']);
    });

  it('is explained with its backend', async () => {
    const { outcome } = await explainOf(gatewayOf({ mappings: [routed({}, { fault })], services }))({
      method: 'GET',
      url: '/',
    });
    assert.deepEqual(outcome, {
      kind: 'refused',
      stage: 'forwarding',
      status: 500,
      problem: 'no-backend',
      detail: fault,
    });
  });

  it('protects nothing, so other spellings of its paths are not ambiguous', async () => {
    const guarded = routed({ name: 'admin', prefix: '/admin', timeoutMs: 1 }, { fault });
    const { origin } = await startEdge(servers, setUp(mappingOf({ prefix: '/', rewrite: '' }), guarded));
    assert.deepEqual([(await fetch(`${origin}/ADMIN`)).status, (await fetch(`${origin}/admin`)).status], [200, 500]);
  });
});

describe('a Mapping that changes the request as a filter of the Gateway API', () => {
  it('replaces the whole path of a request to a service over HTTP or in this process', async () => {
    const upstream = await startUpstream(servers);
    const urls: (string | undefined)[] = [];
    const edge = await startEdge(servers, {
      mappings: [
        routed({ prefix: '/remote', rewrite: '/' }, { fullPath: '/one/' }),
        routed({ name: 'here', prefix: '/here', service: 'here' }, { fullPath: '/two' }),
      ],
      services: { here: async (ctx: Context) => void urls.push(ctx.req.url) },
      targets: { hotel: remote(upstream) },
    });
    await fetch(`${edge.origin}/remote/x/y?q`);
    await fetch(`${edge.origin}/here/x?q`);
    assert.deepEqual([upstream.only().url, urls], ['/one/?q', ['/two?q']]);
  });

  it('redirects even to the URL of the request', async () => {
    const mappings = [routed({ redirect: redirectOf({ scheme: 'http', status: 302 }) })];
    const { port } = await startEdge(servers, { mappings });
    const response = await sendRaw(port, rawRequest('GET /x?y'));
    assert.match(response, /^HTTP\/1\.1 302 .*\r\nLocation: http:\/\/front\.example\/x\?y\r\n/is);
  });
});

describe('the CORS filter of a route of the Gateway API', () => {
  const rule = {
    origins: ['*'],
    methods: ['*'],
    headers: ['*'],
    exposedHeaders: ['X-Told'],
    credentials: true,
    maxAgeSeconds: undefined,
  };

  async function askedWith(credentials: boolean, method: string) {
    const cors = { ...rule, credentials };
    const { origin } = await startEdge(servers, { mappings: [routed({ cors })], services });
    const headers = {
      Origin: 'https://app.example',
      'Access-Control-Request-Method': 'PUT',
      'Access-Control-Request-Headers': 'x-a, x-b',
    };
    const response = await fetch(origin, { method, headers });
    return Object.fromEntries([...response.headers].filter(([name]) => name.startsWith('access-control-')));
  }

  const readable = { 'access-control-expose-headers': 'X-Told' };
  const credentialed = {
    ...readable,
    'access-control-allow-origin': 'https://app.example',
    'access-control-allow-credentials': 'true',
  };

  it('permits what a preflight asks for with a star, by name if credentials are allowed', async () => {
    assert.deepEqual(await askedWith(true, 'OPTIONS'), {
      ...credentialed,
      'access-control-allow-methods': 'PUT',
      'access-control-allow-headers': 'x-a, x-b',
    });
    assert.deepEqual(await askedWith(true, 'GET'), credentialed);
  });

  it('answers with the stars if credentials are not allowed', async () => {
    const open = { ...readable, 'access-control-allow-origin': '*' };
    const preflight = { 'access-control-allow-methods': '*', 'access-control-allow-headers': '*' };
    assert.deepEqual(await askedWith(false, 'OPTIONS'), { ...open, ...preflight });
    assert.deepEqual(await askedWith(false, 'GET'), open);
  });
});

describe('the shares and limits of a route of the Gateway API', () => {
  /** Counts the requests that each service received. */
  async function counted(mappings: readonly Mapping[], requests: number): Promise<Record<string, number>> {
    const seen: Record<string, number> = {};
    const targets: Record<string, Target> = {};
    for (const { service } of mappings)
      targets[service] = remote(
        await startUpstream(servers, (res) => {
          seen[service] = (seen[service] ?? 0) + 1;
          res.end();
        }),
      );
    const { origin } = await startEdge(servers, { mappings, targets });
    for (let count = 0; count < requests; count += 1) assert.equal((await fetch(origin)).status, 200);
    return seen;
  }

  it('send nothing to a backend of weight 0, and scale the other weights', async () => {
    const shares = [1, 0, 2].map((weight, index) => routed({ name: `${index}`, service: `s${index}`, weight }));
    const { s0 = 0, s1, s2 = 0 } = await counted(shares, 60);
    assert.deepEqual([s0 > 0, s1, s2 > 0, s0 + s2], [true, undefined, true, 60]);
  });

  it('copy the percentage of a mirror', async () => {
    const mirror = (weight: number) => routed({ name: 'mirror', service: 'mirror', shadow: true, weight });
    for (const [weight, expected] of [
      [0, undefined],
      [100, 20],
    ] as const) {
      const seen = await counted([routed(), mirror(weight)], 20);
      await eventually(() => assert.equal(seen['mirror'], expected));
    }
  });

  for (const [what, limits, status] of [
    ['504 after the time-out of the request', { timeoutMs: 30 }, 504],
    [
      '504 after the time-out of its only attempt',
      { timeoutMs: 0, retryPolicy: { retryOn: [], numRetries: 0, perTryTimeoutMs: 30, statusCodes: [] } },
      504,
    ],
    ['its response if the time-out is 0', { timeoutMs: 0 }, 200],
  ] as const satisfies readonly (readonly [string, Partial<Mapping>, number])[])
    it(`answer a request ${what}`, async () => {
      const late = createDeferred();
      const upstream = await startUpstream(servers, (res) => void late.promise.then(() => res.end()));
      const { origin } = await startEdge(servers, { mappings: [routed(limits)], upstream });
      const response = fetch(origin);
      if (status === 200) late.resolve();
      assert.equal((await response).status, status);
      late.resolve();
    });
});

describe('a gRPC method of a route of the Gateway API', () => {
  const grpc = (name: string, fields: Partial<Mapping>) =>
    routed({ name, grpc: true, ...fields }, { fault: 'none', place: name });
  const mappings = [
    grpc('method', { prefix: '/shop.Carts/Add', prefixMatch: 'exact' }),
    grpc('service', { prefix: '/shop.Orders' }),
    grpc('any', { prefix: '/[^/]+/Check', prefixMatch: 'regex' }),
  ];

  it('is found by its path, and a call of another one gets UNIMPLEMENTED', async () => {
    const { origin } = await startEdge(servers, { mappings });
    const statuses: (string | null)[] = [];
    for (const path of ['/shop.Carts/Add', '/shop.Orders/Get', '/a.B/Check', '/shop.Carts/Get', '/shop.Orderss/Get']) {
      const headers = { 'Content-Type': 'application/grpc' };
      statuses.push((await fetch(origin + path, { method: 'POST', headers })).headers.get('grpc-status'));
    }
    assert.deepEqual(statuses, ['14', '14', '14', '12', '12']);
  });
});
