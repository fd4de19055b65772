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
  it('lets a response pass that nobody threw at', async () => {
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

    it('as JSON when the client has no wish', async () => {
      const { headers, text } = await request(throwing(thrown)).get('/').expect(404, body);
      assert.equal(headers['content-type'], 'application/json');
      assert.equal(headers['content-length'], String(Buffer.byteLength(text)));
      assert.equal(headers['cache-control'], 'no-store');
      assert.equal(headers['vary'], 'Accept');
    });

    it('as problem+json when the client lists it', async () => {
      const { headers, text } = await request(throwing(thrown))
        .get('/')
        .set('Accept', 'application/json, application/problem+json')
        .expect(404);
      assert.equal(headers['content-type'], 'application/problem+json');
      assert.deepEqual(JSON.parse(text), { type: 'about:blank', title: 'Not Found', status: 404, ...body });
    });

    it('as a page whose every character is escaped when the client is a browser', async () => {
      const { headers, text } = await request(throwing(thrown))
        .get('/')
        .set('Accept', 'text/html,*/*;q=0.8')
        .expect(404);
      assert.equal(headers['content-type'], 'text/html; charset=utf-8');
      assert.match(String(headers['content-security-policy']), /default-src 'none'/);
      assert.ok(text.includes('<h1>404: Not Found</h1>'));
      assert.ok(text.includes('There is no hotel &#60;x&#62;.'));
    });

    it('as YAML when the client asks for it', async () => {
      const { text } = await request(throwing(thrown))
        .get('/')
        .set('Accept', 'application/yaml')
        .buffer(true)
        .parse(asText)
        .expect('Content-Type', 'application/yaml')
        .expect(404)
        .then(({ body: read }) => ({ text: String(read) }));
      assert.equal(text, `code: 404\nmessage: "404: Not Found"\ndetail: There is no hotel <x>.\n`);
    });

    it('as JSON when the client asks for what we do not have', async () => {
      await request(throwing(thrown)).get('/').set('Accept', 'image/png').expect(404, body);
    });

    it('to HEAD with its headers alone', async () => {
      const { headers, text } = await request(throwing(thrown)).head('/').expect(404);
      assert.equal(headers['content-length'], String(JSON.stringify(body).length));
      assert.equal(text, undefined);
    });
  });

  describe('with pages about problems', () => {
    const problemPagesPath = '/help/problems/';
    const info_url = 'http://desk.test/help/problems/not-found';
    const ask = (thrown: unknown, accept = 'application/json') =>
      request(throwing(thrown, { problemPagesPath })).get('/').set({ Accept: accept, Host: 'desk.test' });

    it('names the one about this problem', async () => {
      const thrown = problem('not-found', { detail: 'No.' });
      const { text } = await ask(thrown).expect(404);
      assert.equal(text, JSON.stringify({ ...notFound, info_url, detail: 'No.' }));
    });

    it('makes it the type of problem+json, whose title is always the same', async () => {
      const { text } = await ask(problem('not-found'), 'application/problem+json').expect(404);
      const rfc9457 = { type: info_url, title: 'Not found', status: 404 };
      assert.deepEqual(JSON.parse(text), { ...rfc9457, ...notFound, info_url });
    });

    it('links to it for people', async () => {
      const { text } = await ask(problem('not-found'), 'text/html').expect(404);
      assert.ok(text.includes(`<a href="${info_url}">`) && text.includes('<h1>404: Not Found</h1>'));
    });

    it('names none where the status is not that of the problem: the page would say something else', async () => {
      const { text } = await ask(problem('access-denied', { status: 404 }), 'application/problem+json').expect(404);
      assert.deepEqual(JSON.parse(text), { type: 'about:blank', title: 'Not Found', status: 404, ...notFound });
    });

    it('finds them at the root, from however deep it renders', async () => {
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

  it('tells what ctx.throw tells, with the headers that it brings', async () => {
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

    it('sends no header that spoke of that response', async () => {
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

    it('closes the stream that was to be the body', async () => {
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

    it('answers for whoever wanted to write to the socket himself and had not begun', async () => {
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
    it(`keeps the headers of @koa/cors when that stands ${place}`, async () => {
      const { headers } = await request(
        throwing(problem('not-found'), { [place]: [cors({ origin: (ctx) => ctx.get('Origin') })] }),
      )
        .get('/')
        .set('Origin', 'https://shop.example')
        .expect(404, notFound);
      assert.equal(headers['access-control-allow-origin'], 'https://shop.example');
      assert.deepEqual(String(headers['vary']).split(', ').sort(), ['Accept', 'Origin']);
    });

  it('adds the Vary of a problem to the one that stands', async () => {
    const negotiated: Middleware = (ctx, next) => {
      ctx.vary('Accept-Encoding');
      return next();
    };
    await request(throwing(problem('not-found', { headers: { vary: 'Origin' } }), { outside: [negotiated] }))
      .get('/')
      .expect('Vary', 'Accept-Encoding, Origin, Accept')
      .expect(404);
  });

  describe('when something breaks in here', () => {
    const cause = new Error('connect 10.1.2.3: refused');
    const broken = new TypeError('the password is secret', { cause });

    it('tells the client nothing of it', async () => {
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

    it('tells the log, with the cause and the ids of the request', async () => {
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

    it('takes what is thrown and is no error', async () => {
      for (const thrown of ['a string', null, undefined, 42, { status: 404 }]) {
        const { logger, lines } = keepingLogger();
        await request(throwing(thrown, { logger }))
          .get('/')
          .expect(500, { code: 500, message: '500: Internal Server Error' });
        assert.equal(lines.length, 1);
      }
    });

    it('tells the error event of the app when there is no logger, also for what is no error', async () => {
      for (const thrown of [broken, 'a string']) {
        const app = new Koa();
        const told: unknown[] = [];
        app.on('error', (error) => told.push(error));
        const inner = new Koa();
        inner.use(createProblemResponses());
        inner.use(() => {
          throw thrown;
        });
        app.use(mount('/v1', inner));
        await request(app.callback()).get('/v1/x').expect(500);
        assert.equal(told.length, 1);
        assert.ok(told[0] === thrown || (told[0] as Error).cause === thrown);
      }
    });
  });

  it('warns of a problem above 499 with its cause, and keeps quiet about the faults of clients', async () => {
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

  it('lets an app put the errors of others in its own terms', async () => {
    const toProblem = (thrown: unknown) =>
      thrown instanceof RangeError ? problem('bad-argument', { detail: 'Too far.' }) : undefined;
    await request(throwing(new RangeError('x'), { toProblem }))
      .get('/')
      .expect(400, { code: 400, message: '400: Bad Request', detail: 'Too far.' });
    await request(throwing(new Error('x'), { toProblem }))
      .get('/')
      .expect(500);
  });

  it('breaks the connection when the response is under way already, and appends nothing', async () => {
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

  it('does not take a client that leaves for a fault of ours', async () => {
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
