/** HTTP/2 clients of the whole gateway: bodies, the access log, services over HTTP/1.1, addresses, and other listeners. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { constants } from 'node:http2';
import type { Context } from 'koa';
import type { FrontdeskOptions, MappingInput } from '../../src/index.ts';
import { authRecord, demoRecord, desksOf, mappingRecord } from '../support/desks.ts';
import { type LogLine, recordingLogger } from '../support/edge.ts';
import { scrape } from '../support/scrape.ts';
import { testServers } from '../support/serve.ts';
import { startUpstream } from '../support/upstream.ts';
import { closeOf, eventually } from '../support/waiting.ts';
import { openHttp2 } from '../support/wire/http2-client.ts';

const servers = testServers();
const openDesk = desksOf(servers);

const post = { ':method': 'POST' };
const large = 'x'.repeat(300_000);
/** As large as a copy for a shadow may be. */
const copied = 'x'.repeat(65_536);

interface Setup extends FrontdeskOptions {
  readonly mapping?: Partial<MappingInput>;
  readonly mappings?: readonly MappingInput[];
}

/** Opens a gateway in front of a service at `origin`, and a client of it. */
async function openGateway(origin: string, { mapping, mappings = [], ...options }: Setup = {}) {
  const lines: LogLine[] = [];
  const records = [mappingRecord('all', '/', origin, { bypass_auth: true, ...mapping }), ...mappings];
  const desk = await openDesk({
    only: ['gateway'],
    demo: false,
    logger: recordingLogger(lines),
    accessLog: 'json',
    config: { records },
    ...options,
  });
  const { gateway } = await desk.listen();
  const client = openHttp2(gateway.url);
  servers.later(() => client.session.destroy());
  return {
    ...client,
    desk,
    lines,
    /** The only line of the access log. */
    async line(): Promise<LogLine['fields']> {
      const found = () => lines.filter(({ message }) => message === 'request');
      await eventually(() => assert.ok(found().length > 0));
      assert.equal(found().length, 1);
      return found()[0]?.fields ?? {};
    },
  };
}

type Respond = (req: IncomingMessage, res: ServerResponse) => void;

async function openInFrontOf(respond: Respond, setup?: Setup) {
  return openGateway((await servers.http(respond)).origin, setup);
}

