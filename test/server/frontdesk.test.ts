/** Creating a server from options, as an embedding program does. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readdir } from 'node:fs/promises';
import { request as createRequest, type IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import { setTimeout as delay, setImmediate as nextTurn } from 'node:timers/promises';
import Koa, { type Context, type Middleware, type Next } from 'koa';
import mount from 'koa-mount';
import request from 'supertest';
import type { Frontdesk } from '../../src/index.ts';
import { annRecord, authRecord, call, callAsDemo, desksOf, limitRecord, mappingRecord } from '../support/desks.ts';
import { type LogLine, recordingLogger } from '../support/edge.ts';
import { bareProblem } from '../support/error-body.ts';
import { testServers } from '../support/serve.ts';
import { temporaryFiles } from '../support/temporary-files.ts';
import { createDeferred, createHeldMiddleware } from '../support/waiting.ts';
import { dateIn } from './hotel-client.ts';

describe('createFrontdesk', () => {
  const servers = testServers();
  const open = desksOf(servers);
  const writeFiles = temporaryFiles();

  it('loads demo data only with the option demo', async () => {
    const { body } = await call(await open({ demo: false, only: ['api'] }), '/v1/messages/').expect(200);
    assert.equal(body.total, 0);
  });

  it('shows only links that work when a rewrite keeps the end of the prefix, in process and over HTTP', async () => {
    const api = await (await open({ only: ['api'], trustedProxies: ['127.0.0.1'] })).listen();
    const eu = { rewrite: '/v1', bypass_auth: true };
    const records = [
      mappingRecord('local', '/eu/v1', 'api', eu),
      mappingRecord('remote', '/travel/eu/v1', `${api.gateway?.url}`, eu),
    ];
    const desk = await open({ config: { records }, only: ['gateway', 'api'], demo: false });
    for (const prefix of ['/eu/v1', '/travel/eu/v1']) {
      await call(desk, `${prefix}/messages`).expect(308).expect('Location', `${prefix}/messages/`);
      const { body } = await call(desk, `${prefix}/`).expect(200);
      assert.equal(new URL(body.messages).pathname, `${prefix}/messages/`);
      const list = await call(desk, `${prefix}/messages/?limit=1`).expect(200);
      await call(desk, list.body.links.self).expect(200);
    }
  });

  it('serves what the records name without the demo, and logs notices about them', async () => {
    const lines: LogLine[] = [];
    const logger = recordingLogger(lines);
    const config = { records: [mappingRecord('rooms', '/rooms', 'hotel'), authRecord] };
    const desk = await open({ demo: false, config, logger });
    await call(desk, '/rooms').expect(401);
    for (const path of ['/v1/messages/1', '/v2/', '/v1/hotels']) await call(desk, path).expect(404);
    const { auth, ratelimit } = await desk.listen();
    assert.deepEqual([auth !== undefined, ratelimit], [true, undefined]);
    const [warning] = lines.filter(({ level }) => level === 'warn');
    assert.equal(warning?.fields['notices'], 2);
    assert.match(warning?.message ?? '', /has no users.*"hotel" is a service of the demo/s);
  });

  it('uses the realm of the record, or else that of the demo or of an API', async () => {
    const config = (realm?: string) => ({ records: [mappingRecord('rooms', '/', 'hotel'), { ...authRecord, realm }] });
    for (const [demo, named, realm] of [
      [false, undefined, 'api'],
      [true, undefined, 'travel'],
      [true, 'orders "all"', 'orders \\"all\\"'],
    ] as const) {
      const desk = await open({ demo, config: config(named) });
      const { auth } = await desk.listen();
      const challenge = `Basic realm="${realm}", charset="UTF-8"`;
      await call(desk, '/').expect(401).expect('WWW-Authenticate', challenge);
      assert.equal((await fetch(auth.url)).headers.get('www-authenticate'), challenge);
    }
  });

  it('accepts records, limits, users and demo data as objects', async () => {
    const byUser = { user: [{ user: { header: 'X-Travel-User', omit_if_not_present: true } }] };
    const desk = await open({
      clock: () => 0,
      config: {
        records: [
          authRecord,
          mappingRecord('rooms', '/rooms', 'hotel', { labels: { gateway: [byUser] } }),
          limitRecord,
        ],
        limits: [
          { domain: 'gateway', descriptors: [{ key: 'user', rate_limit: { unit: 'day', requests_per_unit: 2 } }] },
        ],
        users: [annRecord],
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

  it('closes everything that is open when a later part fails', async () => {
    const directory = await writeFiles();
    const services = { unusable: { middleware: ['no function'] } as unknown as Koa };
    const databaseUrl = `sqlite:${directory}/data.db`;
    await assert.rejects(open({ databaseUrl, services, config: { records: [] } }), /composed of functions/);
    // SQLite removes data.db-wal when the last connection is closed.
    assert.deepEqual(await readdir(directory), ['data.db']);
  });

  for (const within of [undefined, Number.POSITIVE_INFINITY])
    it(`waits for a booking in another app when closing within ${within}, then closes the database`, async () => {
      const desk = await open();
      const begun = createDeferred();
      const host = new Koa().use((_ctx, next) => {
        begun.resolve();
        return next();
      });
      const { origin } = await servers.http(host.use(desk.middleware).callback());
      const { body } = await callAsDemo(desk, '/v1/hotels?limit=1').expect(200);
      const order = JSON.stringify({
        hotel_id: body.items[0].id,
        room_type: body.items[0].room_types[0].name,
        check_in: dateIn(30),
        check_out: dateIn(31),
      });
      const asking = createRequest(`${origin}/v1/hotels/bookings/`, {
        method: 'POST',
        auth: 'demo:demo',
        headers: { 'Content-Type': 'application/json', 'Content-Length': order.length },
      });
      asking.write(order.slice(0, 10));
      await begun.promise;
      const closed = desk.close({ withinMs: within });
      await Promise.race([closed, delay(100)]);
      asking.end(order.slice(10));
      const [answer] = (await once(asking, 'response')) as [IncomingMessage];
      assert.equal(answer.statusCode, 201);
      answer.resume();
      await closed;
    });

  it("waits at most shutdownTimeoutMs for a program's own service when closing", async () => {
    const { hold, reached } = createHeldMiddleware();
    const config = { records: [mappingRecord('hang', '/', 'hang')] };
    const desk = await open({ config, services: { hang: hold }, demo: false, shutdownTimeoutMs: 50 });
    const { origin } = await servers.http(new Koa().use(desk.middleware).callback());
    const asking = createRequest(origin)
      .on('error', () => {})
      .end();
    await reached;
    await desk.close();
    asking.destroy();
  });

  it('responds with 503 in another app when closed, without affecting the app or other servers', async () => {
    const config = { records: [mappingRecord('tickets', '/tickets', 'tickets')] };
    const tickets: Middleware = (ctx) => {
      ctx.body = 'sold';
    };
    const [first, second] = [
      await open({ config, services: { tickets } }),
      await open({ config, services: { tickets } }),
    ];
    const host = new Koa().use(mount('/first', first.middleware)).use(mount('/second', second.middleware));
    const { origin } = await servers.http(host.use(tickets).callback());
    await first.close();
    const { body } = await request(origin).get('/first/tickets').expect(503).expect('Retry-After', '1');
    assert.equal(body.detail, 'The server is stopping.');
    await request(origin).get('/second/tickets').expect(200, 'sold');
    await request(origin).get('/').expect(200, 'sold');
  });

  it('uses the clock option for limits and demo data', async () => {
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

  it('has demo bookings with a price, refunds and dates ahead of its first start', async () => {
    const desk = await open({ clock: () => Date.UTC(2030, 0, 1, 12) });
    const { body } = await call(desk, '/v1/hotels/bookings/0b6f1c52-7d7e-4a57-9d43-5f0f6c1d2a01').auth('demo', 'demo');
    const money = (amount: string) => ({ amount, currency: 'EUR' });
    assert.deepEqual([body.status, body.check_in, body.check_out], ['confirmed', '2030-01-22', '2030-01-25']);
    assert.deepEqual(body.price, money('360.00'));
    assert.deepEqual(body.cancellation_policy, [
      { before: '2030-01-20T00:00:00.000Z', refund: money('360.00') },
      { before: '2030-01-22T00:00:00.000Z', refund: money('180.00') },
    ]);
    for (const kind of ['hotels', 'cars'])
      for (const user of ['demo', 'guest']) {
        const { items } = (await call(desk, `/v1/${kind}/bookings/`).auth(user, user).expect(200)).body;
        const starts = items.map(({ check_in, pickup_at }: Record<string, string>) => check_in ?? pickup_at);
        assert.ok(starts.length > 2 && starts.every((start: string) => start > '2030-01-10'), starts.join());
        assert.ok(items.every(({ price }: { price: { amount: string } }) => Number(price.amount) > 0));
      }
  });

  it('uses its public URL in every response, and its path in links and redirects', async () => {
    const desk = await open({ publicUrl: 'https://travel.example/api' });
    const { body } = await call(desk, '/v1/messages/1');
    assert.equal(body.url, 'https://travel.example/api/v1/messages/1');
    await call(desk, '/v1/messages?limit=1').expect(308).expect('Location', '/api/v1/messages/?limit=1');
    const page = await call(desk, '/v1/messages/?limit=1').expect('Link', /<\/api\/v1\/messages\/\?offset=1/);
    assert.equal(page.body.links.next, '/api/v1/messages/?offset=1&limit=1');
    await call(desk, '/v1/').expect('Link', /<\/api\/v1\/docs\/>; rel="service-doc"/);
    await call(desk, '/gateway/v0/problems').expect('Location', '/api/gateway/v0/problems/');
  });
});

async function* failAfterBeginning() {
  yield 'begun';
  await nextTurn();
  throw new Error('the secret of the stream');
}

describe('services of an embedding program', () => {
  const open = desksOf(testServers(after));
  const log: LogLine[] = [];
  let desk: Frontdesk;

  const echo = new Koa().use((ctx) => {
    ctx.body = { path: ctx.path, query: ctx.search, user: ctx.get('X-Travel-User'), state: { ...ctx.state } };
  });
  const broken: Middleware = () => {
    throw new Error('the secret inside');
  };
  const silent = (_ctx: Context, next: Next) => next();
  const hasty: Middleware = (ctx) => {
    ctx.respond = false;
    ctx.status = 200;
    ctx.res.end('done');
    ctx.res.write('and more');
  };
  const failing: Middleware = (ctx) => {
    ctx.body = Readable.from(failAfterBeginning());
  };
  const raw: Middleware = (ctx) => {
    const { rawHeaders, headersDistinct } = ctx.req;
    ctx.body = { distinct: headersDistinct['x-travel-user'], raw: rawHeaders.join(' '), host: headersDistinct['host'] };
  };

  before(async () => {
    const records = [
      authRecord,
      mappingRecord('raw', '/v1/raw', 'raw', { bypass_auth: true }),
      mappingRecord('echo', '/v1/echo', 'echo'),
      mappingRecord('whole', '/v1/whole', 'echo', { rewrite: '' }),
      mappingRecord('open', '/v1/open', 'echo', { bypass_auth: true }),
      mappingRecord('broken', '/v1/broken', 'broken'),
      mappingRecord('silent', '/v1/silent', 'silent'),
      mappingRecord('hasty', '/v1/hasty', 'hasty'),
      mappingRecord('failing', '/v1/failing', 'failing'),
    ];
    desk = await open({
      config: { records, users: [annRecord] },
      services: { echo, broken, silent, hasty, failing, raw },
      logger: recordingLogger(log),
    });
  });

  it('receive requests behind auth, with the path as the mapping rewrites it', async () => {
    await call(desk, '/v1/echo/x').expect(401);
    const seen = (path: string, query: string) => ({ path, query, user: 'ann', state: {} });
    await call(desk, '/v1/echo/x/y?a=1').auth('ann', 'secret').expect(200, seen('/x/y', '?a=1'));
    await call(desk, '/v1/echo').auth('ann', 'secret').expect(200, seen('/', ''));
    await call(desk, '/v1/whole/x').auth('ann', 'secret').expect(200, seen('/v1/whole/x', ''));
  });

  it('can be reached below the path where an app mounts the server, except on ambiguous paths', async () => {
    const host = new Koa().use(mount('/travel', desk.middleware)).callback();
    await request(host).get('/travel/v1/open/x/').expect(200);
    const paths = [
      '/travel//v1/open/x',
      '/travel/v1/open/..%20/x',
      '/travel/v1/open/%C0%AE./x',
      '/travel/v1/open%255cx',
    ];
    for (const path of paths) await request(host).get(path).expect(400);
  });

  it('run their middleware on the context of the outer app, with its keys and extensions', async () => {
    const service = new Koa({ keys: ['of the service'] }).use((ctx) => {
      ctx.cookies.set('a', 'b', { signed: true });
      ctx.body = ctx['shared'];
    });
    service.context['shared'] = 'of the service';
    const records = [mappingRecord('shop', '/', 'shop')];
    const mounted = await open({ config: { records }, services: { shop: service } });
    const host = new Koa({ keys: ['of the host'] }).use(mounted.middleware);
    host.context['shared'] = 'of the host';
    const answer = await request(host.callback()).get('/').expect(200, 'of the host');
    assert.match(String(answer.headers['set-cookie']), /a\.sig=/);
  });

  it('do not see a user name from the client or the state of the outer app', async () => {
    const host = new Koa().use((ctx, next) => {
      ctx.state['secret'] = 'of the host';
      return next();
    });
    const forged = request(host.use(desk.middleware).callback()).get('/v1/open').set('X-Travel-User', 'ann');
    await forged.expect(200, { path: '/', query: '', user: '', state: {} });
    const { body } = await call(desk, '/v1/raw').set({ 'X-TRAVEL-User': 'ann', Host: 'front.example' }).expect(200);
    assert.deepEqual([body.distinct, body.host], [undefined, ['front.example']]);
    assert.doesNotMatch(body.raw, /travel|ann/i);
  });

  it('cause a 500 if they throw, with the cause only in the log', async () => {
    await call(desk, '/v1/broken').auth('ann', 'secret').expect(bareProblem('internal'));
    const [failure] = log.filter(({ level }) => level === 'error');
    assert.match(String(failure?.fields['err']), /the secret inside/);
  });

  it('have a response whose stream fails cut off, logged and counted as 500', async () => {
    await assert.rejects(call(desk, '/v1/failing').auth('ann', 'secret').then(), /aborted/);
    const lines = log.filter(({ fields }) => fields['mapping'] === 'failing');
    const [failure, request] = lines;
    assert.deepEqual(
      lines.map(({ message }) => message),
      ['a response failed after it had started', 'request'],
    );
    assert.match(String(failure?.fields['err']), /the secret of the stream/);
    assert.deepEqual([request?.fields['status'], request?.fields['problem']], [500, 'internal']);
  });

  it('do not end the process if they write after the end of their response, which is logged', async () => {
    await call(desk, '/v1/hasty').auth('ann', 'secret').expect(200, 'done');
    const [failure] = log.filter(({ fields }) => fields['mapping'] === 'hasty');
    assert.match(String(failure?.fields['err']), /write after end/);
  });

  it('cause a 404 if they do not respond', async () => {
    await call(desk, '/v1/silent').auth('ann', 'secret').expect(bareProblem('not-found'));
    const host = new Koa().use(desk.middleware).use((ctx) => {
      ctx.body = 'the host';
    });
    await request(host.callback()).get('/v1/silent').auth('ann', 'secret').expect(404);
  });
});
