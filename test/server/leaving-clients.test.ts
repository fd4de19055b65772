/** Clients that leave, in an orderly way or with a reset, at every stage of a request: the log, the counts and the errors. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { type ClientHttp2Session, type ClientHttp2Stream, connect as connectHttp2, constants } from 'node:http2';
import { connect, type Socket } from 'node:net';
import { Readable } from 'node:stream';
import type { Context } from 'koa';
import type { FrontdeskOptions, RecordInput } from '../../src/index.ts';
import { authRecord, desksOf, limitRecord, mappingRecord } from '../support/desks.ts';
import { type LogLine, recordingLogger } from '../support/edge.ts';
import { among, scrape } from '../support/scrape.ts';
import { testServers } from '../support/serve.ts';
import { createDeferred, eventually } from '../support/waiting.ts';
import { startForeignRateLimitService } from '../support/wire/foreign-rate-limit-service.ts';
import { upgradeRequest } from '../support/wire/peer.ts';
import { rawRequest } from '../support/wire/raw-client.ts';

const servers = testServers();
const open = desksOf(servers);

/** Sends the request, passes on what arrives, and returns a function with which the client leaves. */
type Connect = (port: number, request: string, onText: (text: string) => void) => () => void;

const leaves: Readonly<Record<string, (socket: Socket) => void>> = {
  'closes its connection': (socket) => void socket.destroy(),
  'resets its connection': (socket) => void socket.resetAndDestroy(),
};

const clients: Readonly<Record<string, Connect>> = {
  ...Object.fromEntries(Object.entries(leaves).map(([how, leave]) => [how, overHttp1(leave)])),
  'closes its connection of HTTP/2': overHttp2(({ session }) => session.destroy()),
  'cancels its request of HTTP/2': overHttp2(({ stream }) => stream.close(constants.NGHTTP2_CANCEL)),
};

function overHttp1(leave: (socket: Socket) => void): Connect {
  return (port, request, onText) => {
    const socket = connect(port, '127.0.0.1').on('data', (chunk) => onText(chunk.toString('latin1', 0, 1000)));
    socket.write(request);
    return () => leave(socket);
  };
}

interface Http2Request {
  readonly session: ClientHttp2Session;
  readonly stream: ClientHttp2Stream;
}

/** The head of the response is passed on as two line breaks. */
function overHttp2(leave: (request: Http2Request) => void): Connect {
  return (port, request, onText) => {
    const session = connectHttp2(`http://127.0.0.1:${port}`).on('error', () => {});
    servers.later(() => session.destroy());
    const [head = '', body = ''] = request.split('\r\n\r\n');
    const [method, path] = head.split(' ');
    const length = /(?<=Content-Length: )\d+/.exec(head)?.[0];
    const stream = session.request(
      { ':method': method, ':path': path, ...(length && { 'content-length': length }) },
      { endStream: body === '' },
    );
    stream.on('error', () => {}).on('response', () => onText('\r\n\r\n'));
    stream.on('data', (chunk: Buffer) => onText(chunk.toString('latin1', 0, 1000)));
    if (body !== '') stream.write(body);
    return () => leave({ session, stream });
  };
}

/** What a service, an auth service or a limiter tells the test. */
interface Hooks {
  /** The request has arrived, so that the client leaves now. */
  readonly arrived: () => void;
  /** Resolves when the access log has the line of the request. */
  readonly gone: Promise<void>;
}

interface Case {
  readonly request: string;
  /** The client leaves when it has received this, instead of when the service calls `arrived`. */
  readonly until?: string;
  readonly status?: number;
  readonly http?: (req: IncomingMessage, res: ServerResponse, hooks: Hooks) => void;
  readonly upgrade?: (socket: Socket, hooks: Hooks) => void;
  readonly own?: (ctx: Context, hooks: Hooks) => Promise<void>;
  readonly auth?: (res: ServerResponse, hooks: Hooks) => void;
  readonly limiter?: (hooks: Hooks) => Promise<object>;
}

const get = rawRequest('GET /v1/x');
const upload = rawRequest('POST /v1/x', ['Content-Length: 10'], 'hello');
const large = Buffer.alloc(32 * 1024 * 1024);
const ok = { overallCode: 1 };

