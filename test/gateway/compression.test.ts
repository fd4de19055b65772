/** Compression of responses: which ones, for whom, and what the headers then say. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { OutgoingHttpHeaders, ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { createGunzip, gzipSync } from 'node:zlib';
import fc from 'fast-check';
import Koa, { type Context } from 'koa';
import { createGatewayState } from '#gateway';
import { createCompression, isolate, sendStoredFile } from '#http';
import { createClusters } from '#proxy';
import { createChooseCoding } from '../../src/http/compression/accept-encoding.ts';
import { open, receive } from '../support/decoding-client.ts';
import { type EdgeOptions, startEdge } from '../support/edge.ts';
import { testServers } from '../support/serve.ts';
import { startUpstream } from '../support/upstream.ts';
import { createDeferred, eventually } from '../support/waiting.ts';
import '../support/property-tests.ts';

const servers = testServers();
const json = JSON.stringify({ items: Array.from({ length: 100 }, (_, id) => ({ id, name: `hotel ${id}` })) });
const long = json.repeat(20);
const accepts = { 'accept-encoding': 'gzip' };
const isJson = { 'content-type': 'application/json' };

/** A gateway that compresses the responses of a service over HTTP. */
async function startOverHttp(respond: (res: ServerResponse) => void, more: EdgeOptions = {}) {
  const upstream = await startUpstream(servers, respond);
  const edge = await startEdge(servers, { upstream, mapping: { compress: true, ...more.mapping }, ...without(more) });
  return { ...edge, url: `${edge.origin}/v1/hotels`, upstream };
}

function without({ mapping: _mapping, ...others }: EdgeOptions): EdgeOptions {
  return others;
}

/** A gateway that compresses the responses of an app in its process. */
async function startInProcess(respond: (ctx: Context) => void, more: EdgeOptions = {}) {
  const app = new Koa().use(respond as Koa.Middleware);
  const edge = await startEdge(servers, { services: { hotel: isolate(app) }, mapping: { compress: true }, ...more });
  return { ...edge, url: `${edge.origin}/v1/hotels` };
}

const sendJson =
  (headers: OutgoingHttpHeaders = {}, body = json, status = 200) =>
  (res: ServerResponse) =>
    void res.writeHead(status, { ...isJson, 'content-length': Buffer.byteLength(body), ...headers }).end(body);

