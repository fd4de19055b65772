/** The auth service over gRPC (ext_authz): the same decisions as over HTTP, about the request that a call describes. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:http2';
import { status } from '@grpc/grpc-js';
import Koa from 'koa';
import mount from 'koa-mount';
import supertest from 'supertest';
import {
  type AuthServiceOptions,
  createApiKey,
  createAuthenticator,
  createAuthService,
  createUsers,
  hashPassword,
  type TokenVerifier,
  type Verdicts,
} from '#auth';
import { type AddressOptions, createAddresses, createRequestContext, problems, requestContext } from '#http';
import { formatBasic } from '../../src/auth/authenticator.ts';
import { type LogLine, recordingLogger } from '../support/edge.ts';
import { testServers } from '../support/serve.ts';
import { connectExtAuthz, type Described, type DescribedHttp, type ForeignAnswer } from '../support/wire/ext-authz.ts';
import { startHttp } from '../support/wire/http-server.ts';

const demo = formatBasic('demo', 'sesame');
const challenge = 'Basic realm="api", charset="UTF-8"';
const { key, sha256 } = createApiKey();
const get = { method: 'GET', path: '/v1/hotels?a=1', host: 'front.example', scheme: 'http', protocol: 'HTTP/1.1' };

const sender = { network: '192.0.2.1', isShared: false };
const throttling: Verdicts = { verdictOf: () => ({ kind: 'throttled', retryAfterS: 7, sender }) };
const busy: Verdicts = { verdictOf: () => ({ kind: 'busy' }) };
const failing: Verdicts = { verdictOf: () => Promise.reject(new Error('out of memory for sesame')) };

/** Accepts one token, and refuses or cannot check others. */
const tokens: TokenVerifier = {
  places: [],
  providers: [],
  claimHeaders: ['x-tenant'],
  credentialHeaders: [],
  credentialParams: [],
  verdictOf({ headers, url }) {
    const { authorization = '' } = headers;
    const token = authorization.startsWith('Bearer ') ? authorization.slice(7) : undefined;
    if (token === undefined) return undefined;
    if (token === 'unchecked') return { kind: 'token-unchecked', reason: 'no keys' };
    if (token !== 'right' || url !== get.path) return { kind: 'token-refused', isExpired: token === 'expired' };
    return { kind: 'token-user', name: 'ann', headers: { 'x-tenant': '7' }, claimOf: () => undefined };
  },
};

