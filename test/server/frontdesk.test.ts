/** The library's face: a desk made of options, as a program makes it that embeds or runs one. */
import assert from 'node:assert/strict';
import { readdir } from 'node:fs/promises';
import Koa, { type Context, type Middleware, type Next } from 'koa';
import mount from 'koa-mount';
import request from 'supertest';
import { type FrontdeskOptions, hashPassword } from '../../src/index.ts';
import { authRecord, call, callAsDemo, desksOf, limitRecord, mappingRecord } from '../support/desks.ts';
import { type LogLine, recordingLogger } from '../support/edge.ts';
import { bareProblem } from '../support/error-body.ts';
import { testServers } from '../support/serve.ts';
import { temporaryFiles } from '../support/temporary-files.ts';

const booking = '0b6f1c52-7d7e-4a57-9d43-5f0f6c1d2a01';

describe('createFrontdesk', () => {
  const open = desksOf(testServers());
  const writeFiles = temporaryFiles();

  describe('with a directory', () => {
    it('serves what the records in it say', async () => {
      const desk = await open({ config: './config' });
      await callAsDemo(desk, `/v1/hotels/bookings/${booking}`).expect(200);
      await call(desk, `/v1/hotels/bookings/${booking}`).expect(401);
    });

    it('is ./config when nothing is said', async () => {
      await callAsDemo(await open(), '/v1/cars').expect(200);
    });

    it('loads demo data only when told to', async () => {
      const { body } = await call(await open({ demo: false }), '/v1/messages/').expect(200);
      assert.equal(body.total, 0);
    });
  });

  describe('with records as objects', () => {
    it('routes, knows its users and limits as they say', async () => {
      const desk = await open({
        clock: () => 0,
        config: {
          records: [
            authRecord,
            mappingRecord('rooms', '/rooms', 'hotel', {
              labels: { gateway: [{ user: [{ user: { header: 'X-Travel-User', omit_if_not_present: true } }] }] },
            }),
            limitRecord,
          ],
          limits: [
            { domain: 'gateway', descriptors: [{ key: 'user', rate_limit: { unit: 'day', requests_per_unit: 2 } }] },
          ],
          users: [{ name: 'ann', password_hash: await hashPassword('secret') }],
          demo: { hotels: [{ id: 'bdd640fb-0667-4ad1-9c80-317fa3b1799d', name: 'Ritz', city: 'Paris' }] },
        },
      });
      await call(desk, '/rooms').auth('demo', 'demo').expect(401);
      const { body, headers } = await call(desk, '/rooms').auth('ann', 'secret').expect(200);
      assert.equal(body.items[0].name, 'Ritz');
      assert.equal(headers['ratelimit-policy'], '"user";q=2;w=86400');
      await call(desk, '/rooms').auth('ann', 'secret').expect(200);
      await call(desk, '/rooms').auth('ann', 'secret').expect(429);
    });

    it('authenticates nobody when no record names an auth service, and hides the diagnostics then', async () => {
      const desk = await open({ config: { records: [mappingRecord('hotel', '/hotels', 'hotel')] } });
      await call(desk, '/hotels').expect(200);
      await call(desk, '/gateway/v0/diag/').expect(404);
    });
  });

  describe('with services of its own', () => {
    const records = [
      authRecord,
      mappingRecord('echo', '/v1/echo', 'echo'),
      mappingRecord('whole', '/v1/whole', 'echo', { rewrite: '' }),
      mappingRecord('open', '/v1/open', 'echo', { bypass_auth: true }),
      mappingRecord('broken', '/v1/broken', 'broken'),
      mappingRecord('silent', '/v1/silent', 'silent'),
    ];

    const echo = new Koa();
    echo.use((ctx) => {
      ctx.body = { path: ctx.path, query: ctx.search, user: ctx.get('X-Travel-User'), state: { ...ctx.state } };
    });
    const broken: Middleware = () => {
      throw new Error('the secret inside');
    };
    const silent = (_ctx: Context, next: Next) => next();

    async function openOwn(options: FrontdeskOptions = {}) {
      const users = [{ name: 'ann', password_hash: await hashPassword('secret') }];
      return open({ config: { records, users }, services: { echo, broken, silent }, ...options });
    }

    it('hands them requests behind auth, with the path as the mapping rewrites it', async () => {
      const desk = await openOwn();
      await call(desk, '/v1/echo/x').expect(401);
      const seen = (path: string, query: string) => ({ path, query, user: 'ann', state: {} });
      await call(desk, '/v1/echo/x/y?a=1').auth('ann', 'secret').expect(200, seen('/x/y', '?a=1'));
      await call(desk, '/v1/echo').auth('ann', 'secret').expect(200, seen('/', ''));
      await call(desk, '/v1/whole/x').auth('ann', 'secret').expect(200, seen('/v1/whole/x', ''));
    });

    it('takes the paths that its host mounts it on, and with strictPaths none that can be read as another', async () => {
      const desk = await openOwn({ strictPaths: true });
      const host = new Koa().use(mount('/travel', desk.middleware)).callback();
      await request(host).get('/travel/v1/open/x/').expect(200);
      await request(host).get('/travel//v1/open/x').expect(200);
      for (const path of ['/travel/v1/open//x', '/travel/v1/open;x', '/travel/v1%2Fopen'])
        await request(host).get(path).expect(400);
    });

    it('lets nobody say who he is, least of all where nobody is asked', async () => {
      const desk = await openOwn();
      const forged = call(desk, '/v1/open').set('X-Travel-User', 'ann');
      await forged.expect(200, { path: '/', query: '', user: '', state: {} });
    });

    it('keeps the state of a host around it away from them', async () => {
      const desk = await openOwn();
      const host = new Koa().use((ctx, next) => {
        ctx.state['secret'] = 'of the host';
        return next();
      });
      const { body } = await request(host.use(desk.middleware).callback()).get('/v1/open').expect(200);
      assert.deepEqual(body.state, {});
    });

    it('answers 500 without a word of the cause when one throws, and tells the log', async () => {
      const log: LogLine[] = [];
      const desk = await openOwn({ logger: recordingLogger(log) });
      await call(desk, '/v1/broken').auth('ann', 'secret').expect(bareProblem('internal'));
      const [told] = log.filter(({ level }) => level === 'error');
      assert.match(String(told?.fields['err']), /the secret inside/);
    });

    it('answers 404 for one that does not answer, whatever is mounted around', async () => {
      const desk = await openOwn();
      await call(desk, '/v1/silent').auth('ann', 'secret').expect(bareProblem('not-found'));
      const host = new Koa().use(desk.middleware).use((ctx) => {
        ctx.body = 'the host';
      });
      await request(host.callback()).get('/v1/silent').auth('ann', 'secret').expect(404);
    });
  });

  it('closes what is open when a later part cannot be made', async () => {
    const directory = await writeFiles();
    const services = { unusable: { middleware: ['no function'] } as unknown as Koa };
    const databaseUrl = `sqlite:${directory}/data.db`;
    await assert.rejects(open({ databaseUrl, services, config: { records: [] } }), /composed of functions/);
    // SQLite removes data.db-wal with its last connection.
    assert.deepEqual(await readdir(directory), ['data.db']);
  });

  describe('with a logger', () => {
    it('writes a line a request at level info', async () => {
      const log: LogLine[] = [];
      const desk = await open({ logger: recordingLogger(log) });
      await callAsDemo(desk, `/v1/hotels/bookings/${booking}`).set('X-Request-Id', 'id-1').expect(200);
      const lines = log.map(({ level, message, fields: { requestId, user, mapping: name, status } }) => ({
        ...{ level, message, requestId, user, name, status },
      }));
      const line = { level: 'info', message: 'request', requestId: 'id-1', user: 'demo', name: 'hotel', status: 200 };
      assert.deepEqual(lines, [line]);
    });

    it('writes none when its level says so', async () => {
      const log: LogLine[] = [];
      const desk = await open({ logger: { ...recordingLogger(log), isLevelEnabled: () => false } });
      await call(desk, '/v1/messages/1').expect(200);
      assert.deepEqual(log, []);
    });
  });

  describe('with a clock', () => {
    it('turns the windows of the limits and dates the demo data by it', async () => {
      let now = Date.UTC(2030, 0, 1);
      const desk = await open({ clock: () => now });
      const ask = () => callAsDemo(desk, '/v1/hotels').set('x-gateway-test-allow', 'me');
      for (let sent = 0; sent < 10; sent += 1) await ask().expect(200);
      await ask().expect(429).expect('Retry-After', '60');
      now += 59_999;
      await ask().expect(429).expect('Retry-After', '1');
      now += 1;
      await ask().expect(200);
      const { body } = await call(desk, '/v2/messages/1');
      assert.equal(body.created_at, '2030-01-01T00:00:00.000Z');
    });
  });

  describe('with a public URL and origins', () => {
    it('writes the URL into every answer', async () => {
      const desk = await open({ publicUrl: 'https://travel.example/api' });
      const { body } = await call(desk, '/v1/messages/1');
      assert.equal(body.url, 'https://travel.example/api/v1/messages/1');
    });

    it('answers preflights before it asks for credentials, and lets only these origins read', async () => {
      const desk = await open({ corsOrigins: ['https://app.example'] });
      const preflight = (origin: string) =>
        request(desk.app.callback())
          .options('/v1/hotels')
          .set({ Origin: origin, 'Access-Control-Request-Method': 'GET' });
      await preflight('https://app.example').expect(204).expect('Access-Control-Allow-Origin', 'https://app.example');
      const foreign = await preflight('https://evil.example');
      assert.ok(!foreign.headers['access-control-allow-origin']);
      const refused = await call(desk, '/v1/hotels').set('Origin', 'https://app.example').expect(401);
      assert.equal(refused.headers['access-control-allow-origin'], 'https://app.example');
      assert.match(refused.headers['vary'] ?? '', /Origin/);
      assert.match(refused.headers['vary'] ?? '', /Accept/);
    });

    it('answers no preflight where another proxy asks who it is from: that proxy would take a 204 for a yes', async () => {
      const desk = await open({ corsOrigins: ['*'] });
      const { auth } = await desk.listen();
      const preflight = { Origin: 'https://app.example', 'Access-Control-Request-Method': 'GET' };
      await request(auth?.url ?? '')
        .options('/v1/hotels')
        .set(preflight)
        .expect(401);
    });
  });

  describe('with some modules only', () => {
    it('serves one service at its root', async () => {
      const desk = await open({ only: ['hotel'] });
      await call(desk, `/bookings/${booking}`).set('X-Travel-User', 'demo').expect(200);
      await call(desk, '/').expect(200);
    });

    it('serves several each under its name, and the API under its versions', async () => {
      const desk = await open({ only: ['hotel', 'car', 'api'] });
      await call(desk, '/hotel').expect(200);
      await call(desk, '/car/').expect(200);
      await call(desk, '/v2/messages/1').expect(200);
      await call(desk, '/v1/hotels').expect(404);
    });

    it('trusts no caller of a service with the name of nobody', async () => {
      const desk = await open({ only: ['hotel'] });
      await call(desk, '/bookings/').expect(401);
    });
  });
});
