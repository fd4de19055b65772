/** The responses for thrown errors: format, headers, details and links to the problem pages, and what is logged. */
import assert from 'node:assert/strict';
import { EventEmitter, once } from 'node:events';
import { connect } from 'node:net';
import { Readable } from 'node:stream';
import cors from '@koa/cors';
import Koa, { type Middleware } from 'koa';
import mount from 'koa-mount';
import { pino } from 'pino';
import request from 'supertest';
import type { Logger } from '#foundation';
import {
  createAddresses,
  createProblemResponses,
  createRequestContext,
  finalStatus,
  type ProblemResponsesOptions,
  problem,
} from '#http';
import { testServers } from '../support/serve.ts';
import { sendRaw } from '../support/wire/raw-client.ts';

interface Setup extends ProblemResponsesOptions {
  readonly outside?: readonly Middleware[];
  readonly inside?: readonly Middleware[];
}

const notFound = { code: 404, message: '404: Not Found' };
const internal = { code: 500, message: '500: Internal Server Error' };

describe('createProblemResponses', () => {
  const servers = testServers();
  let lines: { readonly level: string; readonly fields: Readonly<Record<string, unknown>> }[];

  beforeEach(() => {
    lines = [];
  });

  /** An app whose innermost middleware throws `thrown`, and that logs to `lines`. */
  function throwing(thrown: unknown, { outside = [], inside = [], ...options }: Setup = {}) {
    const at = (level: string) => (fields: object) => void lines.push({ level, fields: { ...fields } });
    const logger: Logger = { info: at('info'), warn: at('warn'), error: at('error') };
    const responses = createProblemResponses({ logger, ...options });
    const end: Middleware = () => {
      throw thrown;
    };
    const app = new Koa();
    for (const one of [createRequestContext(createAddresses()), ...outside, responses, ...inside, end]) app.use(one);
    return app.callback();
  }

  const get = (thrown: unknown, setup?: Setup) => request(throwing(thrown, setup)).get('/');

  describe('renders a problem', () => {
    const thrown = problem('not-found', { detail: 'There is no hotel <x>.' });
    const json = `${JSON.stringify({ ...notFound, detail: 'There is no hotel <x>.' })}\n`;
    const rfc9457 = `{"type":"about:blank","title":"Not Found","status":404,${json.slice(1)}`;
    const yaml = 'code: 404\nmessage: "404: Not Found"\ndetail: There is no hotel <x>.\n';

    function check(accept: string, type: string, expected: string | RegExp) {
      it(`as ${type} for Accept: ${accept}`, async () => {
        const response = get(thrown).set('Accept', accept).buffer(true).expect(404);
        const { headers, text } = await response.expect('Content-Type', type);
        if (typeof expected === 'string') assert.equal(text, expected);
        else assert.match(text, expected);
        assert.equal(headers['content-length'], String(Buffer.byteLength(text)));
        assert.deepEqual([headers['cache-control'], headers['vary']], ['no-store', 'Accept']);
      });
    }

    check('*/*', 'application/json', json);
    check('image/png', 'application/json', json);
    check('application/json, application/problem+json', 'application/problem+json', rfc9457);
    check('text/html,*/*;q=0.8', 'text/html; charset=utf-8', /<h1>404: Not Found<\/h1>.*no hotel &#60;x&#62;\./s);
    check('application/yaml', 'application/yaml', yaml);

    it('as a page that says what happened, what to do, and which id to report', async () => {
      const page = async (thrown: unknown) =>
        (await get(thrown).set({ Accept: 'text/html', 'X-Request-Id': 'one<' })).text;
      const errors = [{ parameter: 'limit', detail: 'is <no> number' }];
      const text = await page(problem('bad-argument', { errors, extension: { alternatives: [{ room: '<a>' }] } }));
      const order = [
        '400: Bad Request',
        'unknown, repeated',
        'is &#60;no&#62; number',
        'What to do',
        'Request <code>',
        'JSON',
      ];
      const places = order.map((part) => text.indexOf(part));
      assert.deepEqual([places.includes(-1), places], [false, places.toSorted((one, other) => one - other)]);
      assert.ok(text.includes('<dt>alternatives</dt>') && text.includes('&#60;a&#62;'));
      assert.doesNotMatch(text, /<p[^>]*><\/p>/);
      assert.doesNotMatch(await page(problem('access-denied', { status: 404 })), /What to do|denied/);
    });

    it('with only the headers for HEAD', async () => {
      const { headers, text } = await request(throwing(thrown)).head('/').expect(404);
      assert.deepEqual([headers['content-length'], text], [String(json.length), undefined]);
    });
  });

  describe('with problem pages', () => {
    const problemPagesPath = '/help/problems/';
    const ask = async (thrown: unknown, accept: string) =>
      (await get(thrown, { problemPagesPath }).set({ Accept: accept, Host: 'desk.test' }).expect(404)).text;

    it('sends no info_url for a status that an auth service chose, because the page describes another one', async () => {
      const body = JSON.parse(await ask(problem('access-denied', { status: 404 }), 'application/problem+json'));
      assert.deepEqual(body, { type: 'about:blank', title: 'Not Found', status: 404, ...notFound });
    });

    it('starts the URL at the root of the server, however deeply the app is mounted', async () => {
      const inner = new Koa().use(createProblemResponses({ problemPagesPath })).use(() => {
        throw problem('not-found');
      });
      const outer = new Koa().use(createRequestContext(createAddresses())).use(mount('/v1', inner));
      const host = new Koa().use(mount('/travel', outer)).callback();
      const { body } = await request(host).get('/travel/v1/x').set('Host', 'desk.test').expect(404);
      assert.equal(body.info_url, 'http://desk.test/travel/help/problems/not-found');
    });
  });

  it('sends the faults and the headers of a problem', async () => {
    const errors = [{ parameter: 'limit', detail: 'is not a number' }];
    const headers = { Link: ['</a>; rel="help"', '</b>; rel="help"'], Allow: 'GET' };
    await get(problem('bad-argument', { errors, headers }))
      .expect('Allow', 'GET')
      .expect('Link', '</a>; rel="help", </b>; rel="help"')
      .expect(400, { code: 400, message: '400: Bad Request', errors });
  });

  it('shows the message and the headers of ctx.throw', async () => {
    const slow: Middleware = (ctx) => ctx.throw(429, 'Slowly, please.', { headers: { 'Retry-After': '3' } });
    await get(undefined, { inside: [slow] })
      .expect('Retry-After', '3')
      .expect(429, { code: 429, message: '429: Too Many Requests', detail: 'Slowly, please.' });
  });

  it('sends a numeric header, but neither undefined ones nor those that describe another body', async () => {
    const headers = { 'Retry-After': 3, 'X-A': undefined, Trailer: 'X-B', 'Transfer-Encoding': 'gzip' };
    const slow = Object.assign(new Error('Slowly.'), { status: 429, expose: true, headers });
    const response = get(slow).expect('Retry-After', '3');
    const { headers: sent } = await response.expect(429, {
      code: 429,
      message: '429: Too Many Requests',
      detail: 'Slowly.',
    });
    for (const name of ['x-a', 'trailer', 'transfer-encoding']) assert.equal(sent[name], undefined, name);
  });

  describe('after a handler prepared a response', () => {
    const stale = {
      'Content-Encoding': 'gzip',
      'Content-Disposition': 'attachment',
      'Content-Language': 'de',
      'Content-Location': '/elsewhere',
      'Content-Range': 'bytes 0-1/2',
      'Accept-Ranges': 'bytes',
      ETag: '"x"',
      Expires: 'Thu, 01 Jan 2099 00:00:00 GMT',
      'Last-Modified': 'Thu, 01 Jan 2015 00:00:00 GMT',
      Link: '</next>; rel="next"',
      Location: '/elsewhere',
    };
    const replaced = {
      'Content-Type': 'image/png',
      'Content-Length': '12345',
      'Cache-Control': 'public, max-age=3600',
    };
    const kept = { 'RateLimit-Policy': '"default";q=10;w=60', 'X-Mine': 'kept' };

    it('removes the headers that describe that response and keeps the others', async () => {
      const prepared: Middleware = (ctx, next) => {
        ctx.set({ ...stale, ...replaced, ...kept, Vary: 'Origin' });
        ctx.status = 201;
        return next();
      };
      const response = get(problem('not-found'), { inside: [prepared] }).set('X-Request-Id', 'one');
      const { headers } = await response.expect(404, notFound);
      for (const name of Object.keys(stale)) assert.equal(headers[name.toLowerCase()], undefined, name);
      for (const [name, value] of Object.entries({
        ...kept,
        'Content-Type': 'application/json',
        'Cache-Control': 'no-store',
        'X-Request-Id': 'one',
        'X-Content-Type-Options': 'nosniff',
        Vary: 'Origin, Accept',
      }))
        assert.equal(headers[name.toLowerCase()], value, name);
    });

    it('closes a stream that was set as the body', async () => {
      const stream = new Readable({ read() {} });
      const streaming: Middleware = (ctx, next) => {
        ctx.body = stream;
        return next();
      };
      await get(problem('not-found'), { inside: [streaming] }).expect(404, notFound);
      assert.ok(stream.destroyed);
    });

    it('responds for a handler that set ctx.respond to false but sent nothing', async () => {
      const bypassing: Middleware = (ctx, next) => {
        ctx.respond = false;
        return next();
      };
      await get(problem('not-found'), { inside: [bypassing] }).expect(404, notFound);
    });
  });

  for (const place of ['outside', 'inside'] as const)
    it(`keeps the headers of @koa/cors when it runs ${place}`, async () => {
      const allowOrigin = cors({ origin: (ctx) => ctx.get('Origin') });
      const response = get(problem('not-found'), { [place]: [allowOrigin] }).set('Origin', 'https://shop.example');
      const { headers } = await response.expect(404, notFound);
      assert.equal(headers['access-control-allow-origin'], 'https://shop.example');
      assert.deepEqual(String(headers['vary']).split(', ').sort(), ['Accept', 'Origin']);
    });

  it('appends the Vary of a problem to that of the response', async () => {
    const negotiated: Middleware = (ctx, next) => {
      ctx.vary('Accept-Encoding');
      return next();
    };
    await get(problem('not-found', { headers: { vary: 'Origin' } }), { outside: [negotiated] })
      .expect('Vary', 'Accept-Encoding, Origin, Accept')
      .expect(404);
  });

  describe('for an unexpected error', () => {
    const broken = new TypeError('the password is secret', { cause: new Error('connect 10.1.2.3: refused') });

    for (const accept of ['application/json', 'application/problem+json', 'text/html', 'application/yaml'])
      it(`reveals nothing about it to the client: ${accept}`, async () => {
        const { text } = await get(broken).set('Accept', accept).buffer(true).expect(500);
        assert.match(text, /500/);
        assert.doesNotMatch(text, /secret|TypeError|10\.1\.2\.3|src\//);
        if (accept === 'application/json') assert.deepEqual(JSON.parse(text), internal);
      });

    it('logs it with the ids of the request', async () => {
      const traceId = '0af7651916cd43dd8448eb211c80319c';
      const ids = { 'X-Request-Id': 'one', traceparent: `00-${traceId}-b7ad6b7169203331-00` };
      await get(broken).set(ids).expect(500);
      const fields = { requestId: 'one', traceId, mapping: undefined, problem: 'internal', err: broken };
      assert.deepEqual(lines, [{ level: 'error', fields }]);
    });

    for (const thrown of ['a string', null, undefined, 42, { status: 404 }])
      it(`responds with 500 and logs a line for a thrown value that is not an error: ${JSON.stringify(thrown)}`, async () => {
        await get(thrown).expect(500, internal);
        assert.equal(lines.length, 1);
      });

    const exposed = (status: number, more: object) =>
      Object.assign(new Error('fine'), { status, expose: true, ...more });
    const throws = () => {
      throw new Error('secret');
    };
    const unreadable: Readonly<Record<string, () => unknown>> = {
      'with an invalid header name': () => exposed(400, { headers: { 'x y': 'a' } }),
      'with a line break in a header': () => exposed(400, { headers: { 'X-A': 'a\r\nSet-Cookie: b=c' } }),
      'with a symbol as a header': () => exposed(400, { headers: { 'X-A': Symbol('secret') } }),
      'with an object as a header': () => exposed(400, { headers: { 'X-A': [Object.create(null)] } }),
      'with a status that is not a whole number': () => exposed(404.5, {}),
      'with a message that is not a string': () => exposed(400, { message: 5n }),
      'with a property that throws': () =>
        Object.defineProperty(exposed(400, {}), 'x', { enumerable: true, get: throws }),
      'that is a problem with an invalid header': () => problem('not-found', { headers: { 'X-A': 'a\n' } }),
      'that is a problem with an invalid status': () => problem('not-found', { status: 4040 }),
      'that is a problem with a value that JSON cannot represent': () =>
        problem('not-found', { extension: { id: 5n } }),
      'that is frozen': () => Object.freeze(new Error('secret')),
      'that is a Proxy whose traps throw': () => new Proxy(broken, { get: throws, getPrototypeOf: throws }),
      'that is an object without a prototype': () => Object.create(null),
    };
    for (const [what, make] of Object.entries(unreadable))
      it(`responds with the error body and logs a readable error for an error ${what}`, async () => {
        const logged: string[] = [];
        const logger = pino({}, { write: (line) => void logged.push(line) });
        const { headers } = await get(make(), { logger }).expect(500, internal);
        assert.deepEqual([headers['x-a'], headers['set-cookie']], [undefined, undefined]);
        const failures = logged.map((line) => JSON.parse(line)).filter(({ level }) => level === 50);
        assert.equal(failures.length, 1);
        assert.match(String(failures[0].err.message), /./);
      });

    for (const thrown of [broken, 'a string'])
      it(`emits the error event of the app without a logger: ${thrown}`, async () => {
        const emitted: unknown[] = [];
        const app = new Koa().on('error', (error) => emitted.push(error));
        const inner = new Koa().use(createProblemResponses()).use(() => {
          throw thrown;
        });
        await request(app.use(mount('/v1', inner)).callback())
          .get('/v1/x')
          .expect(500);
        assert.equal(emitted.length, 1);
        assert.ok(emitted[0] === thrown || (emitted[0] as Error).cause === thrown);
      });
  });

  it('logs a warning with the cause for a problem above 499, and nothing for a client error', async () => {
    const cause = new Error('refused');
    await get(problem('upstream-unavailable', { cause })).expect(503);
    await get(problem('not-found', { cause })).expect(404);
    await get(problem('destination-elsewhere', { cause })).expect(502);
    assert.deepEqual(
      lines.map(({ level, fields }) => [level, fields['problem'], fields['err']]),
      [['warn', 'upstream-unavailable', cause]],
    );
  });

  it('closes the connection if the response has begun, without appending anything, and counts it as 500', async () => {
    let status: number | undefined;
    const started: Middleware = (ctx, next) => {
      ctx.res.on('close', () => {
        status = finalStatus(ctx.res);
      });
      ctx.respond = false;
      ctx.res.writeHead(200, { 'Content-Length': '100' });
      ctx.res.write('half');
      return next();
    };
    const { port } = await servers.http(throwing(new Error('broken'), { inside: [started] }));
    const response = await sendRaw(port, 'GET / HTTP/1.1\r\nHost: a\r\n\r\n');
    assert.ok(response === '' || response.endsWith('\r\n\r\nhalf'), response);
    assert.equal(lines.length, 1);
    assert.equal(status, 500);
  });

  it('logs nothing when a client disconnects', async () => {
    const reading = new EventEmitter();
    const readBody: Middleware = async (ctx) => {
      reading.emit('begun');
      await ctx.req.toArray().finally(() => setImmediate(() => reading.emit('done')));
    };
    const { port } = await servers.http(throwing(undefined, { inside: [readBody] }));
    const socket = connect(port, '127.0.0.1');
    socket.write('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nabc');
    await once(reading, 'begun');
    socket.destroy();
    await once(reading, 'done');
    assert.deepEqual(lines, []);
  });
});
