/** Records and the modules that they name: each role takes only what can play it. */
import assert from 'node:assert/strict';
import type { Context } from 'koa';
import { createFrontdesk } from '../src/index.ts';
import { authRecord, call, desksOf, limitRecord, mappingRecord } from './support/desks.ts';
import { testServers } from './support/serve.ts';

describe('service references', () => {
  const servers = testServers();
  const open = desksOf(servers);

  const misnamed: readonly (readonly [string, object, RegExp])[] = [
    [
      'a mapping to the limiter',
      mappingRecord('x', '/x', 'ratelimit'),
      /^Error: <options>:1 {2}Mapping x: "ratelimit"/,
    ],
    [
      'hotels as auth service',
      { ...authRecord, auth_service: 'hotel' },
      /:1 {2}AuthService auth: "hotel".* no auth service/,
    ],
    ['a service of one’s own as auth service', { ...authRecord, auth_service: 'own' }, /"own".* no auth service/],
    ['hotels as rate-limit service', { ...limitRecord, service: 'hotel' }, /"hotel".* no rate-limit service/],
  ];

  for (const [what, record, message] of misnamed) {
    it(`are refused where they name a module that cannot do it: ${what}`, async () => {
      const own = () => {};
      const config = { records: [record] };
      await assert.rejects(createFrontdesk({ config, databaseUrl: 'sqlite::memory:', services: { own } }), message);
    });
  }

  it('lead to the network when the module does not run here', async () => {
    const upstream = await servers.http((_request, response) => void response.end('the hotel elsewhere'));
    const config = { records: [mappingRecord('hotel', '/hotels', 'hotel')] };
    const serviceAddresses = { hotel: upstream.origin.replace('http://', '') };
    const desk = await open({ config, only: ['gateway'], serviceAddresses });
    await call(desk, '/hotels').expect(200, 'the hotel elsewhere');
  });

  it('lead to the network when they have a port, even if a module has the name', async () => {
    const upstream = await servers.http((_request, response) => void response.end('by port'));
    const config = { records: [mappingRecord('hotel', '/hotels', `127.0.0.1:${upstream.port}`)] };
    await call(await open({ config }), '/hotels').expect(200, 'by port');
  });

  it('ask the auth service across HTTP when it does not run here', async () => {
    const auth = await servers.http((request, response) => {
      response.setHeader('X-Travel-User', request.url ?? '');
      response.end();
    });
    const whoami = (ctx: Context) => {
      ctx.body = ctx.get('X-Travel-User');
    };
    const config = { records: [{ ...authRecord, auth_service: auth.origin }, mappingRecord('who', '/who', 'whoami')] };
    const desk = await open({ config, services: { whoami } });
    await call(desk, '/who/am/i?a=1').expect(200, '/who/am/i?a=1');
  });
});