describe('a compressed response', () => {
  for (const [accepted, coding] of [
    ['gzip', 'gzip'],
    ['br', 'br'],
    ['zstd', 'zstd'],
    ['gzip, deflate, br, zstd', 'zstd'],
  ])
    for (const [size, body] of Object.entries({ small: json, large: long }))
      it(`has the coding ${coding} for Accept-Encoding ${accepted} if it is ${size}, over HTTP and in process`, async () => {
        const remote = await startOverHttp(sendJson({}, body));
        const local = await startInProcess((ctx) => void Object.assign(ctx, { type: 'json', body }));
        for (const { url } of [remote, local]) {
          const { headers, text, raw } = await receive(url, { 'accept-encoding': accepted });
          assert.equal(headers['content-encoding'], coding);
          assert.equal(headers.vary, 'Accept-Encoding');
          assert.equal(text, body);
          assert.ok(raw.length < body.length / 4, `${raw.length} bytes`);
          const length = headers['content-length'];
          assert.ok(length === undefined || Number(length) === raw.length, 'no wrong length');
        }
      });

  for (const type of [
    'text/html; charset=utf-8',
    'Application/JSON',
    'application/problem+json',
    'text/javascript',
    'image/svg+xml',
    'application/yaml',
    'application/wasm',
  ])
    it(`may have the type ${type}, and any status`, async () => {
      const { url } = await startOverHttp(sendJson({ 'content-type': type }, json, 404));
      const { status, headers } = await receive(url, accepts);
      assert.deepEqual([status, headers['content-encoding'], headers['content-type']], [404, 'gzip', type]);
    });

  const untouched: readonly (readonly [what: string, headers: OutgoingHttpHeaders, status?: number])[] = [
    ['an event stream', { 'content-type': 'text/event-stream' }],
    ['a message of gRPC', { 'content-type': 'application/grpc+json' }],
    ['a picture', { 'content-type': 'image/png' }],
    ['a body of no type', { 'content-type': '' }],
    ['a body that is encoded', { 'content-encoding': 'br' }],
    ['a part', { 'content-range': 'bytes 0-9/10000' }, 206],
    ['a body with no-transform', { 'cache-control': 'private, No-Transform' }],
    ['one that sets a cookie', { 'set-cookie': 'a=1' }],
  ];
  for (const [what, headers, status] of untouched)
    it(`is never ${what}, which does not vary by Accept-Encoding`, async () => {
      const { url } = await startOverHttp(sendJson(headers, json, status));
      const received = await open(url, accepts);
      received.resume();
      assert.equal(received.headers['content-encoding'], headers['content-encoding']);
      assert.deepEqual([received.headers.vary, received.headers['content-length']], [undefined, String(json.length)]);
    });

  it('sets a cookie if compress_with_cookies says so', async () => {
    const mapping = { compress: true, compressWithCookies: true };
    const { url } = await startOverHttp(sendJson({ 'set-cookie': 'a=1' }), { mapping });
    assert.equal((await receive(url, accepts)).headers['content-encoding'], 'gzip');
  });

  it('has at least 1 KiB', async () => {
    for (const [bytes, coding] of [
      [1023, undefined],
      [1024, 'gzip'],
    ] as const) {
      const { url } = await startOverHttp(sendJson({}, 'x'.repeat(bytes)));
      assert.equal((await receive(url, accepts)).headers['content-encoding'], coding);
    }
  });

  it('of a stored file is made only once for each coding', async () => {
    const file = { contentType: 'text/css', body: long, tag: '"1"' };
    const sent: unknown[] = [];
    const host = [
      async (ctx: Context, next: () => Promise<unknown>) => {
        await next();
        sent.push(ctx.body);
      },
    ];
    const { url } = await startInProcess((ctx) => sendStoredFile(ctx, file), { host });
    for (const accepted of ['gzip', 'br', 'gzip'])
      assert.equal((await receive(url, { 'accept-encoding': accepted })).text, long);
    assert.ok(Buffer.isBuffer(sent[0]) && sent[0] === sent[2] && sent[0] !== sent[1]);
  });

  it('is shorter than the body', async () => {
    const random = Buffer.from(crypto.getRandomValues(new Uint8Array(2000))).toString('latin1');
    const { url } = await startInProcess((ctx) => {
      ctx.type = 'text/plain';
      ctx.body = Buffer.from(random, 'latin1');
    });
    const { headers } = await receive(url, accepts);
    assert.deepEqual([headers['content-encoding'], headers['content-length']], [undefined, '2000']);
  });

  const declining: readonly (readonly [what: string, headers: OutgoingHttpHeaders])[] = [
    ['does not accept a coding', {}],
    ['prefers the body as it is', { 'accept-encoding': 'gzip;q=0.1, identity' }],
    ['asks for a range', { ...accepts, range: 'bytes=0-10' }],
    ['forbids a transformation', { ...accepts, 'cache-control': 'no-transform' }],
  ];
  for (const [what, headers] of declining)
    it(`is not for a client that ${what}, but the response varies by Accept-Encoding`, async () => {
      const { url } = await startOverHttp(sendJson({ etag: '"a"' }));
      const received = await receive(url, headers);
      assert.deepEqual([received.headers['content-encoding'], received.headers.vary], [undefined, 'Accept-Encoding']);
      assert.deepEqual([received.headers.etag, received.text], ['"a"', json]);
    });

  it('of a HEAD has the headers of the GET, without the length of another body', async () => {
    const remote = await startOverHttp((res) => void res.writeHead(200, { ...isJson, 'content-length': 5000 }).end());
    const local = await startInProcess((ctx) => void Object.assign(ctx, { type: 'json', body: json }));
    for (const { url } of [remote, local]) {
      const { headers, raw } = await receive(url, accepts, 'HEAD');
      assert.deepEqual([headers['content-encoding'], headers.vary], ['gzip', 'Accept-Encoding']);
      assert.deepEqual([headers['content-length'], raw.length], [undefined, 0]);
      const plain = await receive(url, {}, 'HEAD');
      assert.deepEqual([plain.headers['content-encoding'], plain.headers.vary], [undefined, 'Accept-Encoding']);
      assert.ok(Number(plain.headers['content-length']) > 1024);
    }
  });

  it('has none of the headers that describe the bytes of the body', async () => {
    const described = { 'accept-ranges': 'bytes', 'content-md5': 'x', digest: 'x', 'content-digest': 'x' };
    const { url } = await startOverHttp(sendJson({ ...described, 'repr-digest': 'x', 'x-kept': '1' }));
    const { headers } = await receive(url, accepts);
    for (const name of [...Object.keys(described), 'repr-digest']) assert.equal(headers[name], undefined, name);
    assert.equal(headers['x-kept'], '1');
    assert.equal((await receive(url)).headers['accept-ranges'], 'bytes');
  });

  it('keeps its trailers, except digests of the uncompressed body', async () => {
    const { url } = await startOverHttp((res) => {
      res.writeHead(200, { ...isJson, trailer: 'X-Sum, Repr-Digest' });
      res.write(json);
      res.addTrailers({ 'X-Sum': '7', 'Repr-Digest': 'x' });
      res.end();
    });
    const { headers, trailers, text } = await receive(url, accepts);
    assert.deepEqual([headers['content-encoding'], headers.trailer, text], ['gzip', 'X-Sum', json]);
    assert.deepEqual({ ...trailers }, { 'x-sum': '7' });
  });

  it('extends Vary, and follows the response headers of its mapping', async () => {
    const responseHeaders = { add: [{ name: 'Cache-Control', value: 'no-transform', append: false }], remove: [] };
    const vary = sendJson({ vary: 'Accept' });
    assert.equal((await receive((await startOverHttp(vary)).url, accepts)).headers.vary, 'Accept, Accept-Encoding');
    const { url } = await startOverHttp(vary, { mapping: { compress: true, responseHeaders } });
    assert.equal((await receive(url, accepts)).headers['content-encoding'], undefined);
  });

  it('is only for mappings that say so, and not for apps of the host by default', async () => {
    const remote = await startOverHttp(sendJson(), { mapping: { compress: undefined } });
    const local = await startInProcess((ctx) => void Object.assign(ctx, { body: json }), { mapping: {} });
    for (const { url } of [remote, local]) {
      const { headers } = await receive(url, accepts);
      assert.deepEqual([headers['content-encoding'], headers.vary], [undefined, undefined]);
    }
  });

  it('equals the body when it is decoded, whatever the body and Accept-Encoding', async () => {
    let body = Buffer.alloc(0);
    const remote = await startOverHttp((res) => void res.writeHead(200, isJson).end(body));
    const local = await startInProcess((ctx) => void Object.assign(ctx, { type: 'json', body }));
    const bodies = fc
      .tuple(fc.uint8Array({ maxLength: 3000 }), fc.integer({ min: 1, max: 60 }))
      .map(([bytes, times]) => Buffer.concat(Array.from({ length: times }, () => bytes)));
    const member = fc.tuple(
      fc.constantFrom('gzip', 'br', 'zstd', 'identity', '*', 'x'),
      fc.constantFrom('', ';q=0', ';q=.5'),
    );
    const accepted = fc
      .array(
        member.map((parts) => parts.join('')),
        { maxLength: 5 },
      )
      .map((all) => all.join(', '));
    const chooseCoding = createChooseCoding();
    await fc.assert(
      fc.asyncProperty(bodies, accepted, async (given, acceptEncoding) => {
        body = given;
        for (const { url } of [remote, local]) {
          const { headers, raw, text } = await receive(url, { 'accept-encoding': acceptEncoding });
          const { 'content-encoding': coding = 'identity', 'content-length': length = raw.length } = headers;
          assert.equal(text, given.toString());
          assert.equal(Number(length), raw.length);
          assert.ok(coding === 'identity' || coding === chooseCoding(acceptEncoding));
        }
      }),
      { numRuns: 60 },
    );
  }).timeout(60_000);

  for (const [what, body] of [
    ['a stream', () => Readable.from([json, json])],
    ['a web stream', () => new Blob([json, json]).stream()],
    ['a blob', () => new Blob([json, json])],
    ['a web response', () => new Response(json + json)],
    ['a value', () => JSON.parse(`[${json},${json}]`)],
  ] as const)
    it(`may be ${what} of an app`, async () => {
      const { url } = await startInProcess(
        (ctx) => void Object.assign(ctx, { type: 'application/json', body: body() }),
      );
      const { headers, text } = await receive(url, accepts);
      assert.equal(headers['content-encoding'], 'gzip');
      assert.equal(text, what === 'a value' ? `[${json},${json}]` : json + json);
    });
});

