import assert from 'node:assert/strict';
import { EventEmitter, once } from 'node:events';
import { Readable } from 'node:stream';
import cors from '@koa/cors';
import Koa, { type Middleware } from 'koa';
import mount from 'koa-mount';
import request from 'supertest';
import {
  createAddresses,
  createProblemResponses,
  createRequestContext,
  type Logger,
  type ProblemResponsesOptions,
  problem,
  silentLogger,
} from '#http';
import { withServer } from './raw-exchange.ts';

interface Line {
  readonly level: string;
  readonly fields: Readonly<Record<string, unknown>>;
  readonly message: string | undefined;
}

function keepingLogger() {
  const lines: Line[] = [];
  const at = (level: string) => (fields: object, message?: string) => {
    lines.push({ level, fields: { ...fields }, message });
  };
  const logger: Logger = { info: at('info'), warn: at('warn'), error: at('error') };
  return { logger, lines };
}

interface Setup extends ProblemResponsesOptions {
  readonly outside?: readonly Middleware[];
  readonly inside?: readonly Middleware[];
}

/** An app that throws `thrown` below everything. */
function throwing(thrown: unknown, { outside = [], inside = [], ...options }: Setup = {}) {
  const app = new Koa();
  app.silent = true;
  const end: Middleware = () => {
    throw thrown;
  };
  const responses = createProblemResponses({ logger: silentLogger, ...options });
  for (const one of [createRequestContext(createAddresses()), ...outside, responses, ...inside, end]) app.use(one);
  return app.callback();
}

const notFound = { code: 404, message: '404: Not Found' };

