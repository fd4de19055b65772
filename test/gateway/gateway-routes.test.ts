/** Mappings that come from routes of the Gateway API, as the gateway handles their requests. */
import assert from 'node:assert/strict';
import { Agent, request } from 'node:https';
import type { Context } from 'koa';
import type { GatewayRoute, Mapping } from '#config';
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
import { eventually } from '../support/waiting.ts';
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

describe('a Mapping without a backend', () => {
  const fault = 'Service shop/none does not exist';
  const services = { hotel: async ({ response }: Context) => void Object.assign(response, { body: 'seen' }) };
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
