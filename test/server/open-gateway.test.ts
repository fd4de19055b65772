/** The services that records refer to: in this process or on the network, with the right role. */
import assert from 'node:assert/strict';
import type { Context } from 'koa';
import type { ModuleName } from '#server/product';
import { type AuthServiceInput, createFrontdesk, type LimitDomainInput, type RecordInput } from '../../src/index.ts';
import { authRecord, call, demoRecord, desksOf, limitRecord, mappingRecord } from '../support/desks.ts';
import { type LogLine, recordingLogger } from '../support/edge.ts';
import { testServers } from '../support/serve.ts';
import { startUpstream } from '../support/upstream.ts';
import { eventually } from '../support/waiting.ts';

describe('service references', () => {
  const servers = testServers();
  const open = desksOf(servers);

  const misnamed: readonly (readonly [string, RecordInput | RecordInput[], RegExp])[] = [
    [
      'a mapping to the limiter',
      mappingRecord('x', '/x', 'ratelimit'),
      /^Error: <options>:1 {2}Mapping x: "ratelimit"/,
    ],
    [
      'hotels as auth service',
      { ...authRecord, auth_service: 'hotel' },
      /:1 {2}AuthService auth: "hotel".* as an auth service/,
    ],
    ['a service of the program as auth service', { ...authRecord, auth_service: 'own' }, /"own".* as an auth service/],
    [
      'a shadow of hotels',
      [mappingRecord('main', '/x', 'own'), mappingRecord('x', '/x', 'hotel', { shadow: true })],
      /Mapping x: "hotel".* as the target of a shadow/,
    ],
    ['hotels as rate-limit service', { ...limitRecord, service: 'hotel' }, /"hotel".* as a rate-limit service/],
    [
      'a rate-limit service at an HTTP address',
      { ...limitRecord, service: 'http://limits.example' },
      /<options>:1 {2}RateLimitService limits: .*\n.*grpc:\/\//,
    ],
  ];

  for (const [what, record, message] of misnamed) {
    it(`are rejected if the service is unsuitable: ${what}`, async () => {
      const own = () => {};
      const config = { records: [record].flat() };
      await assert.rejects(
        createFrontdesk({ config, demo: true, databaseUrl: 'sqlite::memory:', services: { own } }),
        message,
      );
    });
  }

  it('mean a network host if the module does not run here, or if they have a port', async () => {
    const { port } = await servers.http((_request, response) => void response.end('elsewhere'));
    const address = `127.0.0.1:${port}`;
    for (const [service, options] of [
      ['hotel', { only: ['gateway'], serviceAddresses: { hotel: address } }],
      [address, {}],
    ] as const) {
      const desk = await open({ config: { records: [mappingRecord('hotel', '/hotels', service)] }, ...options });
      await call(desk, '/hotels').expect(200, 'elsewhere');
    }
  });

  it('may send headers of up to UPSTREAM_HEADER_BYTES_MAX, whether they allow, serve or check', async () => {
    const { origin } = await servers.http((_request, response) => {
      response.setHeader('X-Travel-User', 'ann').setHeader('X-Large', 'x'.repeat(30_000)).end('served');
    });
    // Otherwise Node's client would reject the response.
    const small = { remove_response_headers: ['X-Large'] };
    const check = { interval: '100ms', health_check: { http: { path: '/health' } } };
    const records = [
      mappingRecord('guarded', '/guarded', origin, small),
      mappingRecord('open', '/open', origin, { ...small, bypass_auth: true, health_checks: check }),
      { ...authRecord, auth_service: origin },
    ];
    for (const [options, statuses, health] of [
      [{}, [503, 502], 'address fails its health check'],
      [{ upstreamHeaderBytesMax: 40_000 }, [200, 200], 'address passes its health check'],
    ] as const) {
      const log: LogLine[] = [];
      const desk = await open({ config: { records }, logger: recordingLogger(log), ...options });
      const responses = [await call(desk, '/guarded'), await call(desk, '/open')];
      assert.deepEqual(
        responses.map(({ status }) => status),
        statuses,
      );
      await eventually(() => assert.ok(log.some(({ message }) => message === health)));
    }
  });

  it('add the routes of the API in another process only with the demo', async () => {
    const { port } = await servers.http((_request, response) => void response.end('elsewhere'));
    for (const [demo, status] of [
      [true, 200],
      [false, 404],
    ] as const) {
      const desk = await open({
        config: { records: [] },
        demo,
        only: ['gateway'],
        serviceAddresses: { api: `127.0.0.1:${port}` },
      });
      await call(desk, '/v1/messages').expect(status);
    }
  });

  it('need no auth service, but then there are no diagnostics and identity headers are ignored', async () => {
    const desk = await open({ config: { records: [mappingRecord('hotel', '/hotels', 'hotel')] } });
    await call(desk, '/hotels').expect(200);
    await call(desk, '/hotels/bookings/').set('X-Travel-User', 'demo').expect(401);
    await call(desk, '/gateway/v0/diag/').expect(404);
  });

  it('use the addresses of the rate-limit service in the settings, and the next one if one is down', async () => {
    const away = await servers.refusing();
    const apart = await open({ only: ['ratelimit'], config: { records: [], limits: [oneADay] } });
    const { ratelimit } = await apart.listen();
    const desk = await open({
      config: { records: [labelledRecord, { ...limitRecord, timeout_ms: 5000, failure_mode_deny: true }] },
      only: ['gateway'],
      services: { own },
      serviceAddresses: { ratelimit: [`127.0.0.1:${away.port}`, `127.0.0.1:${ratelimit.port}`] },
    });
    await call(desk, '/own').set('X-Name', 'ann').expect(200);
    await call(desk, '/own').set('X-Name', 'ann').expect(429);
    await call(desk, '/own').set('X-Name', 'bob').expect(200);
  });
});