const cases: Readonly<Record<string, Case>> = {
  'while it waits for a service': { request: get, http: (_req, _res, { arrived }) => arrived() },
  'during an upload to a service': {
    request: upload,
    http: (req, _res, { arrived }) => void req.once('data', arrived),
  },
  'during a download': { request: get, until: '\r\n\r\n', http: (_req, res) => void res.end(large) },
  'between two events of a stream': {
    request: get,
    until: 'data: 1',
    http: (_req, res) => void res.setHeader('Content-Type', 'text/event-stream').write('data: 1\n\n'),
  },
  'while it waits for a WebSocket': { request: upgradeRequest('/v1/x'), upgrade: (_socket, { arrived }) => arrived() },
  'with an open WebSocket': {
    request: upgradeRequest('/v1/x'),
    until: '101 ',
    status: 101,
    upgrade: (socket) => void socket.write('HTTP/1.1 101 x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n'),
  },
  'while it waits for a service of this process': {
    request: get,
    async own(ctx, { arrived, gone }) {
      arrived();
      await gone;
      ctx.body = large;
    },
  },
  'before a service of this process fails because of that': {
    request: get,
    async own(ctx, { arrived }) {
      arrived();
      await once(ctx.res, 'close');
      throw new Error('nobody reads what I write');
    },
  },
  'during an upload to a service of this process': {
    request: upload,
    async own(ctx, { arrived }) {
      for await (const _chunk of ctx.req) arrived();
    },
  },
  'during a download from a service of this process': {
    request: get,
    until: '\r\n\r\n',
    async own(ctx) {
      ctx.body = large;
    },
  },
  'during a stream from a service of this process': {
    request: get,
    until: 'part',
    async own(ctx) {
      ctx.body = Readable.from(
        (async function* () {
          for (;;) yield await new Promise<string>((resolve) => void setImmediate(resolve, 'part'));
        })(),
      );
    },
  },
  'during a response that a service of this process writes itself': {
    request: get,
    until: 'part',
    async own(ctx, { gone }) {
      ctx.respond = false;
      ctx.res.write('part');
      await gone;
      ctx.res.write('the rest');
      ctx.res.end();
    },
  },
  'during the call to the auth service': { request: get, auth: (_res, { arrived }) => arrived() },
  'during the call to the rate-limit service': {
    request: get,
    async limiter({ arrived, gone }) {
      arrived();
      await gone;
      return ok;
    },
  },
};

async function openDesk({ http, upgrade, own, auth, limiter }: Case, hooks: Hooks, lines: LogLine[]) {
  const upstream = await servers.http((req, res) => (http === undefined ? res.end() : http(req, res, hooks)));
  const upgrading = await servers.tcp((socket) => void socket.once('data', () => upgrade?.(socket, hooks)));
  const authService = await servers.http((_req, res) => (auth === undefined ? res.end() : auth(res, hooks)));
  const limits = limiter && (await startForeignRateLimitService(() => limiter(hooks)));
  if (limits !== undefined) servers.later(limits.stop);
  const service = own !== undefined ? 'own' : upgrade === undefined ? upstream.origin : upgrading.origin;
  const mapping = mappingRecord('all', '/v1/', service, {
    ...(upgrade && { allow_upgrade: ['websocket'] }),
    ...(limits && { labels: { gateway: [{ one: [{ generic_key: { value: 'one' } }] }] } }),
  });
  const records: RecordInput[] = [mapping, { ...authRecord, auth_service: authService.origin }];
  if (limits) records.push({ ...limitRecord, service: `127.0.0.1:${limits.port}`, timeout_ms: 20_000 });
  const options: FrontdeskOptions = {
    only: ['gateway'],
    demo: false,
    adminPort: 0,
    logger: recordingLogger(lines),
    accessLog: 'json',
    config: { records },
    ...(own && { services: { own: (ctx: Context) => own(ctx, hooks) } }),
  };
  return open(options);
}

const accessLines = (lines: readonly LogLine[]) => lines.filter(({ message }) => message === 'request');
const troubles = (lines: readonly LogLine[]) => lines.filter(({ level }) => level !== 'info');

