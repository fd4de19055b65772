/** The auth service, called by a gateway in the same process and by proxies over HTTP. */
import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import Koa from 'koa';
import mount from 'koa-mount';
import supertest from 'supertest';
import {
  type AuthenticatorOptions,
  type AuthServiceOptions,
  createAuthenticator,
  createAuthService,
  createUsers,
  hashPassword,
  type Verdicts,
} from '#auth';
import { problems, requestContext } from '#http';
import { formatBasic } from '../../src/auth/authenticator.ts';
import { type LogLine, recordingLogger } from '../support/edge.ts';
import { testServers } from '../support/serve.ts';

const demo = formatBasic('demo', 'sesame');
const challenge = 'Basic realm="api", charset="UTF-8"';

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

const failing: Verdicts = { verdictOf: () => Promise.reject(new Error('out of memory')) };

const refused = [undefined, '', 'Bearer abc', formatBasic('demo', 'guess'), formatBasic('nobody', 'sesame')];
const sender = { network: '192.0.2.1', isShared: false };
const throttling: Verdicts = { verdictOf: () => ({ kind: 'throttled', retryAfterS: 7, sender }) };
const busy: Verdicts = { verdictOf: () => ({ kind: 'busy' }) };

describe('the auth service in this process', () => {
  const deny = (slug: 'unauthorized' | 'auth-overloaded' | 'login-throttled', headers: object) => ({
    outcome: 'deny',
    status: problems[slug].status,
    headers,
    slug,
  });

  it('allows a user, with the name in a header, and decides synchronously if the credentials are cached', async () => {
    const { ask } = await setUp();
    const expected = { outcome: 'allow', headers: { 'x-travel-user': 'demo' }, isAdmin: false };
    assert.deepEqual(await ask(demo), expected);
    assert.deepEqual(ask(demo), expected);
  });

  it('denies missing and invalid credentials and unknown users alike, with a challenge and no body', async () => {
    const { ask } = await setUp();
    for (const header of refused)
      assert.deepEqual(await ask(header), deny('unauthorized', { 'WWW-Authenticate': challenge }), header);
  });

  it('denies with Retry-After when too many credentials are being checked, and while logins are throttled', async () => {
    for (const [authenticator, slug, wait] of [
      [busy, 'auth-overloaded', '1'],
      [throttling, 'login-throttled', '7'],
    ] as const)
      assert.deepEqual((await setUp({ authenticator })).ask(demo), deny(slug, { 'Retry-After': wait }));
  });

  it('returns an error instead of throwing when scrypt fails', async () => {
    const { ask } = await setUp({ authenticator: failing });
    const reason = 'the credentials could not be checked: Error: out of memory';
    assert.deepEqual(await ask(demo), { outcome: 'error', reason });
  });

  it('passes a name on as UTF-8 if the authenticator of a program knows such names', async () => {
    const authenticator: Verdicts = { verdictOf: () => ({ kind: 'user', name: 'Jörg 文', isAdmin: false }) };
    const { ask, http } = await setUp({ authenticator });
    const name = Buffer.from('Jörg 文').toString('latin1');
    assert.deepEqual(await ask(demo), { outcome: 'allow', headers: { 'x-travel-user': name }, isAdmin: false });
    await http.get('/').expect(200).expect('X-Travel-User', name);
  });

  it('supports a custom realm and a custom header', async () => {
    const { ask } = await setUp({ realm: 'a "quoted\\realm"', userHeader: 'X-Remote-User' });
    assert.deepEqual(await ask(demo), { outcome: 'allow', headers: { 'x-remote-user': 'demo' }, isAdmin: false });
    const quoted = 'Basic realm="a \\"quoted\\\\realm\\"", charset="UTF-8"';
    assert.deepEqual(await ask(), deny('unauthorized', { 'WWW-Authenticate': quoted }));
  });

  it('rejects an invalid authenticator or invalid users at creation', () => {
    const create = () => createAuthService({ authenticator: {} as Verdicts });
    assert.throws(create, /^TypeError: the authenticator has no function `verdictOf`/);
    const records = [] as unknown as AuthenticatorOptions['users'];
    assert.throws(() => createAuthenticator({ users: records }), /^TypeError: the users have no function `isAdmin`/);
  });

  it('rejects a realm or header name that is invalid in HTTP at creation', async () => {
    for (const realm of ['a\r\nb', '\u738b']) await assert.rejects(setUp({ realm }), /is not printable ASCII/);
    for (const userHeader of ['', 'x travel', 'x:y']) await assert.rejects(setUp({ userHeader }), /Header name/);
  });
});

