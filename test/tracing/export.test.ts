/** Spans that `frontdesk serve` exports over OTLP to a collector, by OpenTelemetry's environment variables. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer as createHttp2Server } from 'node:http2';
import type { AddressInfo } from 'node:net';
import request from 'supertest';
import { authRecord, demoRecord, mappingRecord } from '../support/desks.ts';
import { type Server, startServer, startSplit } from '../support/programs/frontdesk-process.ts';
import { testServers } from '../support/serve.ts';
import { temporaryFiles } from '../support/temporary-files.ts';
import { startUpstream, type Upstream } from '../support/upstream.ts';
import { eventually } from '../support/waiting.ts';

interface JsonSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
}

interface Export {
  readonly path: string | undefined;
  readonly headers: NodeJS.Dict<string | string[]>;
  readonly body: Buffer;
}

describe('spans of frontdesk serve', () => {
  const servers = testServers();
  const writeFiles = temporaryFiles();

  async function startCollector(status = 200) {
    const exports: Export[] = [];
    const { origin, port } = await servers.http(async (req, res) => {
      const parts: Buffer[] = [];
      for await (const part of req) parts.push(part);
      exports.push({ path: req.url, headers: req.headers, body: Buffer.concat(parts) });
      res.writeHead(status, { 'Content-Type': 'application/json' }).end('{}');
    });
    return { origin, port, exports };
  }

  async function start(env: Readonly<Record<string, string>>): Promise<{ server: Server; upstream: Upstream }> {
    const upstream = await startUpstream(servers);
    const mapping = JSON.stringify({ ...mappingRecord('api', '/v1', upstream.origin), bypass_auth: true });
    const CONFIG_DIR = await writeFiles({ 'services/api.yaml': mapping });
    const server = await startServer([], { env: { CONFIG_DIR, OTEL_BSP_SCHEDULE_DELAY: '50', ...env } });
    servers.later(server.stop);
    return { server, upstream };
  }

  /** Each over its own connection, so that all threads get some. */
  async function send({ gatewayUrl }: Server, count = 1): Promise<void> {
    for (let sent = 0; sent < count; sent += 1)
      await request(gatewayUrl).get('/v1/rooms').set('Connection', 'close').expect(200);
  }

  const spansIn = ({ body }: Export): readonly JsonSpan[] =>
    JSON.parse(body.toString()).resourceSpans.flatMap((resource: { scopeSpans: { spans: JsonSpan[] }[] }) =>
      resource.scopeSpans.flatMap(({ spans }) => spans),
    );

  const traceparents = (upstream: Upstream) =>
    upstream.reached.map(({ headers }) => String(headers['traceparent']).split('-').slice(1, 3).join('-')).toSorted();

  for (const threads of ['1', '2'])
    it(`reach the collector with the ids that services got, from ${threads} threads, those at the stop included`, async () => {
      const { origin, exports } = await startCollector();
      const { server, upstream } = await start({
        THREADS: threads,
        OTEL_EXPORTER_OTLP_ENDPOINT: origin,
        OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
        OTEL_EXPORTER_OTLP_HEADERS: 'x-tenant=blue',
        OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=test',
        // None is exported before the stop.
        OTEL_BSP_SCHEDULE_DELAY: '600000',
      });
      await send(server, 20);
      assert.equal(exports.length, 0);
      const { code, stderr } = await server.stop();
      assert.deepEqual([code, stderr], [0, '']);
      const spans = exports.flatMap(spansIn);
      const calls = spans.filter(({ name }) => name === 'GET');
      assert.deepEqual(calls.map(({ traceId, spanId }) => `${traceId}-${spanId}`).toSorted(), traceparents(upstream));
      const requests = new Set(spans.filter(({ name }) => name === 'GET /v1').map(({ spanId }) => spanId));
      assert.ok(requests.size === 20 && calls.every(({ parentSpanId = '' }) => requests.has(parentSpanId)));
      for (const { path, headers, body } of exports) {
        assert.deepEqual([path, headers['x-tenant']], ['/v1/traces', 'blue']);
        assert.match(body.toString(), /"service\.name","value":\{"stringValue":"frontdesk"\}/);
        assert.match(body.toString(), /"deployment\.environment\.name"/);
      }
      if (threads === '2') assert.equal(exports.length, 2);
    });

  it('reach the collector from the processes of split, as one trace', async () => {
    const { origin, exports } = await startCollector();
    const upstream = await startUpstream(servers);
    const CONFIG_DIR = await writeFiles({
      'services/api.yaml': JSON.stringify(mappingRecord('api', '/v1', upstream.origin)),
      'services/auth.yaml': JSON.stringify(authRecord),
      'users.yaml': JSON.stringify({ users: [demoRecord] }),
    });
    const env = {
      CONFIG_DIR,
      THREADS: '1',
      OTEL_EXPORTER_OTLP_ENDPOINT: origin,
      OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
      // None is exported before the stop.
      OTEL_BSP_SCHEDULE_DELAY: '600000',
    };
    const { gatewayUrl, stop } = await startSplit([], { env });
    servers.later(stop);
    await request(gatewayUrl).get('/v1/rooms').auth('demo', 'demo').expect(200);
    await stop();
    const [traceId = ''] = traceparents(upstream)[0]?.split('-') ?? [];
    const processes = exports.map((one) => spansIn(one).filter((span) => span.traceId === traceId));
    const [ofAuth = [], ofGateway = []] = processes.toSorted((one, other) => one.length - other.length);
    const received = ofGateway.find(({ name }) => name === 'GET /v1');
    assert.deepEqual([ofAuth.length, ofGateway.length, processes.length], [1, 2, 2]);
    assert.equal(ofAuth[0]?.parentSpanId, received?.spanId);
  });

  it('are protobuf by default, and have the name in OTEL_SERVICE_NAME', async () => {
    const { origin, exports } = await startCollector();
    const variables = { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${origin}/own`, OTEL_SERVICE_NAME: 'edge' };
    const { server, upstream } = await start(variables);
    await send(server);
    await eventually(() => assert.ok(exports.length > 0));
    const [first] = exports;
    assert.deepEqual([first?.path, first?.headers['content-type']], ['/own', 'application/x-protobuf']);
    const [traceId = ''] = traceparents(upstream)[0]?.split('-') ?? [];
    assert.ok(first?.body.includes(Buffer.from(traceId, 'hex')));
    assert.ok(first?.body.includes('edge') && !first.body.includes('unknown_service'));
  });

  it('can be sent over gRPC', async () => {
    const bodies: Buffer[] = [];
    const collector = createHttp2Server();
    collector.on('stream', async (stream) => {
      stream.on('error', () => {});
      for await (const part of stream) bodies.push(part);
      stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true });
      stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }));
      stream.end(Buffer.alloc(5));
    });
    collector.listen(0, '127.0.0.1');
    await once(collector, 'listening');
    servers.later(() => void collector.close());
    const { port } = collector.address() as AddressInfo;
    const { server, upstream } = await start({
      OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${port}`,
      OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc',
    });
    await send(server);
    await eventually(() => assert.ok(bodies.length > 0));
    const [traceId = ''] = traceparents(upstream)[0]?.split('-') ?? [];
    assert.ok(Buffer.concat(bodies).includes(Buffer.from(traceId, 'hex')));
    await server.stop();
  });

  it('follow OTEL_TRACES_SAMPLER', async () => {
    const { origin, exports } = await startCollector();
    const { server } = await start({ OTEL_EXPORTER_OTLP_ENDPOINT: origin, OTEL_TRACES_SAMPLER: 'always_off' });
    await send(server);
    await server.stop();
    assert.equal(exports.length, 0);
  });

  for (const off of [{ OTEL_SDK_DISABLED: 'true' }, { OTEL_TRACES_EXPORTER: 'none' }])
    it(`are not made with ${Object.entries(off).join()}`, async () => {
      const { origin, exports } = await startCollector();
      const { server } = await start({ OTEL_EXPORTER_OTLP_ENDPOINT: origin, ...off });
      await send(server);
      const { stdout } = await server.stop();
      assert.equal(exports.length, 0);
      assert.doesNotMatch(stdout, /OTEL|OpenTelemetry/);
    });

  for (const [what, status] of [
    ['is away', undefined],
    ['refuses them', 400],
  ] as const)
    it(`are lost with one line in the log while the collector ${what}, and requests and the stop go on`, async () => {
      const { origin } = status === undefined ? await servers.refusing() : await startCollector(status);
      const OTEL_EXPORTER_OTLP_TIMEOUT = '300';
      const { server } = await start({ OTEL_EXPORTER_OTLP_ENDPOINT: origin, OTEL_EXPORTER_OTLP_TIMEOUT });
      await send(server, 5);
      await server.waitForOutput(/the collector did not take spans, which are lost/);
      await send(server, 5);
      const { code, stdout, stderr } = await server.stop();
      assert.deepEqual([code, stderr], [0, '']);
      assert.equal(stdout.match(/the collector did not take spans/g)?.length, 1);
    });

  it('are not exported without the packages, which one line names with the command that installs them', async () => {
    const { origin, exports } = await startCollector();
    const hide = `import { registerHooks } from 'node:module';
      registerHooks({ resolve(name, context, next) {
        if (!name.startsWith('@opentelemetry/exporter')) return next(name, context);
        throw Object.assign(new Error("Cannot find package '" + name + "'"), { code: 'ERR_MODULE_NOT_FOUND' });
      } });`;
    const { server } = await start({
      THREADS: '2',
      OTEL_EXPORTER_OTLP_ENDPOINT: origin,
      OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc',
      NODE_OPTIONS: `--import data:text/javascript,${encodeURIComponent(hide)}`,
    });
    await send(server);
    const { stdout } = await server.stop();
    const lines = stdout.match(/OTEL_EXPORTER_OTLP_ENDPOINT is set, but .*npm install [^"]*/g) ?? [];
    assert.equal(lines.length, 1);
    assert.match(lines[0] ?? '', /sdk-trace-node@2 @opentelemetry\/exporter-trace-otlp-grpc@[\d.]+$/);
    assert.equal(exports.length, 0);
  });

  it('are not exported over an unknown protocol, and the log lists the known ones', async () => {
    const { origin } = await startCollector();
    const { server } = await start({ OTEL_EXPORTER_OTLP_ENDPOINT: origin, OTEL_EXPORTER_OTLP_PROTOCOL: 'thrift' });
    await send(server);
    const { stdout } = await server.stop();
    assert.match(
      stdout,
      /no spans are exported: OTEL_EXPORTER_OTLP_PROTOCOL must be one of http\/protobuf, http\/json, grpc/,
    );
  });
});