describe('a client that leaves', () => {
  for (const [how, connectBy] of Object.entries(clients))
    for (const [when, one] of Object.entries(cases)) {
      if (one.upgrade !== undefined && how.includes('HTTP/2')) continue;
      it(`and ${how} ${when} is logged and counted as ${one.status ?? 499}, and as nobody's error`, async () => {
        const { request, until, status = 499 } = one;
        const lines: LogLine[] = [];
        const [arrived, gone] = [createDeferred(), createDeferred()];
        const desk = await openDesk(one, { arrived: arrived.resolve, gone: gone.promise }, lines);
        const { gateway } = await desk.listen();
        lines.length = 0;
        let received = '';
        const leave = connectBy(gateway.port, request, (text) => {
          received += text;
          if (until !== undefined && received.includes(until)) arrived.resolve();
        });
        await arrived.promise;
        leave();
        await eventually(() => assert.equal(accessLines(lines).length, 1));
        gone.resolve();
        // What the stages do after the client has left is over when the next request has its response.
        await new Promise(setImmediate);
        assert.deepEqual(
          accessLines(lines).map(({ fields }) => [fields['status'], fields['problem']]),
          [[status, undefined]],
        );
        const series = await scrape(desk);
        const counts = among(series, 'frontdesk_requests_total');
        assert.deepEqual(
          Object.entries(counts).filter(([, count]) => count > 0),
          [[`all ${status === 499 ? '499' : '1xx'}`, 1]],
        );
        assert.ok(Object.values(among(series, 'frontdesk_upstream_failures_total')).every((count) => count === 0));
        assert.deepEqual(troubles(lines), []);
      });
    }

  it("or stops reading is logged and counted as 499, and as nobody's error", async () => {
    const lines: LogLine[] = [];
    const upstream = await servers.http((_req, res) => void res.end(large));
    const desk = await open({
      only: ['gateway'],
      demo: false,
      adminPort: 0,
      logger: recordingLogger(lines),
      accessLog: 'json',
      config: { records: [mappingRecord('all', '/', upstream.origin, { bypass_auth: true, idle_timeout_ms: 1000 })] },
    });
    const { gateway } = await desk.listen();
    lines.length = 0;
    const client = connect(gateway.port, '127.0.0.1').pause();
    client.write(get);
    await eventually(() => assert.equal(accessLines(lines).length, 1));
    client.destroy();
    assert.deepEqual(
      lines.map(({ level, fields }) => [level, fields['status'], fields['problem']]),
      [['info', 499, undefined]],
    );
    assert.equal(among(await scrape(desk), 'frontdesk_requests_total')['all 499'], 1);
  });

  for (const [how, leave] of Object.entries(leaves))
    it(`and ${how} after eight pipelined requests has a line for each, and causes no error`, async () => {
      const lines: LogLine[] = [];
      const arrived = createDeferred();
      let requests = 0;
      const upstream = await servers.http((_req, res) => {
        requests += 1;
        if (requests === 8) arrived.resolve();
        else if (requests % 2 === 0) res.end('x');
      });
      const desk = await open({
        only: ['gateway'],
        demo: false,
        logger: recordingLogger(lines),
        accessLog: 'json',
        config: { records: [mappingRecord('all', '/', upstream.origin, { bypass_auth: true })] },
      });
      const { gateway } = await desk.listen();
      lines.length = 0;
      const client = connect(gateway.port, '127.0.0.1');
      client.write('GET /a HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(8));
      await arrived.promise;
      leave(client);
      await eventually(() => assert.equal(lines.length, 8));
      assert.deepEqual(
        lines.map(({ level, message, fields }) => [level, message, fields['status']]),
        Array(8).fill(['info', 'request', 499]),
      );
    });
});

describe('a service that fails before its client leaves', () => {
  it('is logged and counted as failed', async () => {
    const lines: LogLine[] = [];
    const own = async (ctx: Context) => {
      ctx.body = Readable.from(
        (async function* () {
          yield 'part';
          await new Promise(setImmediate);
          throw Object.assign(new Error('my own database broke'), { code: 'ECONNRESET' });
        })(),
      );
    };
    const desk = await open({
      only: ['gateway'],
      demo: false,
      adminPort: 0,
      logger: recordingLogger(lines),
      accessLog: 'json',
      services: { own },
      config: { records: [mappingRecord('all', '/', 'own', { bypass_auth: true })] },
    });
    const { gateway } = await desk.listen();
    lines.length = 0;
    const client = connect(gateway.port, '127.0.0.1').on('error', () => {});
    client.resume().write(rawRequest('GET /a'));
    await eventually(() => assert.equal(accessLines(lines).length, 1));
    assert.deepEqual(
      lines.map(({ level, fields }) => [level, fields['status'], fields['problem']]),
      [
        ['error', undefined, undefined],
        ['info', 500, 'internal'],
      ],
    );
    assert.equal(among(await scrape(desk), 'frontdesk_requests_total')['all 5xx'], 1);
  });
});
