/** The auth service, for a gateway in the same process and for any proxy over HTTP. */
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { text } from 'node:stream/consumers';
import Koa from 'koa';
import mount from 'koa-mount';
import supertest from 'supertest';
import {
  type Authenticator,
  type AuthServiceOptions,
  createAuthenticator,
  createAuthService,
  createUsers,
  hashPassword,
  type Verdict,
} from '#auth';
import { requestContext } from '#http';
import { formatBasic } from '../../src/auth/basic.ts';

const demo = formatBasic('demo', 'sesame');
const challenge = 'Basic realm="travel", charset="UTF-8"';

async function setUp(options: Partial<AuthServiceOptions> = {}) {
  const passwordHash = await hashPassword('sesame', undefined, { ln: 1, r: 1, p: 1 });
  const users = createUsers([
    { name: 'demo', passwordHash },
    { name: 'Jane Doe', passwordHash },
  ]);
  const service = createAuthService({ authenticator: createAuthenticator({ users }), ...options });
  const ask = (authorization?: string) =>
    service.check({ method: 'GET', url: '/v1/hotels', headers: authorization === undefined ? {} : { authorization } });
  return { ...service, ask, http: supertest(service.app.callback()) };
}

function answering(verdict: Verdict): Authenticator {
  return { authenticate: () => verdict };
}

const failing: Authenticator = { authenticate: () => Promise.reject(new Error('out of memory')) };

describe('the auth service in this process', () => {
  it('allows a user, with the name in a header', async () => {
    const { ask } = await setUp();
    assert.deepEqual(await ask(demo), { outcome: 'allow', headers: { 'x-travel-user': 'demo' } });
  });

  it('answers without a promise when the credentials are cached', async () => {
    const { ask } = await setUp();
    await ask(demo);
    assert.deepEqual(ask(demo), { outcome: 'allow', headers: { 'x-travel-user': 'demo' } });
  });

  it('denies with a challenge and no body, the same for missing and invalid credentials and unknown users', async () => {
    const { ask } = await setUp();
    for (const header of [undefined, '', 'Bearer abc', formatBasic('demo', 'guess'), formatBasic('nobody', 'sesame')])
      assert.deepEqual(
        await ask(header),
        {
          outcome: 'deny',
          status: 401,
          headers: { 'WWW-Authenticate': challenge },
        },
        header,
      );
  });

  it('denies for a second when too many credentials are being checked', async () => {
    const { ask } = await setUp({ authenticator: answering({ kind: 'busy' }) });
    assert.deepEqual(ask(demo), { outcome: 'deny', status: 503, headers: { 'Retry-After': '1' } });
  });

  it('returns an error when scrypt fails, and does not throw', async () => {
    const { ask } = await setUp({ authenticator: failing });
    assert.deepEqual(await ask(demo), {
      outcome: 'error',
      reason: 'the credentials could not be checked: Error: out of memory',
    });
  });

  it('accepts another realm and another header', async () => {
    const { ask } = await setUp({ realm: 'a "quoted\\realm"', userHeader: 'X-Remote-User' });
    assert.deepEqual(await ask(demo), { outcome: 'allow', headers: { 'x-remote-user': 'demo' } });
    assert.deepEqual(await ask(), {
      outcome: 'deny',
      status: 401,
      headers: { 'WWW-Authenticate': 'Basic realm="a \\"quoted\\\\realm\\"", charset="UTF-8"' },
    });
  });

  it('refuses at the start a realm or a header that HTTP cannot carry', async () => {
    for (const realm of ['a\r\nb', '\u738b']) await assert.rejects(setUp({ realm }), /is not printable ASCII/);
    for (const userHeader of ['', 'x travel', 'x:y']) await assert.rejects(setUp({ userHeader }), /Header name/);
  });
});