describe('an embedded gateway that does not listen', () => {
  const servers = testServers();
  const open = desksOf(servers);

  for (const service of ['grpc://ratelimit', 'ratelimit:8081', 'ratelimit']) {
    it(`calls the limiter of its own process if the record says ${service}`, async () => {
      const records = [labelledRecord, { ...limitRecord, service, failure_mode_deny: true }];
      const desk = await open({ config: { records, limits: [oneADay] }, services: { own } });
      await call(desk, '/own').set('X-Name', 'ann').expect(200).expect('RateLimit-Policy', '"name";q=1;w=86400');
      await call(desk, '/own').set('X-Name', 'ann').expect(429);
      await call(desk, '/own').set('X-Name', 'bob').expect(200);
    });
  }

  it('does not mistake the limiter on another host for its own', async () => {
    const service = `127.0.0.1:${(await servers.refusing()).port}`;
    const records = [labelledRecord, { ...limitRecord, service, failure_mode_deny: true }];
    const desk = await open({ config: { records, limits: [oneADay] }, services: { own } });
    await call(desk, '/own').set('X-Name', 'ann').expect(503);
  });
});

describe("frontdesk's own auth service", () => {
  const servers = testServers();
  const open = desksOf(servers);
  const names = ['x-travel-user', 'remote-user', 'x-forwarded-user'] as const;
  const { allowed_authorization_headers: _listed, ...unlisted } = authRecord;

  /** A gateway before one service, with the auth service in its own process or in another one. */
  async function openWith(record: AuthServiceInput, origin: string, isRemote: boolean) {
    const config = { records: [record, mappingRecord('app', '/', origin)], users: [demoRecord] };
    const only = (modules: readonly ModuleName[], more: object = {}) =>
      open({ demo: false, config, only: modules, ...more });
    if (!isRemote) return only(['gateway', 'auth']);
    const { auth } = await (await only(['auth'])).listen();
    return only(['gateway'], { serviceAddresses: { auth: new URL(auth.url).host } });
  }

  for (const [what, record, expected] of [
    ['X-Travel-User if its record lists no header', unlisted, ['demo', undefined, undefined]],
    [
      'each header that its record lists',
      { ...unlisted, allowed_authorization_headers: ['Remote-User', 'X-Forwarded-User'] },
      [undefined, 'demo', 'demo'],
    ],
  ] as const)
    for (const isRemote of [false, true])
      it(`names the user in ${what}, ${isRemote ? 'in another' : 'in the same'} process`, async () => {
        const upstream = await startUpstream(servers);
        const desk = await openWith(record, upstream.origin, isRemote);
        const lies = { 'X-Travel-User': 'admin', 'X-Forwarded-User': 'admin' };
        await call(desk, '/').set(lies).auth('demo', 'demo').expect(200);
        const { headers } = upstream.only();
        assert.deepEqual(
          names.map((name) => headers[name]),
          expected,
        );
      });

  it('names the user for other proxies in X-Travel-User and in each header that a record lists', async () => {
    const listed = { ...authRecord, allowed_authorization_headers: ['Remote-User'] };
    const config = { records: [listed], users: [demoRecord] };
    const { auth } = await (await open({ demo: false, config, only: ['auth'] })).listen();
    const { headers } = await fetch(auth.url, { headers: { Authorization: `Basic ${btoa('demo:demo')}` } });
    assert.deepEqual([headers.get('x-travel-user'), headers.get('remote-user')], ['demo', 'demo']);
  });
});

