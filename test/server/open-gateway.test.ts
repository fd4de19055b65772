/** Records and the modules that they name: each role takes only what can play it. */
import assert from 'node:assert/strict';
import type { Context } from 'koa';
import { createFrontdesk } from '../../src/index.ts';
import { authRecord, call, desksOf, limitRecord, mappingRecord } from '../support/desks.ts';
import { testServers } from '../support/serve.ts';

describe('service references', () => {
  const servers = testServers();
  const open = desksOf(servers);

  const misnamed: readonly (readonly [string, object | readonly object[], RegExp])[] = [
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
    ['a service of one’s own as auth service', { ...authRecord, auth_service: 'own' }, /"own".* as an auth service/],
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
    it(`are refused where they name what cannot do it: ${what}`, async () => {
      const own = () => {};
      const config = { records: [record].flat() };
      await assert.rejects(
        createFrontdesk({ config, demo: true, databaseUrl: 'sqlite::memory:', services: { own } }),
        message,
      );
    });
  }

  it('lead to the network when the module does not run here, or when they have a port', async () => {
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

  it('let no client name itself where no auth service is configured, and show it no diagnostics', async () => {
    const desk = await open({ config: { records: [mappingRecord('hotel', '/hotels', 'hotel')] } });
    await call(desk, '/hotels').expect(200);
    await call(desk, '/hotels/bookings/').set('X-Travel-User', 'demo').expect(401);
    await call(desk, '/gateway/v0/diag/').expect(404);
  });

  it('ask the rate-limit service at the addresses that the settings give for it, the next when one is down', async () => {
    const away = await servers.refusing();
    const apart = await open({ only: ['ratelimit'], config: { records: [], limits: [oneADay] } });
    const { ratelimit } = await apart.listen();
    const desk = await open({
      config: { records: [labelledRecord, { ...limitRecord, timeout_ms: 5000, failure_mode_deny: true }] },
      only: ['gateway'],
      services: { own },
      serviceAddresses: { ratelimit: [`127.0.0.1:${away.port}`, `127.0.0.1:${ratelimit?.port}`] },
    });
    await call(desk, '/own').set('X-Name', 'ann').expect(200);
    await call(desk, '/own').set('X-Name', 'ann').expect(429);
    await call(desk, '/own').set('X-Name', 'bob').expect(200);
  });
});

describe('a gateway that does not listen, being embedded', () => {
  const servers = testServers();
  const open = desksOf(servers);

  for (const service of ['grpc://ratelimit', 'ratelimit:8081', 'ratelimit']) {
    it(`asks the limiter of its own process when the record says ${service}`, async () => {
      const records = [labelledRecord, { ...limitRecord, service, failure_mode_deny: true }];
      const desk = await open({ config: { records, limits: [oneADay] }, services: { own } });
      await call(desk, '/own').set('X-Name', 'ann').expect(200).expect('RateLimit-Policy', '"name";q=1;w=86400');
      await call(desk, '/own').set('X-Name', 'ann').expect(429);
      await call(desk, '/own').set('X-Name', 'bob').expect(200);
    });
  }

  it('does not take another host’s limiter for its own', async () => {
    const service = `127.0.0.1:${(await servers.refusing()).port}`;
    const records = [labelledRecord, { ...limitRecord, service, failure_mode_deny: true }];
    const desk = await open({ config: { records, limits: [oneADay] }, services: { own } });
    await call(desk, '/own').set('X-Name', 'ann').expect(503);
  });
});

describe('a process without a gateway', () => {
  const open = desksOf(testServers());
  const config = { records: [authRecord, mappingRecord('own', '/v1/own', 'own')] };
  const seen = (ctx: Context) => {
    ctx.body = `${ctx.path}${ctx.search}`;
  };

  it('serves a service of the program at its root when it is the only one, beside the auth service and the limiter', async () => {
    const desk = await open({ config, only: ['auth', 'ratelimit'], services: { seen } });
    await call(desk, '/x/y?a=1').expect(200, '/x/y?a=1');
  });

  it('serves several each under its name, without the records and without diagnostics', async () => {
    const desk = await open({ config, only: ['hotel'], services: { seen, own } });
    await call(desk, '/seen').expect(200, '/');
    await call(desk, '/seen/x?a=1').expect(200, '/x?a=1');
    await call(desk, '/own/x').expect(200, 'own');
    await call(desk, '/hotel/bookings').expect(308).expect('Location', '/hotel/bookings/');
    const absent = ['/', '/seenx', '/v1/own', '/auth', '/api', '/gateway/v0/diag/'];
    for (const path of absent) await call(desk, path).expect(404);
  });

  it('answers 503 to all once it is closed', async () => {
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
const oneADay = {
  domain: 'gateway',
  descriptors: [{ key: 'name', rate_limit: { unit: 'day', requests_per_unit: 1 } }],
};

const labelledRecord = mappingRecord('own', '/own', 'own', {
  labels: { gateway: [{ name: [{ name: { header: 'X-Name', omit_if_not_present: true } }] }] },
});