describe('the auth service over HTTP', () => {
  it('answers any path and any method with the user and an empty body', async () => {
    const { http } = await setUp();
    for (const path of ['/', '/v1/hotels', '/v1/hotels/?a=1', '//x', '/a/../b', '/%00%zz', '/gateway/v0/diag/'])
      for (const method of ['get', 'head', 'options', 'post', 'put', 'patch', 'delete'] as const) {
        const response = await http[method](path).set('Authorization', demo);
        assert.equal(response.status, 200, `${method} ${path}`);
        assert.equal(response.headers['x-travel-user'], 'demo');
        assert.equal(response.headers['content-length'], '0');
        assert.equal(response.headers['content-type'], undefined);
        assert.equal(response.headers['cache-control'], 'no-store');
      }
  });

  it('denies with a challenge and the error body', async () => {
    const { http } = await setUp();
    for (const header of ['', 'Bearer abc', formatBasic('demo', 'guess'), formatBasic('nobody', 'sesame')]) {
      const response = await http.get('/v1/hotels').set('Authorization', header);
      assert.equal(response.status, 401, header);
      assert.equal(response.headers['www-authenticate'], challenge);
      assert.equal(response.headers['cache-control'], 'no-store');
      assert.equal(response.headers['x-travel-user'], undefined);
      assert.deepEqual(response.body, { code: 401, message: '401: Unauthorized' });
    }
  });

  it('denies a request without credentials, with every method', async () => {
    const { http } = await setUp();
    for (const method of ['get', 'head', 'options', 'post'] as const) {
      const response = await http[method]('/v1/hotels');
      assert.equal(response.status, 401, method);
      assert.equal(response.headers['www-authenticate'], challenge);
    }
  });

  it('ignores an identity that the client sends', async () => {
    const { http } = await setUp();
    const response = await http.get('/').set('X-Travel-User', 'admin').set('Authorization', demo);
    assert.equal(response.headers['x-travel-user'], 'demo');
    assert.equal((await http.get('/').set('X-Travel-User', 'admin')).status, 401);
  });

  it('sends Retry-After when too many credentials are being checked', async () => {
    const { http } = await setUp({ authenticator: answering({ kind: 'busy' }) });
    const response = await http.get('/').set('Authorization', demo);
    assert.equal(response.status, 503);
    assert.equal(response.headers['retry-after'], '1');
    assert.deepEqual(response.body, {
      code: 503,
      message: '503: Service Unavailable',
      detail: 'Too many credentials are being checked at once.',
    });
  });

  it('does not show the cause when scrypt fails, and logs it', async () => {
    const logged: object[] = [];
    const log = (fields: object) => void logged.push(fields);
    const { http } = await setUp({ authenticator: failing, logger: { info: log, warn: log, error: log } });
    const response = await http.get('/').set('Authorization', demo);
    assert.equal(response.status, 500);
    assert.doesNotMatch(response.text, /memory/);
    assert.equal(logged.length, 1);
    assert.doesNotMatch(JSON.stringify(logged), /sesame|ZGVtbzpzZXNhbWU/);
  });

  it('writes the header in its canonical case, also for `OPTIONS *`', async () => {
    const { app } = await setUp();
    const response = await send(
      app,
      `OPTIONS * HTTP/1.1\r\nHost: a\r\nConnection: close\r\nAuthorization: ${demo}\r\n\r\n`,
    );
    assert.match(response, /^HTTP\/1\.1 200 OK\r\n/);
    assert.match(response, /\r\nX-Travel-User: demo\r\n/);
    assert.match(response, /\r\nContent-Length: 0\r\n[\s\S]*\r\n\r\n$/);
  });

  it('gives the user to the access log of the server around it', async () => {
    const { app } = await setUp();
    const host = new Koa();
    const seen: unknown[] = [];
    host.use(async (ctx, next) => {
      await next();
      seen.push(requestContext(ctx).user);
    });
    host.use(mount(app));
    for (const header of [demo, formatBasic('demo', 'guess')])
      await supertest(host.callback()).get('/').set('Authorization', header);
    assert.deepEqual(seen, ['demo', undefined]);
  });

  it('does not read a later request as the body that a proxy left out', async () => {
    const { app } = await setUp();
    const head = (length: number) => `POST / HTTP/1.1\r\nHost: a\r\nContent-Length: ${length}\r\n`;
    const last = 'GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n';
    for (const authorization of [`Authorization: ${demo}\r\n`, '']) {
      const status = authorization === '' ? 401 : 200;
      const alone = await send(app, `${head(1000)}${authorization}\r\n`);
      assert.match(alone, new RegExp(`^HTTP/1\\.1 ${status} [^]*\r\nConnection: close\r\n`));
      const whole = await send(app, `${head(4)}${authorization}\r\nbody${last}`);
      assert.deepEqual(whole.match(/(?<=HTTP\/1\.1 )\d+/g), [String(status), '401']);
    }
  });

  it('does not wait for a body, nor read one', async () => {
    const { app } = await setUp();
    const head = `POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nAuthorization: ${demo}\r\nContent-Length: 1000\r\n\r\n`;
    for (const body of ['', 'x', 'x'.repeat(1000)]) assert.match(await send(app, head + body), /^HTTP\/1\.1 200 OK/);
  });
});

/** Sends bytes to a server of the app; returns all that comes back until it closes. */
async function send(app: Koa, request: string): Promise<string> {
  const server = createServer(app.callback());
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  try {
    const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
    socket.write(request);
    return await text(socket);
  } finally {
    server.close();
  }
}