describe('the entity tag of a compressed response', () => {
  /** Responds like a service with strong tags. */
  function respondTagged(ctx: Context): void {
    ctx.type = 'json';
    ctx.set('ETag', '"3-abc"');
    const { 'if-match': ifMatch, 'if-none-match': ifNoneMatch = '' } = ctx.req.headers;
    if (ifMatch !== undefined && !ifMatch.includes('"3-abc"')) ctx.throw(412);
    if (ifNoneMatch.includes('"3-abc"')) ctx.status = 304;
    else ctx.body = json;
  }

  it('is a strong one for each coding if the service runs in this process', async () => {
    const { url } = await startInProcess(respondTagged);
    for (const [coding, tag] of [
      ['gzip', '"3-abc-gzip"'],
      ['br', '"3-abc-br"'],
      ['zstd', '"3-abc-zstd"'],
      ['identity', '"3-abc"'],
    ] as const) {
      const sent = { 'accept-encoding': coding };
      assert.equal((await receive(url, sent)).headers.etag, tag);
      assert.equal((await receive(url, sent, 'HEAD')).headers.etag, tag);
      for (const known of [tag, `W/${tag}`, `"x", ${tag}`]) {
        const { status, headers } = await receive(url, { ...sent, 'if-none-match': known });
        assert.deepEqual([status, headers.etag, headers.vary], [304, tag, 'Accept-Encoding'], known);
      }
    }
  });

  it('is not mistaken for that of another coding', async () => {
    const { url } = await startInProcess(respondTagged);
    assert.equal((await receive(url, { 'if-none-match': '"3-abc-gzip"' })).status, 200);
    assert.equal((await receive(url, { 'accept-encoding': 'br', 'if-none-match': '"3-abc-gzip"' })).status, 200);
    const { status, headers } = await receive(url, { ...accepts, 'if-none-match': '"3-abc"' });
    assert.deepEqual(
      [status, headers.etag],
      [304, '"3-abc"'],
      'the body that was sent without a coding is still right',
    );
  });

  it('is accepted in If-Match, for a change also with another coding', async () => {
    const { url } = await startInProcess(respondTagged);
    assert.equal((await receive(url, { ...accepts, 'if-match': '"3-abc-gzip"' })).status, 200);
    assert.equal((await receive(url, { 'if-match': '"3-abc-gzip"' })).status, 412);
    assert.equal((await receive(url, { 'if-match': '"3-abc-gzip"' }, 'PATCH')).status, 200);
    assert.equal((await receive(url, { 'if-match': '"2-abc-gzip"' }, 'PATCH')).status, 412);
  });

  it('is weak if the service is called over HTTP, and a weak one stays as it is', async () => {
    for (const tag of ['"a"', 'W/"a"']) {
      const { url } = await startOverHttp(sendJson({ etag: tag }));
      assert.equal((await receive(url, accepts)).headers.etag, 'W/"a"');
      assert.equal((await receive(url)).headers.etag, tag);
    }
  });

  it('of a service over HTTP is also that of the 304', async () => {
    const { url, upstream } = await startOverHttp((res) => void res.writeHead(304, { etag: '"a"' }).end());
    for (const tag of ['W/"a"', '"a"']) {
      const { status, headers } = await receive(url, { ...accepts, 'if-none-match': tag });
      assert.deepEqual([status, headers.etag, headers.vary], [304, tag, 'Accept-Encoding']);
      assert.equal(upstream.reached.at(-1)?.headers['if-none-match'], tag);
    }
  });
});