describe('the auth service over HTTP', () => {
  const servers = testServers();

  /** Sends bytes to a server of the app. Returns everything received until the server closes the connection. */
  async function send(app: Koa, bytes: string): Promise<string> {
    const { port } = await servers.http(app.callback());
    const socket = connect(port, '127.0.0.1');
    socket.write(bytes);
    return await text(socket);
  }

  it('sends Retry-After when too many credentials are being checked', async () => {
    const { http } = await setUp({ authenticator: busy });
    const detail = problems['auth-overloaded'].meaning;
    const body = { code: 503, message: '503: Service Unavailable', detail };
    await http.get('/').set('Authorization', demo).expect('Retry-After', '1').expect(503, body);
  });

  it('responds to a gateway that prefers minimal responses like the service in its process', async () => {
    const check = async (authenticator: Verdicts, status: number, header: string, value: string) => {
      const { http } = await setUp({ authenticator });
      const call = http.get('/').set('Prefer', 'return=minimal');
      const { headers } = await call.expect(status, '').expect(header, value);
      assert.equal(headers['content-type'], undefined);
    };
    await check({ verdictOf: () => ({ kind: 'missing' }) }, 401, 'WWW-Authenticate', challenge);
    await check(throttling, 429, 'Retry-After', '7');
    await check(busy, 503, 'Retry-After', '1');
  });

  it('responds with 401 and Retry-After while logins are throttled', async () => {
    const { http } = await setUp({ authenticator: throttling });
    const { body } = await http.get('/').expect(401).expect('Retry-After', '7').expect('WWW-Authenticate', challenge);
    assert.match(body.detail, /^Too many logins /);
  });

  for (const [what, authenticator, fields, message] of [
    ['are throttled', throttling, sender, /after too many failures.*TRUSTED_PROXIES/],
    ['exceed the passwords that it can check', busy, {}, /too many passwords are being checked/],
  ] as const)
    it(`logs once a minute, and not as an outage, that logins ${what}`, async () => {
      const lines: LogLine[] = [];
      const { http } = await setUp({ authenticator, logger: recordingLogger(lines) });
      for (let time = 0; time < 3; time += 1) await http.get('/');
      assert.deepEqual(
        lines.map((line) => line.fields),
        [{ ...fields, refused: 1 }],
      );
      assert.match(lines[0]?.message ?? '', message);
    });

  it('logs the cause of a scrypt failure, and does not return it', async () => {
    const logged: object[] = [];
    const log = (fields: object) => void logged.push(fields);
    const { http } = await setUp({ authenticator: failing, logger: { info: log, warn: log, error: log } });
    const response = await http.get('/').set('Authorization', demo);
    assert.equal(response.status, 500);
    assert.doesNotMatch(response.text, /memory/);
    assert.equal(logged.length, 1);
    assert.doesNotMatch(JSON.stringify(logged), /sesame|ZGVtbzpzZXNhbWU/);
  });

  it('sends the header in its canonical case, even for `OPTIONS *`', async () => {
    const { app } = await setUp();
    const response = await send(
      app,
      `OPTIONS * HTTP/1.1\r\nHost: a\r\nConnection: close\r\nAuthorization: ${demo}\r\n\r\n`,
    );
    assert.match(response, /^HTTP\/1\.1 200 OK\r\n/);
    assert.match(response, /\r\nX-Travel-User: demo\r\n/);
    assert.match(response, /\r\nContent-Length: 0\r\n[\s\S]*\r\n\r\n$/);
    assert.doesNotMatch(response, /Content-Type/);
  });

  it('reports the user to the access log of the surrounding server', async () => {
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

  it('does not mistake the next request for a body that the proxy omitted', async () => {
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
});
