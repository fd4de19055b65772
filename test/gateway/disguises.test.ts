/** Headers with which a client could pass for another client, host, path or method. */
import assert from 'node:assert/strict';
import type { IncomingHttpHeaders } from 'node:http';
import { configurationFrom, type Mapping } from '#config';
import { createUpgrades, isolate } from '#http';
import {
  authRecordOf,
  type EdgeOptions,
  explainOf,
  labelled,
  limitRecordOf,
  mappingOf,
  remote,
  startEdge,
  startRecordingEdge,
} from '../support/edge.ts';
import { testServers } from '../support/serve.ts';
import { untyped } from '../support/untyped.ts';
import { eventually } from '../support/waiting.ts';
import { startHttp } from '../support/wire/http-server.ts';
import { speak, upgradeRequest } from '../support/wire/peer.ts';
import { rawRequest, sendRaw, statusOf } from '../support/wire/raw-client.ts';
import { startSwitchingUpstream } from '../support/wire/switching-upstream.ts';

/** The headers that a proxy in front may set. */
const ofProxies = [
  'X-HTTP-Method-Override',
  'X-HTTP-Method',
  'X-Method-Override',
  'X-Original-Host',
  'X-Host',
  'X-HTTP-Host-Override',
  'X-Forwarded',
  'Client-IP',
  'X-Client-IP',
  'X-Cluster-Client-IP',
  'CF-Connecting-IP',
  'True-Client-IP',
  'X-Envoy-External-Address',
  'X-Envoy-Original-Path',
  'X-Envoy-Anything',
  'Fastly-Client-IP',
  'Forwarded-For',
  'Proxy-Client-IP',
  'X-Original-Forwarded-For',
];

/** The headers that many proxies forward as the client sends them. */
const ofNoProxy = ['X-Original-URL', 'X-Rewrite-URL', 'X-Real-IP', 'X-Scheme', 'Proxy', 'New-URI'];

const all = [...ofProxies, ...ofNoProxy];
const spellings = (name: string) => [name, name.replaceAll('-', '_'), name.replaceAll('-', '.'), name.toUpperCase()];
const trusted = { addresses: { trustedProxies: ['127.0.0.1'] } };