describe('a body that is compressed while it is sent', () => {
  const text = { 'content-type': 'text/plain' };

  it('reaches the client piece by piece, however slowly the service sends it', async () => {
    const next = [createDeferred(), createDeferred()];
    const { url } = await startOverHttp(async (res) => {
      res.writeHead(200, text).write('10 %\n');
      for (const { promise } of next) {
        await promise;
        res.write('more\n');
      }
      res.end();
    });
    const response = await open(url, accepts);
    const decoded = response.pipe(createGunzip());
    assert.equal(String((await once(decoded, 'data'))[0]), '10 %\n');
    for (const { resolve } of next) {
      resolve();
      assert.equal(String((await once(decoded, 'data'))[0]), 'more\n');
    }
    await once(decoded, 'end');
  });

  it('is cut off for the client if the service breaks it off', async () => {
    const { url, log } = await startOverHttp((res) => {
      res.writeHead(200, text).write(long);
      setImmediate(() => res.destroy());
    });
    await assert.rejects(receive(url, accepts), { code: 'ECONNRESET' });
    assert.deepEqual(
      log.map(({ level }) => level),
      ['warn'],
    );
  });

  it('is cut off for the client if the stream of an app fails', async () => {
    const { url } = await startInProcess((ctx) => {
      ctx.type = 'text/plain';
      ctx.body = Readable.from(failing());
    });
    async function* failing() {
      yield long;
      throw new Error('no more');
    }
    await assert.rejects(receive(url, accepts), { code: 'ECONNRESET' });
  });

  it('is aborted at the service if the client disconnects', async () => {
    const left = createDeferred();
    const { url } = await startOverHttp((res) => {
      res.writeHead(200, text).write(long);
      res.once('close', left.resolve);
    });
    const response = await open(url, accepts);
    await once(response, 'data');
    response.destroy();
    await left.promise;
  });

  it('is read from the service only as fast as the client reads it', async () => {
    const random = Buffer.alloc(256 * 1024);
    let sent = 0;
    const { url } = await startInProcess((ctx) => {
      ctx.type = 'text/plain';
      ctx.body = new Readable({
        read() {
          sent += random.length;
          this.push(sent > 64 * 1024 * 1024 ? null : crypto.getRandomValues(Buffer.alloc(65_536)));
        },
      });
    });
    const response = await open(url, accepts);
    const before = await eventually(async () => {
      const earlier = sent;
      await new Promise((resolve) => setTimeout(resolve, 50));
      assert.ok(sent > 0 && sent === earlier, 'the source still sends');
      return sent;
    });
    assert.ok(before < 64 * 1024 * 1024);
    response.destroy();
  });

  it('is sent as it is beyond the number of bodies that may be compressed at once', async () => {
    const clusters = createClusters({});
    const compression = createCompression({ streamsMax: 1 });
    const state = { ...createGatewayState(clusters), compression };
    const { url } = await startOverHttp((res) => void res.writeHead(200, text).write(long), { state });
    const first = await open(url, accepts);
    const second = await open(url, accepts);
    assert.deepEqual(
      [first, second].map(({ headers }) => headers['content-encoding']),
      ['gzip', undefined],
    );
    assert.equal(second.headers.vary, 'Accept-Encoding');
    first.destroy();
    second.destroy();
    await eventually(() => assert.equal(compression.openStreams(), 0));
    const third = await open(url, accepts);
    assert.equal(third.headers['content-encoding'], 'gzip');
    third.destroy();
    await eventually(() => assert.equal(compression.openStreams(), 0));
    await clusters.close();
  });

  it('is left alone if it is encoded by the service', async () => {
    const body = gzipSync(long);
    const { url } = await startOverHttp(
      (res) => void res.writeHead(200, { ...isJson, 'content-encoding': 'gzip' }).end(body),
    );
    const { text: decoded, raw } = await receive(url, accepts);
    assert.deepEqual([decoded, raw.length], [long, body.length]);
  });
});