describe('the auth service over gRPC', () => {
  const servers = testServers();

  async function setUp(options: Partial<AuthServiceOptions> = {}, addresses: AddressOptions = {}) {
    const passwordHash = await hashPassword('sesame', undefined, { ln: 1, r: 1, p: 1 });
    const users = createUsers([
      { name: 'demo', passwordHash },
      { name: 'bot', apiKeys: [{ name: 'ci', sha256 }] },
    ]);
    const log: LogLine[] = [];
    const logger = recordingLogger(log);
    const service = createAuthService({ authenticator: createAuthenticator({ users }), logger, ...options });
    const contexts: ReturnType<typeof requestContext>[] = [];
    const app = new Koa();
    app.use(createRequestContext(createAddresses(addresses)));
    app.use((ctx, next) => {
      contexts.push(requestContext(ctx));
      return next();
    });
    app.use(mount(service.app));
    const { port } = await startHttp(servers, { handler: app.callback(), http2: true });
    const client = connectExtAuthz(servers, port);
    const describeHttp = (headers: DescribedHttp['headers'] = {}, more: Partial<DescribedHttp> = {}): Described => ({
      request: { http: { ...get, ...more, headers } },
    });
    const ask = (headers?: DescribedHttp['headers'], metadata?: Readonly<Record<string, string>>) =>
      client.check(describeHttp(headers), metadata);
    return { port, client, ask, describeHttp, log, contexts, http: supertest(`http://127.0.0.1:${port}`) };
  }

  const headersOf = (options: readonly { readonly header: { readonly key: string; readonly value?: string } }[] = []) =>
    options.map(({ header }) => [header.key, header.value]);
  const deniedOf = ({ deniedResponse: denied, status: given }: ForeignAnswer) => ({
    code: given?.code,
    status: denied?.status?.code,
    headers: headersOf(denied?.headers),
    body: denied?.body,
  });

  it('allows a user, with the name in a header that replaces those of the client', async () => {
    const { ask } = await setUp();
    assert.deepEqual(await ask({ authorization: demo }), {
      status: {},
      okResponse: {
        headers: [{ header: { key: 'x-travel-user', value: 'demo' }, appendAction: 2 }],
        headersToRemove: ['x-api-key-name'],
      },
    });
  });

  it('removes identity headers of the client in any spelling, except for those that it sets', async () => {
    const { ask } = await setUp({ keyHeader: 'x-api-key', tokens: () => tokens });
    const forged = { 'x-travel-user': 'admin', x_travel_user: 'admin', 'x.tenant': '1', 'x-api-key-name': 'a' };
    const { okResponse } = await ask({ authorization: demo, ...forged, 'x-other': '1' });
    assert.deepEqual(headersOf(okResponse?.headers), [['x-travel-user', 'demo']]);
    assert.deepEqual(okResponse?.headersToRemove, ['x-api-key-name', 'x-tenant', 'x_travel_user', 'x.tenant']);
    const ofKey = (await ask({ 'x-api-key': key, ...forged })).okResponse;
    assert.deepEqual(headersOf(ofKey?.headers), [
      ['x-travel-user', 'bot'],
      ['x-api-key-name', 'ci'],
    ]);
    assert.deepEqual(ofKey?.headersToRemove, ['x-tenant', 'x_travel_user', 'x.tenant']);
  });

  it('names the user in several headers, and passes a name on as text', async () => {
    const authenticator: Verdicts = { verdictOf: () => ({ kind: 'user', name: 'Jörg 文', isAdmin: false }) };
    const { ask } = await setUp({ authenticator, userHeader: () => ['x-user', 'x-name'] });
    assert.deepEqual(headersOf((await ask()).okResponse?.headers), [
      ['x-user', 'Jörg 文'],
      ['x-name', 'Jörg 文'],
    ]);
  });

  it('denies missing and invalid credentials with the challenge and the error body of HTTP', async () => {
    const { ask, http } = await setUp();
    for (const headers of [{}, { authorization: formatBasic('demo', 'guess') }, { authorization: 'Bearer x' }]) {
      const { code, status, headers: sent, body } = deniedOf(await ask(headers));
      assert.deepEqual([code, status], [16, 401]);
      const sentByName = Object.fromEntries(sent);
      const overHttp = await http.get('/v1/hotels?a=1').set(headers).expect(401);
      assert.equal(sentByName['www-authenticate'], challenge);
      for (const name of ['www-authenticate', 'content-type', 'cache-control', 'vary'])
        assert.equal(sentByName[name], overHttp.headers[name], name);
      assert.equal(body, overHttp.text);
      assert.equal(sent.length, Object.keys(sentByName).length);
      assert.deepEqual(
        Object.keys(sentByName).filter((name) => /connection|length|request-id|^grpc/.test(name)),
        [],
      );
    }
  });

  it('chooses the form of the error by the Accept of the client', async () => {
    const { ask } = await setUp();
    const { headers, body } = deniedOf(await ask({ accept: 'text/html', 'content-type': 'application/grpc' }));
    assert.match(String(Object.fromEntries(headers)['content-type']), /^text\/html/);
    assert.match(String(body), /<html/);
  });

  it('sends both challenges if it accepts tokens, and checks tokens for the described path', async () => {
    const { ask, client, describeHttp } = await setUp({ tokens: () => tokens });
    const { deniedResponse } = await ask();
    const challenges = deniedResponse?.headers?.filter(({ header }) => header.key === 'www-authenticate');
    assert.deepEqual(challenges, [
      { header: { key: 'www-authenticate', value: 'Bearer realm="api"' }, appendAction: 2 },
      { header: { key: 'www-authenticate', value: challenge }, append: { value: true } },
    ]);
    const authorization = 'Bearer right';
    const right = (await ask({ authorization })).okResponse;
    assert.deepEqual(Object.fromEntries(headersOf(right?.headers)), { 'x-travel-user': 'ann', 'x-tenant': '7' });
    assert.equal(deniedOf(await client.check(describeHttp({ authorization }, { path: '/' }))).status, 401);
  });

  it('denies with 401 and Retry-After while logins are throttled, and with 503 while it is busy', async () => {
    const throttled = deniedOf(await (await setUp({ authenticator: throttling })).ask());
    assert.equal(throttled.status, 401);
    assert.deepEqual(Object.fromEntries(throttled.headers)['retry-after'], '7');
    const overloaded = deniedOf(await (await setUp({ authenticator: busy })).ask());
    assert.deepEqual([overloaded.code, overloaded.status], [14, 503]);
    assert.deepEqual(JSON.parse(overloaded.body ?? ''), {
      code: 503,
      message: '503: Service Unavailable',
      detail: problems['auth-overloaded'].meaning,
    });
  });

  it('responds to a gateway that prefers minimal responses without bodies, unlike to a client that does', async () => {
    const minimal = { prefer: 'return=minimal' };
    const { ask } = await setUp({ authenticator: throttling });
    const { status, headers, body } = deniedOf(await ask({}, minimal));
    assert.deepEqual([status, body, Object.fromEntries(headers)['retry-after']], [429, undefined, '7']);
    assert.equal(deniedOf(await ask(minimal)).status, 401);
  });

  it('fails the call, so that callers reject the request, when it cannot decide', async () => {
    const { ask, log } = await setUp({ authenticator: failing });
    await assert.rejects(ask(), { code: status.INTERNAL, details: 'the auth service could not decide' });
    assert.equal(log.filter(({ level }) => level === 'error').length, 1);
    assert.doesNotMatch(JSON.stringify(log), /c2VzYW1l/);
    const unchecked = await setUp({ tokens: () => tokens });
    await assert.rejects(unchecked.ask({ authorization: 'Bearer unchecked' }), { code: status.UNAVAILABLE });
  });

  it('reports the user to the access log of the surrounding server, and logs no credentials', async () => {
    const { ask, contexts, log } = await setUp();
    await ask({ authorization: demo });
    await ask({ authorization: formatBasic('demo', 'guess') });
    assert.deepEqual(
      contexts.map(({ user, problem, grpcStatus }) => [user, problem?.slug, grpcStatus]),
      [
        ['demo', undefined, 0],
        [undefined, 'unauthorized', 0],
      ],
    );
    assert.deepEqual(log, []);
  });

  describe('throttles logins by the client', () => {
    /** The networks whose logins the service has throttled by. */
    async function networksOf(addresses: AddressOptions, requests: readonly Described[]) {
      const networks: string[] = [];
      const authenticator: Verdicts = {
        verdictOf(_authorization, from) {
          networks.push(from?.().network ?? '');
          return { kind: 'missing' };
        },
      };
      const { client } = await setUp({ authenticator }, addresses);
      for (const one of requests) await client.check(one);
      return networks;
    }
    const from = (address: string, forwardedFor?: string): Described => ({
      source: { address: { socketAddress: { address, portValue: 4711 } } },
      request: { http: { ...get, headers: forwardedFor === undefined ? {} : { 'x-forwarded-for': forwardedFor } } },
    });
    const { source: _source, ...withoutSource } = from('', '203.0.113.8');
    const requests = [
      from('203.0.113.7'),
      from('203.0.113.7', '198.51.100.1'),
      from('10.0.0.2', '203.0.113.9, 10.0.0.2'),
    ];

    it('that a trusted proxy names, in its attributes before any header', async () => {
      const trusted = { trustedProxies: ['127.0.0.1', '10.0.0.0/8'] };
      const networks = await networksOf(trusted, [...requests, withoutSource]);
      assert.deepEqual(networks, ['203.0.113.7/32', '203.0.113.7/32', '203.0.113.9/32', '203.0.113.8/32']);
    });

    it('that calls, if it is no trusted proxy', async () => {
      const networks = await networksOf({ trustedProxies: ['10.0.0.0/8'] }, requests);
      assert.deepEqual(new Set(networks), new Set(['127.0.0.1/32']));
    });
  });

  describe('does not take an HTTP check for a call, whatever the client of the proxy sends', () => {
    const frame = Buffer.from([0, 0, 0, 0, 6, 0x0a, 4, 0x22, 2, 0x12, 0]);
    const call = {
      ':method': 'POST',
      ':path': '/envoy.service.auth.v3.Authorization/Check',
      'content-type': 'application/grpc',
      te: 'trailers',
    };
    async function statusOver2(port: number, headers: object, body?: Buffer): Promise<unknown> {
      const session = connect(`http://127.0.0.1:${port}`);
      servers.later(() => session.destroy());
      const stream = session.request({ ...call, ...headers }, { endStream: body === undefined });
      if (body !== undefined) stream.end(body);
      stream.resume();
      return new Promise((resolve, reject) => {
        stream.once('response', (response) => resolve(response[':status']));
        stream.once('error', reject);
      });
    }

    it('with the head of a call', async () => {
      const { port } = await setUp();
      assert.equal(await statusOver2(port, {}, frame), 200);
      const checks: readonly (readonly [object, Buffer?])[] = [
        [{}],
        [{ 'content-length': '0' }, Buffer.alloc(0)],
        [{}, Buffer.alloc(0)],
        [{ 'x-envoy-auth-partial-body': 'false' }, frame],
        [{ 'x-forwarded-method': 'POST' }, frame],
        [{ 'x-forwarded-uri': '/' }, frame],
        [{ te: undefined }, frame],
        [{ ':method': 'PUT' }, frame],
        [{ ':path': '/other' }, frame],
        [{ 'content-type': 'application/grpc-web' }, frame],
      ];
      for (const [headers, body] of checks)
        assert.equal(await statusOver2(port, headers, body), 401, JSON.stringify(headers));
    });

    it('over HTTP/1.1', async () => {
      const { http } = await setUp();
      const post = http.post(call[':path']).set({ 'Content-Type': 'application/grpc', TE: 'trailers' });
      await post.send(frame).expect(401).expect('WWW-Authenticate', challenge);
    });

    it('with a content type of gRPC, so that a refusal keeps its status', async () => {
      const { http } = await setUp();
      for (const type of ['application/grpc', 'application/grpc-web+proto'])
        await http.post('/shop.Carts/Add').set('Content-Type', type).send(frame).expect(401);
      await http.post('/shop.Carts/Add').set('Content-Type', 'application/grpc').set('Authorization', demo).expect(200);
    });
  });

  it('resets the oldest call when too many have an incomplete message', async () => {
    const { port } = await setUp();
    const path = '/envoy.service.auth.v3.Authorization/Check';
    const head = { ':method': 'POST', ':path': path, 'content-type': 'application/grpc', te: 'trailers' };
    const open = (count: number) => {
      const session = connect(`http://127.0.0.1:${port}`);
      servers.later(() => session.destroy());
      return Array.from({ length: count }, () => session.request(head, { endStream: false }).on('error', () => {}));
    };
    const [oldest = assert.fail()] = open(1);
    oldest.write(Buffer.alloc(5));
    const closed = once(oldest, 'close');
    const others = [86, 85, 85].flatMap(open);
    let hasAnswer = false;
    oldest.on('response', () => {
      hasAnswer = true;
    });
    await closed;
    assert.equal(hasAnswer, false);
    assert.equal(others.filter((stream) => stream.closed).length, 0);
  });

  describe('fails a call whose message is', () => {
    async function statusOf(message: Buffer): Promise<unknown> {
      const { port } = await setUp();
      const session = connect(`http://127.0.0.1:${port}`);
      servers.later(() => session.destroy());
      const stream = session.request({
        ':method': 'POST',
        ':path': '/envoy.service.auth.v3.Authorization/Check',
        'content-type': 'application/grpc',
        te: 'trailers',
      });
      stream.end(message);
      stream.resume();
      return new Promise((resolve, reject) => {
        stream.once('response', (headers) => resolve(headers['grpc-status']));
        stream.once('error', reject);
      });
    }
    const frameOf = (message: Buffer, flag = 0) => {
      const head = Buffer.from([flag, 0, 0, 0, 0]);
      head.writeUInt32BE(message.length, 1);
      return Buffer.concat([head, message]);
    };
    const messages: Readonly<Record<string, readonly [Buffer, number]>> = {
      empty: [frameOf(Buffer.alloc(0)), status.INVALID_ARGUMENT],
      'without a request': [frameOf(Buffer.from([0x0a, 0])), status.INVALID_ARGUMENT],
      noise: [frameOf(Buffer.from('hello')), status.INVALID_ARGUMENT],
      compressed: [frameOf(Buffer.from([0x0a, 0]), 1), status.UNIMPLEMENTED],
      truncated: [Buffer.from([0, 0, 0, 0, 9, 1]), status.UNIMPLEMENTED],
      'of too many fields': [frameOf(Buffer.alloc(100_000, Buffer.from([0x0a, 0]))), status.INVALID_ARGUMENT],
      'too large': [frameOf(Buffer.alloc(300_000)), status.RESOURCE_EXHAUSTED],
    };
    for (const [what, [message, code]] of Object.entries(messages))
      it(what, async () => assert.equal(await statusOf(message), String(code)));
  });
});