describe('a header with which a client could disguise itself', () => {
  const servers = testServers();

  const authService = authRecordOf({ allowedRequestHeaders: all.map((name) => name.toLowerCase()) });
  const setUp = (options: EdgeOptions = {}) => startRecordingEdge(servers, { authService, ...options });

  const disguisesIn = (headers: IncomingHttpHeaders) => Object.keys(headers).filter((name) => headers[name] === 'lie');
  const lies = (names: readonly string[]) => names.map((name) => `${name}: lie`);
  const get = (headers: readonly string[]) => rawRequest('GET /v1/hotels', headers);

  it('reaches neither a service nor its shadow nor an auth service, in any spelling', async () => {
    const { edge, upstream, shadow, auth } = await setUp();
    assert.equal(statusOf(await sendRaw(edge.port, get([...lies(all.flatMap(spellings)), 'X-Plain: lie']))), 200);
    await eventually(() => assert.equal(shadow.reached.length, 1));
    for (const server of [upstream, shadow]) assert.deepEqual(disguisesIn(server.only().headers), ['x-plain']);
    assert.deepEqual(disguisesIn(auth.only().headers), []);
  });

  it('is not forwarded with a request to switch protocols', async () => {
    const switching = await startSwitchingUpstream(servers);
    const { edge } = await setUp({
      mappings: [mappingOf({ allowUpgrade: ['websocket'], bypassAuth: true })],
      targets: { hotel: remote(switching) },
      authService: authRecordOf({ authService: 'hotel' }),
    });
    const upgrades = createUpgrades(() => true);
    const front = await startHttp(servers, { handler: edge.listener, upgrades });
    servers.later(() => upgrades.close(0));
    const client = speak(front.port, upgradeRequest('/v1/hotels', lies(all.flatMap(spellings))));
    await client.until('101 Switching Protocols');
    client.socket.destroy();
    assert.deepEqual(disguisesIn(switching.upgrades[0]?.headers ?? {}), []);
  });

  it('reaches no service and no auth service in this process, not even in the raw headers', async () => {
    const seen: string[] = [];
    const edge = await startEdge(servers, {
      authService,
      authPort({ headers }) {
        seen.push(JSON.stringify(headers));
        return { outcome: 'allow', headers: {} };
      },
      services: {
        hotel: isolate((ctx) => {
          const { headers, headersDistinct, rawHeaders } = ctx.req;
          seen.push(JSON.stringify([headers, headersDistinct, rawHeaders]));
          ctx.body = 'ok';
        }),
      },
    });
    assert.equal(statusOf(await sendRaw(edge.port, get(lies(all.flatMap(spellings))))), 200);
    assert.equal(seen.length, 2);
    for (const view of seen) assert.doesNotMatch(view, /"lie"/);
  });

  it('fulfils no condition and is not counted', async () => {
    const counted: unknown[] = [];
    const headers = [{ name: 'x-client-ip', match: { kind: 'present' } }] as const;
    const { edge, upstream } = await setUp({
      mappings: [
        mappingOf({ labels: { gateway: labelled('cf-connecting-ip') } }),
        mappingOf({ name: 'by-address', service: 'auth', headers }),
      ],
      rateLimitService: limitRecordOf(),
      limiter: {
        shouldRateLimit(request) {
          counted.push(request);
          return { overallCode: 'OK', statuses: [] };
        },
      },
    });
    await sendRaw(edge.port, get(['X-Client-IP: 10.0.0.1', 'CF-Connecting-IP: 10.0.0.1']));
    assert.deepEqual([upstream.reached.length, counted], [1, []]);
  });

  it('is forwarded if it comes from a trusted proxy that sets it', async () => {
    const { edge, upstream, auth } = await setUp(trusted);
    await sendRaw(edge.port, get(lies(all)));
    const expected = ofProxies.map((name) => name.toLowerCase()).sort();
    for (const server of [upstream, auth]) assert.deepEqual(disguisesIn(server.only().headers).sort(), expected);
  });

  it('is forwarded if its mapping keeps it, in the same spelling, and to no other mapping', async () => {
    const keepRequestHeaders = ['x-http-method-override', 'x-real-ip'];
    const { edge, upstream, auth } = await setUp({
      mappings: [mappingOf({ keepRequestHeaders }), mappingOf({ name: 'cars', prefix: '/v1/cars' })],
    });
    const sent = lies(all.flatMap(spellings));
    await sendRaw(edge.port, rawRequest('GET /v1/hotels', sent));
    await sendRaw(edge.port, rawRequest('GET /v1/cars', sent));
    const keptBy = (server: typeof upstream) => server.reached.map(({ headers }) => Object.keys(headers));
    for (const [hotels = [], cars = []] of [keptBy(upstream), keptBy(auth)]) {
      assert.deepEqual(
        all.map((name) => name.toLowerCase()).filter((name) => hotels.includes(name)),
        keepRequestHeaders,
      );
      assert.ok(!hotels.includes('x_real_ip'));
      for (const name of keepRequestHeaders) assert.ok(!cars.includes(name));
    }
  });

  it('can be set by a mapping itself', async () => {
    const add = [{ name: 'x-real-ip', value: '%DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT%', append: true }];
    const { edge, upstream } = await setUp({ mappings: [mappingOf({ requestHeaders: { add, remove: [] } })] });
    await sendRaw(edge.port, get(['X-Real-IP: 10.0.0.1', 'X_Real_IP: 10.0.0.1']));
    const { headers } = upstream.only();
    assert.deepEqual([headers['x-real-ip'], headers['x_real_ip']], ['127.0.0.1', undefined]);
  });

  it('is shown by an explanation among the headers that the service does not get', async () => {
    const { edge } = await setUp({ mappings: [mappingOf({ keepRequestHeaders: ['x-host'] })] });
    const headers = [...all, 'X-Plain'].map((name) => [name, 'lie'] as const);
    const { target } = await explainOf(edge.gateway)({ method: 'GET', url: '/v1/hotels', headers });
    const expected = all.map((name) => name.toLowerCase()).filter((name) => name !== 'x-host');
    assert.deepEqual([...(target?.headers_removed ?? [])].sort(), expected.sort());
  });
});

describe('keep_request_headers', () => {
  const errorOf = (fields: object): string => {
    const record = {
      apiVersion: 'gateway/v1',
      kind: 'Mapping',
      name: 'a',
      prefix: '/a',
      service: 'http://a',
      ...fields,
    };
    return configurationFrom(untyped({ records: [record] }))
      .errors.map(({ message }) => message)
      .join();
  };
  const mapping = (fields: object): Pick<Mapping, 'keepRequestHeaders'> | undefined =>
    configurationFrom({
      records: [{ apiVersion: 'gateway/v1', kind: 'Mapping', name: 'a', prefix: '/a', service: 'http://a', ...fields }],
    }).configuration.mappings[0];

  it('is a list of such headers', () => {
    assert.deepEqual(mapping({ keep_request_headers: 'X-Host, X-Envoy-Foo' })?.keepRequestHeaders, [
      'x-host',
      'x-envoy-foo',
    ]);
  });

  for (const name of ['X-Http-Metod', 'X-Forwarded-For', 'Via', 'X_Real_IP'])
    it(`does not contain ${name}`, () => {
      assert.match(errorOf({ keep_request_headers: [name] }), /is not a header that this field can keep/);
    });

  it('has no effect on a shadow', () => {
    assert.match(errorOf({ shadow: true, keep_request_headers: ['X-Host'] }), /has no effect on a shadow/);
  });
});