describe('a process without a gateway', () => {
  const open = desksOf(testServers());
  const config = { records: [authRecord, mappingRecord('own', '/v1/own', 'own')] };
  const seen = (ctx: Context) => {
    ctx.body = `${ctx.path}${ctx.search}`;
  };

  it("serves the program's service at the root if there is only one besides auth and the limiter", async () => {
    const desk = await open({ config, only: ['auth', 'ratelimit'], services: { seen } });
    await call(desk, '/x/y?a=1').expect(200, '/x/y?a=1');
  });

  it('serves several services under their names, without records and diagnostics', async () => {
    const desk = await open({ config, only: ['hotel'], services: { seen, own } });
    await call(desk, '/seen').expect(200, '/');
    await call(desk, '/seen/x?a=1').expect(200, '/x?a=1');
    await call(desk, '/own/x').expect(200, 'own');
    await call(desk, '/hotel/bookings').expect(308).expect('Location', '/hotel/bookings/');
    const absent = ['/', '/seenx', '/v1/own', '/auth', '/api', '/gateway/v0/diag/'];
    for (const path of absent) await call(desk, path).expect(404);
  });

  for (const [what, trustedProxies, believed] of [
    ['every client without trusted proxies', [], true],
    ['a trusted proxy', ['127.0.0.1'], true],
    ['no other client if there are trusted proxies', ['192.0.2.1'], false],
  ] as const)
    it(`believes ${what} about the user, in each header that its records list`, async () => {
      const listed = { ...authRecord, allowed_authorization_headers: ['Remote-User'] };
      const user = (ctx: Context) => {
        const { headers } = ctx.req;
        ctx.body = [headers['x-travel-user'], headers['remote-user'], headers['x-other']].join();
      };
      const records = { records: [listed, mappingRecord('own', '/v1/own', 'own')] };
      const desk = await open({ config: records, only: ['auth'], services: { user }, trustedProxies });
      await call(desk, '/')
        .set({ 'X-Travel-User': 'ann', 'Remote-User': 'ann', 'X-Other': 'x' })
        .expect(200, believed ? 'ann,ann,x' : ',,x');
    });

  it('responds with 503 to all requests when closed', async () => {
    const desk = await open({ config, only: ['hotel'] });
    await desk.close();
    for (const path of ['/gateway/v0/check_ready', '/gateway/v0/check_alive', '/'])
      await call(desk, path).expect(503).expect('Retry-After', '1');
  });
});

const own = (ctx: Context) => {
  ctx.body = 'own';
};

/** One request a day for each value of `X-Name`. */
const oneADay: LimitDomainInput = {
  domain: 'gateway',
  descriptors: [{ key: 'name', rate_limit: { unit: 'day', requests_per_unit: 1 } }],
};

const labelledRecord = mappingRecord('own', '/own', 'own', {
  labels: { gateway: [{ name: [{ name: { header: 'X-Name', omit_if_not_present: true } }] }] },
});
