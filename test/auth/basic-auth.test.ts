/** `basicAuth` in a plain Koa app, which renders no problems and opens no request context. */
import assert from 'node:assert/strict';
import Koa, { type Middleware } from 'koa';
import supertest from 'supertest';
import { basicAuth, createAuthenticator, createUsers, hashPassword, type Verdicts } from '#auth';
import { createAddresses, createProblemResponses } from '#http';
import { formatBasic } from '../../src/auth/authenticator.ts';

const cost = { ln: 1, r: 1, p: 1 };

/** Reaches a page that shows the user. `before`: middleware of the app. */
async function setUp(options: Partial<Parameters<typeof basicAuth>[0]> = {}, before: readonly Middleware[] = []) {
  const users = createUsers([
    { name: 'ann', passwordHash: await hashPassword('sesame', undefined, cost), roles: ['admin'] },
  ]);
  const errors: unknown[] = [];
  const app = new Koa();
  app.on('error', (error) => void errors.push(error));
  for (const one of before) app.use(one);
  let reached = 0;
  app.use(basicAuth({ authenticator: createAuthenticator({ users }), ...options })).use((ctx) => {
    reached += 1;
    ctx.body = { user: ctx.state.user, header: ctx.get('X-Travel-User') };
  });
  return { http: supertest(app.callback()), errors, reached: () => reached };
}

const failing: Verdicts = { verdictOf: () => Promise.reject(new Error('out of memory')) };

describe('basicAuth', () => {
  it('passes a user on, and replaces an identity header that the client has sent', async () => {
    const { http } = await setUp();
    await http
      .get('/')
      .auth('ann', 'sesame')
      .set('X-Travel-User', 'bob')
      .expect(200, { user: { kind: 'user', name: 'ann', isAdmin: true }, header: 'ann' });
  });

  it('passes a name on as UTF-8 if the authenticator of a program knows such names', async () => {
    const { http } = await setUp({
      authenticator: { verdictOf: () => ({ kind: 'user', name: 'Jörg 文', isAdmin: false }) },
    });
    const { body } = await http.get('/').expect(200);
    assert.deepEqual([body.user.name, Buffer.from(body.header, 'latin1').toString()], ['Jörg 文', 'Jörg 文']);
  });

  it('sends a challenge to a request without valid credentials, and does not let it pass', async () => {
    const { http, reached, errors } = await setUp({ realm: 'shop' });
    for (const header of [undefined, '', 'Bearer abc', formatBasic('ann', 'guess'), formatBasic('bob', 'sesame')]) {
      const asked = http.get('/').set(header === undefined ? {} : { Authorization: header });
      const { body } = await asked.expect(401).expect('WWW-Authenticate', 'Basic realm="shop", charset="UTF-8"');
      assert.deepEqual(body, { code: 401, message: '401: Unauthorized' });
    }
    assert.deepEqual([reached(), errors], [0, []]);
  });

  it('sends 401 whatever content type a client chooses, because a proxy may ask the app what may pass', async () => {
    const { http, reached } = await setUp();
    const asked = http.post('/').set('Content-Type', 'application/grpc').send(Buffer.alloc(5));
    const { headers } = await asked.expect(401).expect('WWW-Authenticate', /^Basic/);
    assert.deepEqual([reached(), headers['grpc-status']], [0, undefined]);
  });

  it('responds in the representation that the client accepts', async () => {
    const { http } = await setUp();
    await http
      .get('/')
      .set('Accept', 'text/html')
      .expect(401)
      .expect('Content-Type', /^text\/html/);
    await http
      .get('/')
      .set('Accept', 'application/yaml')
      .expect(401)
      .expect('Content-Type', /^application\/yaml/);
  });

  it('throttles failed logins of a client, which trusted proxies name', async () => {
    const { http, reached } = await setUp({ addresses: createAddresses({ trustedProxies: ['127.0.0.1', '::1'] }) });
    const ask = (client: string, password: string) =>
      http.get('/').set('X-Forwarded-For', client).auth('ann', password);
    for (let guess = 0; guess < 11; guess += 1) await ask('203.0.113.7', 'guess').expect(401);
    const { headers } = await ask('203.0.113.7', 'sesame').expect(429);
    assert.ok(Number(headers['retry-after']) >= 1);
    assert.equal(reached(), 0);
    await ask('203.0.113.8', 'sesame').expect(200);
  });

  it('responds with 503 when too many passwords are being checked', async () => {
    const { http, reached } = await setUp({ authenticator: { verdictOf: () => ({ kind: 'busy' }) } });
    await http.get('/').auth('ann', 'sesame').expect(503).expect('Retry-After', '1');
    assert.equal(reached(), 0);
  });

  it('lets nobody pass when the check fails, and reports the error to the app', async () => {
    const { http, reached, errors } = await setUp({ authenticator: failing });
    await http.get('/').auth('ann', 'sesame').expect(500, { code: 500, message: '500: Internal Server Error' });
    assert.equal(reached(), 0);
    assert.match(String(errors), /out of memory/);
  });

  it('leaves the errors of the app to the app', async () => {
    const { http, errors } = await setUp();
    const app = new Koa().on('error', () => {});
    const passed = createUsers([{ name: 'ann', passwordHash: await hashPassword('sesame', undefined, cost) }]);
    app
      .use(basicAuth({ authenticator: createAuthenticator({ users: passed }) }))
      .use((ctx) => ctx.throw(418, 'teapot'));
    await supertest(app.callback()).get('/').auth('ann', 'sesame').expect(418, 'teapot');
    await http.get('/').auth('ann', 'sesame').expect(200);
    assert.deepEqual(errors, []);
  });

  it('responds alike in an app that renders problems', async () => {
    const { http } = await setUp({}, [createProblemResponses()]);
    await http.get('/').expect(401).expect('WWW-Authenticate', 'Basic realm="api", charset="UTF-8"');
  });

  it('cannot be created without an authenticator, nor used without being called', async () => {
    assert.throws(() => basicAuth({ authenticator: {} as Verdicts }), /^TypeError: the authenticator has no function/);
    const app = new Koa().on('error', () => {});
    app.use(basicAuth as unknown as Middleware).use((ctx) => {
      ctx.body = 'reached';
    });
    await supertest(app.callback()).get('/').auth('ann', 'sesame').expect(500);
  });
});