describe('a client of HTTP/2 of the gateway', () => {
  it('sends a body without a length to a service, to a shadow and to an auth service', async () => {
    const [service, shadow, auth] = [
      await startUpstream(servers),
      await startUpstream(servers),
      await startUpstream(servers),
    ];
    const checks = {
      ...authRecord,
      auth_service: auth.origin,
      include_body: { max_bytes: 400_000, allow_partial: true },
    };
    const client = await openGateway(service.origin, {
      mapping: { bypass_auth: false },
      config: {
        records: [
          mappingRecord('all', '/', service.origin),
          mappingRecord('copies', '/', shadow.origin, { shadow: true }),
          checks,
        ],
      },
    });
    assert.equal((await client.send(post, copied)).status, 200);
    assert.equal(service.only().body, copied);
    assert.equal(auth.only().body, copied);
    await eventually(() => assert.equal(shadow.only().body, copied));
    await client.send(post, large);
    assert.equal(service.reached[1]?.body, large);
  });

  it('sends a body whose length the service learns if the client says it', async () => {
    const service = await startUpstream(servers);
    const { send } = await openGateway(service.origin);
    await send({ ...post, 'content-length': 5 }, 'hello');
    assert.deepEqual([service.only().headers['content-length'], service.only().body], ['5', 'hello']);
  });

  it('gets 413 for a body that is too large, whether or not it says so, and can go on', async () => {
    const service = await startUpstream(servers);
    const { send, start } = await openGateway(service.origin, { mapping: { max_request_bytes: 1000 } });
    assert.equal((await send({ ...post, 'content-length': 300_000 }, large)).status, 413);
    const { stream, response } = start(post);
    stream.write(large);
    const { status, code, headers } = await response;
    assert.deepEqual([status, code, headers['connection']], [413, constants.NGHTTP2_NO_ERROR, undefined]);
    assert.equal((await send()).status, 200);
    assert.deepEqual(
      service.reached.map(({ method }) => method),
      ['GET'],
    );
  });

  it('gets 401 during a large upload, the whole response, and can go on', async () => {
    const service = await startUpstream(servers);
    const { start, send } = await openGateway(service.origin, {
      only: ['gateway', 'auth'],
      config: { records: [mappingRecord('all', '/', service.origin), authRecord], users: [demoRecord] },
    });
    const { stream, response } = start(post);
    stream.on('drain', () => stream.write(large));
    stream.write(large);
    const { status, body, code } = await response;
    assert.deepEqual([status, JSON.parse(body).code, code], [401, 401, constants.NGHTTP2_NO_ERROR]);
    const authorization = `Basic ${btoa('demo:demo')}`;
    assert.equal((await send({ authorization })).status, 200);
  });

  it('gets 408 if its body to a service pauses for too long, and is logged so', async () => {
    const service = await startUpstream(servers);
    const { start, send, line } = await openGateway(service.origin, { mapping: { idle_timeout_ms: 20 } });
    const { stream, response } = start(post);
    stream.write('a');
    const { status, code } = await response;
    assert.deepEqual([status, code], [408, constants.NGHTTP2_NO_ERROR]);
    assert.equal((await line())['status'], 408);
    assert.equal((await send()).status, 200);
  });

  it('is logged with its protocol and bytes: those that HTTP/1.1 would have for the heads, and those of the bodies', async () => {
    const { send, line } = await openInFrontOf(
      (req, res) => void req.resume().on('end', () => res.end('y'.repeat(5000))),
    );
    const { rawHeaders } = await send({ ...post, ':authority': 'shop.example' }, 'x'.repeat(3000));
    const { bytesIn, bytesOut, ...fields } = await line();
    assert.deepEqual([fields['protocol'], fields['status'], fields['method']], ['HTTP/2.0', 200, 'POST']);
    const head = rawHeaders.reduce((sum, text) => sum + text.length + 2, 'HTTP/1.1 200 OK\r\n\r\n'.length);
    assert.equal(bytesIn, `POST / HTTP/1.1\r\nhost: shop.example\r\n\r\n`.length + 3000);
    assert.equal(bytesOut, head + 5000);
  });

  it('is counted, and so are its requests, in the metrics', async () => {
    const { send, session, desk } = await openInFrontOf((_req, res) => void res.end(), { adminPort: 0 });
    const counts = async () => {
      const series = await scrape(desk);
      const metrics = [series['frontdesk_http2_connections'], series['frontdesk_http2_requests_total']];
      return [series['frontdesk_connections'], ...metrics];
    };
    await eventually(async () => assert.deepEqual(await counts(), [1, 1, 0]));
    for (let sent = 0; sent < 3; sent += 1) await send();
    assert.deepEqual(await counts(), [1, 1, 3]);
    session.close();
    await eventually(async () => assert.deepEqual(await counts(), [0, 0, 3]));
  });

  it('ends the call to the service when it cancels its request', async () => {
    let ended: Promise<unknown> | undefined;
    const { start } = await openInFrontOf((req, res) => {
      ended = closeOf(req.on('error', () => {}));
      res.write('begun');
    });
    const { stream, status } = start();
    await status;
    stream.close(constants.NGHTTP2_CANCEL);
    await ended;
  });

  it('gets the trailers of a service over HTTP/1.1', async () => {
    const { send } = await openInFrontOf((_req, res) => {
      res.setHeader('Trailer', 'X-Check');
      res.write('body');
      res.addTrailers({ 'X-Check': '1' });
      res.end();
    });
    const { headers, rawTrailers, body } = await send();
    assert.deepEqual([headers['trailer'], rawTrailers, body], ['X-Check', ['x-check', '1'], 'body']);
  });

  it('gets the trailers of a compressed response, but no digest of what it does not get', async () => {
    const handler: Respond = (_req, res) => {
      res.setHeader('Content-Type', 'text/plain').setHeader('Trailer', 'X-Check, Content-Digest');
      res.write('x'.repeat(10_000));
      res.addTrailers({ 'X-Check': '1', 'Content-Digest': 'sha-256=:AA==:' });
      res.end();
    };
    const { send } = await openInFrontOf(handler, { mapping: { compress: true } });
    const { headers, rawTrailers } = await send({ 'accept-encoding': 'gzip' });
    assert.deepEqual([headers['content-encoding'], rawTrailers], ['gzip', ['x-check', '1']]);
  });

  it('gets early hints of a service', async () => {
    const { send } = await openInFrontOf((_req, res) => {
      res.writeEarlyHints({ link: '</a.css>; rel=preload' }, () => res.end('x'));
    });
    const { interim, status } = await send();
    assert.deepEqual([interim, status], [[103], 200]);
  });

  it('gets 100 Continue when the service reads the body, and none before a refusal', async () => {
    const service = await startUpstream(servers);
    const { start } = await openGateway(service.origin, { mapping: { max_request_bytes: 10 } });
    const { stream, response } = start({ ...post, expect: '100-continue' });
    await once(stream, 'continue');
    stream.end('body');
    assert.deepEqual([(await response).status, service.only().body], [200, 'body']);
    const refused = await start({ ...post, expect: '100-continue', 'content-length': 11 }).response;
    assert.deepEqual([refused.status, refused.interim], [413, []]);
  });

  for (const status of [200, 204, 205, 304, 426, 599]) {
    it(`gets the status ${status} of a service, to GET and to HEAD`, async () => {
      const { send } = await openInFrontOf((_req, res) => void res.writeHead(status, { Upgrade: 'h2c' }).end());
      for (const method of ['GET', 'HEAD']) {
        const response = await send({ ':method': method });
        assert.deepEqual([response.status, response.body, response.code], [status, '', constants.NGHTTP2_NO_ERROR]);
        assert.deepEqual([response.headers['connection'], response.headers['upgrade']], [undefined, undefined]);
      }
    });
  }

  it('gets 502 and the body of a service instead of a status above 599, which HTTP/2 cannot send', async () => {
    const { send, line } = await openInFrontOf((_req, res) => void res.writeHead(799).end('x'));
    const { status, body } = await send();
    assert.deepEqual([status, body, (await line())['status']], [502, 'x', 502]);
  });

  it('gets each line of a header of a service that occurs several times', async () => {
    const { send } = await openInFrontOf((_req, res) => {
      res.setHeader('Set-Cookie', ['a=1', 'b=2']).setHeader('ETag', ['"a"', '"b"']).setHeader('Age', ['1', '2']);
      res.end();
    });
    const { rawHeaders } = await send();
    const valuesOf = (name: string) =>
      rawHeaders.filter((_, index) => rawHeaders[index - 1] === name && index % 2 === 1);
    assert.deepEqual(
      [valuesOf('set-cookie'), valuesOf('etag'), valuesOf('age')],
      [
        ['a=1', 'b=2'],
        ['"a"', '"b"'],
        ['1', '2'],
      ],
    );
  });

  it('gets events as they come', async () => {
    let next = () => {};
    const { start } = await openInFrontOf((_req, res) => {
      res.setHeader('Content-Type', 'text/event-stream').write('data: 1\n\n');
      next = () => res.end('data: 2\n\n');
    });
    const { stream, response } = start();
    assert.equal(String((await once(stream, 'data'))[0]), 'data: 1\n\n');
    next();
    assert.equal((await response).body, 'data: 1\n\ndata: 2\n\n');
  });

  it('gets a reset if the service breaks its response off, which is logged as the fault of the service', async () => {
    const { send, line } = await openInFrontOf((_req, res) => {
      res.setHeader('Content-Length', 10).write('half');
      setImmediate(() => res.destroy());
    });
    const { status, code } = await send();
    assert.deepEqual([status, code], [200, constants.NGHTTP2_INTERNAL_ERROR]);
    assert.equal((await line())['status'], 502);
  });

  for (const [what, length] of [
    ['longer', 3],
    ['shorter', 8],
  ] as const) {
    it(`gets a reset if the body of a service of this process is ${what} than its length, and can go on`, async () => {
      const own = async (ctx: Context) => {
        ctx.respond = false;
        ctx.res.on('error', () => {}).statusCode = 200;
        if (ctx.path === '/') ctx.res.setHeader('Content-Length', length).write('hello');
        ctx.res.end();
      };
      const { send, lines } = await openGateway('own', { services: { own } });
      const [{ code }, other] = await Promise.all([send(), send({ ':path': '/fine' })]);
      assert.notEqual(code, constants.NGHTTP2_NO_ERROR);
      assert.equal(other.status, 200);
      assert.equal((await send({ ':path': '/fine' })).status, 200);
      const reason = `the body is ${what} than its Content-Length`;
      const warnings = lines.filter(({ level }) => level === 'warn').map(({ fields }) => fields);
      assert.deepEqual(warnings, [{ method: 'GET', path: '/', reason }]);
    });
  }

  it('is seen by the service with its address, its host and its protocol', async () => {
    const service = await startUpstream(servers);
    const { send } = await openGateway(service.origin);
    await send({ ':authority': 'shop.example', cookie: ['a=1', 'b=2'] });
    const { headers, names } = service.only();
    assert.deepEqual([headers['x-forwarded-for'], headers['x-forwarded-proto']], ['127.0.0.1', 'http']);
    assert.deepEqual([headers['x-forwarded-host'], headers.cookie], ['shop.example', 'a=1; b=2']);
    assert.match(String(headers['via']), /^2\.0 /);
    assert.ok(names.every((name) => !name.startsWith(':')));
  });

  it('does not wait for other requests of its connection', async () => {
    const { start, send } = await openInFrontOf((req, res) => void (req.url === '/fine' && res.end('fine')));
    const slow = Array.from({ length: 50 }, () => start());
    assert.equal((await send({ ':path': '/fine' })).body, 'fine');
    for (const { stream } of slow) stream.close();
  });

  it('that stops reading a large response gets a reset, is logged as 499, and the gateway stops reading it too', async () => {
    let sent = 0;
    const chunk = Buffer.alloc(64 * 1024);
    const handler: Respond = async (req, res) => {
      if (req.url === '/fine') return void res.end('fine');
      const closed = closeOf(res);
      for (; sent < 1000 && !res.destroyed; sent += 1)
        if (!res.write(chunk)) await Promise.race([once(res, 'drain'), closed]);
    };
    const { start, send, line } = await openInFrontOf(handler, { mapping: { idle_timeout_ms: 200 } });
    const { stream, response } = start();
    stream.pause();
    assert.equal((await line())['status'], 499);
    assert.ok(sent < 500, String(sent));
    stream.resume();
    assert.notEqual((await response).code, constants.NGHTTP2_NO_ERROR);
    assert.equal((await send({ ':path': '/fine' })).body, 'fine');
  });
});