describe('createProblemResponses', () => {
  it('does not change a response without an error', async () => {
    const app = new Koa();
    app.use(createProblemResponses());
    app.use((ctx) => {
      ctx.status = 404;
      ctx.body = 'mine';
    });
    await request(app.callback()).get('/').expect(404, 'mine');
  });

  describe('renders a problem', () => {
    const thrown = problem('not-found', { detail: 'There is no hotel <x>.' });
    const body = { ...notFound, detail: 'There is no hotel <x>.' };

    function check(accept: string, type: string, expected: RegExp) {
      it(`as ${type} for Accept: ${accept}`, async () => {
        const get = request(throwing(thrown)).get('/').set('Accept', accept).buffer(true).parse(asText).expect(404);
        const { headers, body: text } = await get.expect('Content-Type', type);
        assert.match(String(text), expected);
        assert.equal(headers['content-length'], String(Buffer.byteLength(String(text))));
        assert.deepEqual([headers['cache-control'], headers['vary']], ['no-store', 'Accept']);
      });
    }

    const rfc9457 = JSON.stringify({ type: 'about:blank', title: 'Not Found', status: 404, ...body });
    const exactly = (text: string) => new RegExp(`^${text.replace(/[.?]/g, '\\$&')}$`);
    check('*/*', 'application/json', exactly(JSON.stringify(body)));
    check('image/png', 'application/json', exactly(JSON.stringify(body)));
    check('application/json, application/problem+json', 'application/problem+json', exactly(rfc9457));
    check(
      'text/html,*/*;q=0.8',
      'text/html; charset=utf-8',
      /<h1>404: Not Found<\/h1>.*There is no hotel &#60;x&#62;\./s,
    );
    check(
      'application/yaml',
      'application/yaml',
      /^code: 404\nmessage: "404: Not Found"\ndetail: There is no hotel <x>\.\n$/,
    );

    it('for HEAD with its headers alone', async () => {
      const { headers, text } = await request(throwing(thrown)).head('/').expect(404);
      assert.deepEqual([headers['content-length'], text], [String(JSON.stringify(body).length), undefined]);
    });
  });

  describe('with pages about problems', () => {
    const problemPagesPath = '/help/problems/';
    const info_url = 'http://desk.test/help/problems/not-found';
    const ask = (thrown: unknown, accept = 'application/json') =>
      request(throwing(thrown, { problemPagesPath })).get('/').set({ Accept: accept, Host: 'desk.test' });

    it('has its URL as info_url', async () => {
      const thrown = problem('not-found', { detail: 'No.' });
      const { text } = await ask(thrown).expect(404);
      assert.equal(text, JSON.stringify({ ...notFound, info_url, detail: 'No.' }));
    });

    it('has its URL as the type of problem+json, with the title of the problem', async () => {
      const { text } = await ask(problem('not-found'), 'application/problem+json').expect(404);
      const rfc9457 = { type: info_url, title: 'Not found', status: 404 };
      assert.deepEqual(JSON.parse(text), { ...rfc9457, ...notFound, info_url });
    });

    it('links to it on the page for people', async () => {
      const { text } = await ask(problem('not-found'), 'text/html').expect(404);
      assert.ok(text.includes(`<a href="${info_url}">`) && text.includes('<h1>404: Not Found</h1>'));
    });

    it('has no info_url where another party chose the status, which the page does not describe', async () => {
      const { text } = await ask(problem('access-denied', { status: 404 }), 'application/problem+json').expect(404);
      assert.deepEqual(JSON.parse(text), { type: 'about:blank', title: 'Not Found', status: 404, ...notFound });
    });

    it('has a URL at the root, however deeply the app is mounted', async () => {
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
    const errors = [
      { pointer: '#/query/limit', detail: 'is not a number' },
      { pointer: '#/query/colour', detail: 'is unknown' },
    ];
    const thrown = problem('bad-argument', {
      errors,
      headers: { Link: ['</a>; rel="help"', '</b>; rel="help"'], Allow: 'GET' },
    });
    await request(throwing(thrown))
      .get('/')
      .expect('Allow', 'GET')
      .expect('Link', '</a>; rel="help", </b>; rel="help"')
      .expect(400, { code: 400, message: '400: Bad Request', errors });
  });

  it('shows the message and the headers of ctx.throw', async () => {
    await request(
      throwing(undefined, {
        inside: [(ctx) => ctx.throw(429, 'Slowly, please.', { headers: { 'Retry-After': '3' } })],
      }),
    )
      .get('/')
      .expect('Retry-After', '3')
      .expect(429, { code: 429, message: '429: Too Many Requests', detail: 'Slowly, please.' });
  });

  describe('after a response was prepared', () => {
    const prepared: Middleware = (ctx, next) => {
      ctx.set({
        'Content-Encoding': 'gzip',
        'Content-Disposition': 'attachment',
        'Content-Language': 'de',
        'Content-Location': '/elsewhere',
        'Content-Range': 'bytes 0-1/2',
        'Accept-Ranges': 'bytes',
        'Content-Type': 'image/png',
        'Content-Length': '12345',
        'Cache-Control': 'public, max-age=3600',
        ETag: '"x"',
        Expires: 'Thu, 01 Jan 2099 00:00:00 GMT',
        'Last-Modified': 'Thu, 01 Jan 2015 00:00:00 GMT',
        Link: '</next>; rel="next"',
        Location: '/elsewhere',
        Vary: 'Origin',
        'RateLimit-Policy': '"default";q=10;w=60',
        'X-Mine': 'kept',
      });
      ctx.status = 201;
      return next();
    };

    it('removes the headers that described that response', async () => {
      const { headers } = await request(throwing(problem('not-found'), { inside: [prepared] }))
        .get('/')
        .expect(404, notFound);
      const stale = ['encoding', 'disposition', 'language', 'location', 'range'].map((name) => `content-${name}`);
      for (const name of [...stale, 'accept-ranges', 'etag', 'expires', 'last-modified', 'link', 'location'])
        assert.equal(headers[name], undefined, name);
      assert.equal(headers['content-type'], 'application/json');
      assert.equal(headers['cache-control'], 'no-store');
    });

    it('keeps every other header', async () => {
      await request(throwing(problem('not-found'), { inside: [prepared] }))
        .get('/')
        .set('X-Request-Id', 'one')
        .expect('X-Request-Id', 'one')
        .expect('X-Content-Type-Options', 'nosniff')
        .expect('RateLimit-Policy', '"default";q=10;w=60')
        .expect('X-Mine', 'kept')
        .expect('Vary', 'Origin, Accept')
        .expect(404);
    });

    it('closes a stream that was set as the body', async () => {
      const stream = new Readable({ read() {} });
      const streaming: Middleware = (ctx, next) => {
        ctx.body = stream;
        return next();
      };
      await request(throwing(problem('not-found'), { inside: [streaming] }))
        .get('/')
        .expect(404, notFound);
      assert.ok(stream.destroyed);
    });

    it('answers for a handler that set ctx.respond to false and had not begun', async () => {
      const bypassing: Middleware = (ctx, next) => {
        ctx.respond = false;
        return next();
      };
      await request(throwing(problem('not-found'), { inside: [bypassing] }))
        .get('/')
        .expect(404, notFound);
    });
  });

  for (const place of ['outside', 'inside'] as const)
    it(`keeps the headers of @koa/cors when it runs ${place}`, async () => {
      const { headers } = await request(
        throwing(problem('not-found'), { [place]: [cors({ origin: (ctx) => ctx.get('Origin') })] }),
      )
        .get('/')
        .set('Origin', 'https://shop.example')
        .expect(404, notFound);
      assert.equal(headers['access-control-allow-origin'], 'https://shop.example');
      assert.deepEqual(String(headers['vary']).split(', ').sort(), ['Accept', 'Origin']);
    });

  it('adds the Vary of a problem to the present one', async () => {
    const negotiated: Middleware = (ctx, next) => {
      ctx.vary('Accept-Encoding');
      return next();
    };
    await request(throwing(problem('not-found', { headers: { vary: 'Origin' } }), { outside: [negotiated] }))
      .get('/')
      .expect('Vary', 'Accept-Encoding, Origin, Accept')
      .expect(404);
  });

  describe('for an unexpected error', () => {
    const cause = new Error('connect 10.1.2.3: refused');
    const broken = new TypeError('the password is secret', { cause });

    it('shows nothing of it to the client', async () => {
      for (const accept of ['application/json', 'application/problem+json', 'text/html', 'application/yaml']) {
        const { body, text = String(body) } = await request(throwing(broken))
          .get('/')
          .set('Accept', accept)
          .buffer(true)
          .parse(asText)
          .expect(500);
        assert.ok(!/secret|TypeError|10\.1\.2\.3|src\//.test(`${text}${body}`));
      }
      await request(throwing(broken)).get('/').expect(500, { code: 500, message: '500: Internal Server Error' });
    });

    it('logs it, with its cause and the ids of the request', async () => {
      const { logger, lines } = keepingLogger();
      const traceId = '0af7651916cd43dd8448eb211c80319c';
      const ids = { 'X-Request-Id': 'one', traceparent: `00-${traceId}-b7ad6b7169203331-00` };
      await request(throwing(broken, { logger })).get('/').set(ids).expect(500);
      assert.equal(lines.length, 1);
      assert.equal(lines[0]?.level, 'error');
      const { fields } = lines[0];
      assert.deepEqual(fields, { requestId: 'one', traceId, mapping: undefined, problem: 'internal', err: broken });
      assert.equal(broken.cause, cause);
    });

    it('copes with thrown values that are no errors', async () => {
      for (const thrown of ['a string', null, undefined, 42, { status: 404 }]) {
        const { logger, lines } = keepingLogger();
        await request(throwing(thrown, { logger }))
          .get('/')
          .expect(500, { code: 500, message: '500: Internal Server Error' });
        assert.equal(lines.length, 1);
      }
    });

    it('emits the error event of the app when there is no logger', async () => {
      for (const thrown of [broken, 'a string']) {
        const app = new Koa();
        const emitted: unknown[] = [];
        app.on('error', (error) => emitted.push(error));
        const inner = new Koa();
        inner.use(createProblemResponses());
        inner.use(() => {
          throw thrown;
        });
        app.use(mount('/v1', inner));
        await request(app.callback()).get('/v1/x').expect(500);
        assert.equal(emitted.length, 1);
        assert.ok(emitted[0] === thrown || (emitted[0] as Error).cause === thrown);
      }
    });
  });

  it('logs a warning for a problem above 499, with its cause, and nothing for a fault of the client', async () => {
    const { logger, lines } = keepingLogger();
    const cause = new Error('refused');
    await request(throwing(problem('upstream-unavailable', { cause }), { logger }))
      .get('/')
      .expect(503);
    await request(throwing(problem('not-found', { cause }), { logger }))
      .get('/')
      .expect(404);
    assert.deepEqual(
      lines.map(({ level, fields }) => [level, fields['problem'], fields['err']]),
      [['warn', 'upstream-unavailable', cause]],
    );
  });

  it('lets an app turn errors of other modules into problems', async () => {
    const toProblem = (thrown: unknown) =>
      thrown instanceof RangeError ? problem('bad-argument', { detail: 'Too far.' }) : undefined;
    await request(throwing(new RangeError('x'), { toProblem }))
      .get('/')
      .expect(400, { code: 400, message: '400: Bad Request', detail: 'Too far.' });
    await request(throwing(new Error('x'), { toProblem }))
      .get('/')
      .expect(500);
  });

  it('breaks the connection when the response has begun, and appends nothing', async () => {
    const { logger, lines } = keepingLogger();
    const begun: Middleware = (ctx, next) => {
      ctx.respond = false;
      ctx.res.writeHead(200, { 'Content-Length': '100' });
      ctx.res.write('half');
      return next();
    };
    await withServer({ handler: throwing(new Error('broken'), { logger, inside: [begun] }) }, async ({ send }) => {
      const response = await send('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
      assert.ok(response === '' || response.endsWith('\r\n\r\nhalf'), response);
    });
    assert.equal(lines.length, 1);
  });

  it('logs nothing when a client leaves', async () => {
    const { logger, lines } = keepingLogger();
    const reading = new EventEmitter();
    const readBody: Middleware = async (ctx) => {
      reading.emit('begun');
      try {
        await ctx.req.toArray();
      } finally {
        setImmediate(() => reading.emit('done'));
      }
    };
    await withServer({ handler: throwing(undefined, { logger, inside: [readBody] }) }, async ({ open }) => {
      const socket = open();
      socket.write('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nabc');
      await once(reading, 'begun');
      socket.destroy();
      await once(reading, 'done');
    });
    assert.deepEqual(lines, []);
  });
});

/** supertest reads text/* alone as text. */
function asText(response: request.Response, done: (error: Error | null, text: string) => void): void {
  let text = '';
  response.on('data', (chunk) => {
    text += String(chunk);
  });
  response.on('end', () => done(null, text));
}
