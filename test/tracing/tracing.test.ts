/** The spans of a gateway, as an OpenTelemetry exporter receives them, and the detection of OpenTelemetry. */
import assert from 'node:assert/strict';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { connect } from 'node:net';
import * as otel from '@opentelemetry/api';
import {
  context,
  createTraceState,
  isSpanContextValid,
  ProxyTracerProvider,
  propagation,
  SpanKind,
  SpanStatusCode,
  trace,
} from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import {
  AlwaysOffSampler,
  BasicTracerProvider,
  InMemorySpanExporter,
  ParentBasedSampler,
  type ReadableSpan,
  type Sampler,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base';
import Koa, { type Middleware } from 'koa';
import mount from 'koa-mount';
import request from 'supertest';
import { loadTracing, type TracingOptions } from '#tracing';
import type { FrontdeskOptions } from '../../src/index.ts';
import { authRecord, desksOf, mappingRecord } from '../support/desks.ts';
import { type LogLine, recordingLogger } from '../support/edge.ts';
import { type Served, testServers } from '../support/serve.ts';
import { startUpstream, type Upstream } from '../support/upstream.ts';
import { rawRequest, sendRaw } from '../support/wire/raw-client.ts';

const traceId = '0af7651916cd43dd8448eb211c80319c';
const parentId = 'b7ad6b7169203331';
const traceparent = `00-${traceId}-${parentId}-01`;

describe('spans', () => {
  const servers = testServers();
  const open = desksOf(servers);
  const exporter = new InMemorySpanExporter();
  const log: LogLine[] = [];

  /** Sets up OpenTelemetry like a user does, once per process. */
  function instrument(sampler?: Sampler): void {
    const spanProcessors = [new SimpleSpanProcessor(exporter)];
    context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
    trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors, ...(sampler && { sampler }) }));
  }

  afterEach(() => {
    trace.disable();
    context.disable();
    exporter.reset();
    log.length = 0;
  });

  const bare = ({ origin }: Served) => origin.slice('http://'.length);

  const inside: Middleware = async (ctx) => {
    await new Promise((resolve) => setImmediate(resolve));
    trace
      .getTracer('own')
      .startSpan('look up', { attributes: { path: ctx.path } })
      .end();
    if (ctx.path === '/broken') throw new TypeError('the secret inside');
    ctx.body = 'here';
  };

  async function setUp(more: FrontdeskOptions = {}) {
    const upstream = await startUpstream(servers, (res, { url }) => {
      res.statusCode = Number(/\d{3}$/.exec(url)?.[0] ?? 200);
      res.end('ok');
    });
    const authUpstream = await startUpstream(servers, (res, { headers }) => {
      res.statusCode = headers.authorization === undefined ? 401 : 200;
      res.end();
    });
    const desk = await open({
      only: ['gateway'],
      logger: recordingLogger(log),
      services: { here: inside },
      config: {
        records: [
          { ...authRecord, auth_service: bare(authUpstream) },
          mappingRecord('far', '/far', bare(upstream), { bypass_auth: true }),
          mappingRecord('closed', '/closed', bare(await servers.refusing()), { bypass_auth: true }),
          mappingRecord('garbled', '/garbled', bare(await garbling()), { bypass_auth: true }),
          mappingRecord('guarded', '/guarded', bare(upstream)),
          mappingRecord('near', '/near', 'here', { bypass_auth: true }),
        ],
      },
      ...more,
    });
    const { gateway } = await desk.listen();
    assert.ok(gateway !== undefined);
    return { upstream, authUpstream, desk, ...gateway };
  }

  /** Responds with something that is not HTTP. */
  const garbling = () => servers.tcp((socket) => void socket.once('data', () => socket.end('nonsense\r\n\r\n')));

  const server = ({ kind }: ReadableSpan) => kind === SpanKind.SERVER;
  const client = ({ kind }: ReadableSpan) => kind === SpanKind.CLIENT;

  /** Waits for the only matching span, because the client may receive the response before the server ends the span. */
  async function ended(wanted: (span: ReadableSpan) => boolean = server): Promise<ReadableSpan> {
    for (;;) {
      const [found, ...more] = exporter.getFinishedSpans().filter(wanted);
      assert.equal(more.length, 0);
      if (found !== undefined) return found;
      await new Promise((resolve) => setImmediate(resolve));
    }
  }

  /** Returns the trace id, parent id and flags that a service received. */
  const receivedBy = ({ headers }: Upstream['reached'][number]) => String(headers['traceparent']).split('-').slice(1);

  describe('of a request', () => {
    beforeEach(() => instrument());

    it('have the method, the route and the status', async () => {
      const { url } = await setUp();
      await request(url).get('/far/1?secret=1').expect(200);
      const span = await ended();
      assert.equal(span.name, 'GET /far');
      assert.equal(span.parentSpanContext, undefined);
      assert.deepEqual(span.attributes, {
        'http.request.method': 'GET',
        'url.scheme': 'http',
        'url.path': '/far/1',
        'server.address': '127.0.0.1',
        'http.route': '/far',
        'http.response.status_code': 200,
      });
      assert.deepEqual(span.status, { code: SpanStatusCode.UNSET });
      assert.equal(span.instrumentationScope.name, 'frontdesk');
    });

    it('are children of the span in the headers, and parents of the spans of calls', async () => {
      const { url, upstream } = await setUp();
      const headers = { traceparent, tracestate: 'rojo=1' };
      const response = await request(url).get('/far').set(headers).expect(200);
      assert.equal(response.headers['traceparent'], undefined);
      const span = await ended();
      const { parentSpanContext: parent } = span;
      assert.deepEqual([parent?.traceId, parent?.spanId, parent?.isRemote], [traceId, parentId, true]);
      const call = await ended(client);
      assert.equal(call.parentSpanContext?.spanId, span.spanContext().spanId);
      assert.deepEqual(receivedBy(upstream.only()), [traceId, call.spanContext().spanId, '01']);
      assert.equal(upstream.only().headers['tracestate'], 'rojo=1');
      assert.equal(upstream.only().names.filter((name) => name.startsWith('trace')).length, 2);
    });

    it('start a new trace, with its id in the log, if the headers have no valid one', async () => {
      const { url, upstream } = await setUp();
      await request(url).get('/far').set('traceparent', traceparent.toUpperCase()).expect(200);
      const span = await ended();
      const { traceId: own } = span.spanContext();
      assert.equal(span.parentSpanContext, undefined);
      assert.notEqual(own, traceId);
      assert.equal(receivedBy(upstream.only())[0], own);
      assert.deepEqual(
        log.filter(({ message }) => message === 'request').map(({ fields }) => fields['traceId']),
        [own],
      );
    });

    it('have no names or methods that clients make up', async () => {
      const { port } = await setUp();
      await sendRaw(port, rawRequest('PROPFIND /far/1'));
      const { name, attributes } = await ended();
      assert.equal(name, 'HTTP /far');
      assert.equal(attributes['http.request.method'], '_OTHER');
      assert.equal(attributes['http.request.method_original'], 'PROPFIND');
    });

    function check(path: string, status: number, expected: readonly unknown[]) {
      it(`have the route and exception ${JSON.stringify(expected)} for a ${status} of ${path}`, async () => {
        const { url } = await setUp();
        const { text } = await request(url).get(path).expect(status);
        const secret = /the secret inside/;
        assert.doesNotMatch(text, secret);
        const { name, attributes, events, status: outcome } = await ended();
        const { 'http.route': route, 'error.type': type, 'http.response.status_code': sent } = attributes;
        const failure = status < 500 ? [SpanStatusCode.UNSET, undefined] : [SpanStatusCode.ERROR, String(status)];
        assert.deepEqual([sent, outcome.code, type], [status, ...failure]);
        assert.equal(name, ['GET', route].filter(Boolean).join(' '));
        assert.deepEqual([route, ...events.map((event) => event.attributes?.['exception.type'])], expected);
        for (const event of events) assert.equal(event.name, 'exception');
        // Only the span has the message of an exception, not the response.
        if (path === '/near/broken') assert.match(String(events[0]?.attributes?.['exception.message']), secret);
      });
    }

    check('/nowhere', 404, [undefined]);
    check('/far/%2e%2e/x', 400, [undefined]);
    check('/guarded', 401, ['/guarded']);
    check('/far/500', 500, ['/far']);
    check('/garbled', 502, ['/garbled', 'Error']);
    check('/closed', 503, ['/closed', 'ECONNREFUSED']);
    check('/near/broken', 500, ['/near', 'TypeError']);

    for (const [path, status, grpcStatus, code] of [
      ['/closed', 'UNAVAILABLE', 14, SpanStatusCode.ERROR],
      ['/guarded', 'UNAUTHENTICATED', 16, SpanStatusCode.UNSET],
    ] as const)
      it(`have the gRPC status ${status} of a call to ${path} that was refused`, async () => {
        const { url } = await setUp();
        await request(url).post(path).set('Content-Type', 'application/grpc').expect(200);
        const { attributes, status: outcome } = await ended();
        assert.deepEqual([attributes['rpc.grpc.status_code'], outcome.code], [grpcStatus, code]);
      });

    it('end when the client disconnects before the response', async () => {
      const waits = await servers.http(() => socket.destroy());
      const { port } = await setUp({ config: { records: [mappingRecord('far', '/far', bare(waits))] } });
      const socket = connect(port, '127.0.0.1').on('error', () => {});
      socket.write('GET /far HTTP/1.1\r\nHost: desk.test\r\n\r\n');
      const { name, attributes, status } = await ended();
      assert.deepEqual([name, attributes['http.response.status_code']], ['GET /far', undefined]);
      assert.equal(status.code, SpanStatusCode.UNSET);
    });

    it('are active in a service of this process, even after an await, each in its own request', async () => {
      const { url } = await setUp();
      const indexes = [...Array(4).keys()];
      await Promise.all(indexes.map((index) => request(url).get(`/near/${index}`).expect(200, 'here')));
      for (const index of indexes) {
        const span = await ended(({ attributes }) => attributes['url.path'] === `/near/${index}`);
        const child = await ended(({ attributes }) => attributes['path'] === `/${index}`);
        assert.equal(child.parentSpanContext?.spanId, span.spanContext().spanId);
      }
      assert.deepEqual(exporter.getFinishedSpans().filter(client), []);
    });

    it('are passed to the auth service as the parent', async () => {
      const { url, authUpstream } = await setUp();
      await request(url).get('/guarded').auth('ann', 'secret').set({ traceparent }).expect(200);
      const { spanId } = (await ended()).spanContext();
      assert.deepEqual(receivedBy(authUpstream.only()), [traceId, spanId, '01']);
    });

    it('are also created by the listener of the auth service', async () => {
      const desk = await open({ only: ['auth'], config: './config' });
      const { auth } = await desk.listen();
      await request(auth.url).get('/any').set({ traceparent }).expect(401);
      const span = await ended();
      assert.equal(span.parentSpanContext?.spanId, parentId);
      assert.equal(span.attributes['http.response.status_code'], 401);
    });
  });

  describe('of a call to a service', () => {
    beforeEach(() => instrument());

    it('have the address and the status', async () => {
      const { url, upstream } = await setUp();
      await request(url).post('/far/404').send({}).expect(404);
      const span = await ended(client);
      assert.equal(span.name, 'POST');
      assert.deepEqual(span.attributes, {
        'http.request.method': 'POST',
        'server.address': '127.0.0.1',
        'server.port': upstream.port,
        'http.response.status_code': 404,
        'error.type': '404',
      });
      assert.equal(span.status.code, SpanStatusCode.ERROR);
    });

    it('have the error of a call without a response', async () => {
      const { url } = await setUp();
      await request(url).get('/closed').expect(503);
      const { status, attributes, events } = await ended(client);
      assert.deepEqual([status.code, attributes['error.type']], [SpanStatusCode.ERROR, 'ECONNREFUSED']);
      assert.equal(events[0]?.name, 'exception');
    });

    it('end even if the request may not be sent', async () => {
      const { url, upstream } = await setUp({ bodyBytesMax: 4 });
      await request(url).post('/far').send('hello').expect(413);
      assert.equal((await ended(client)).status.code, SpanStatusCode.ERROR);
      assert.deepEqual(upstream.reached, []);
    });
  });

  describe('in a host app', () => {
    beforeEach(() => instrument());

    it('are children of the active span of the host app rather than of the one in the headers', async () => {
      const { desk, upstream } = await setUp();
      const host = new Koa();
      host.use((_ctx, next) =>
        trace.getTracer('host').startActiveSpan('host', async (span) => {
          await next();
          span.end();
        }),
      );
      host.use(mount('/travel', desk.middleware));
      await request(host.callback()).get('/travel/far/1').set({ traceparent }).expect(200);
      const outer = await ended(({ name }) => name === 'host');
      const span = await ended(({ name }) => name === 'GET /travel/far');
      assert.equal(span.kind, SpanKind.INTERNAL);
      assert.equal(span.attributes['url.path'], '/travel/far/1');
      assert.equal(span.attributes['http.route'], '/travel/far');
      assert.equal(span.parentSpanContext?.spanId, outer.spanContext().spanId);
      assert.equal(receivedBy(upstream.only())[0], outer.spanContext().traceId);
    });

    it('are children of the span in the headers if no span is active', async () => {
      const { desk } = await setUp();
      const host = new Koa().use(mount('/travel', desk.middleware));
      await request(host.callback()).get('/travel/far/1').set({ traceparent }).expect(200);
      const span = await ended();
      assert.deepEqual([span.name, span.parentSpanContext?.spanId], ['GET /travel/far', parentId]);
    });
  });

  it('are not exported if the sampler drops them, but the trace continues', async () => {
    instrument(new ParentBasedSampler({ root: new AlwaysOffSampler() }));
    const { url, upstream } = await setUp();
    await request(url).get('/far').expect(200);
    const [own, , flags] = receivedBy(upstream.only());
    assert.match(String(own), /^(?!0{32})[\da-f]{32}$/);
    assert.equal(flags, '00');
    await request(url).get('/far').set({ traceparent }).expect(200);
    const span = await ended();
    assert.equal(span.spanContext().traceId, traceId);
  });

  it('keep additions of the sampler to tracestate', async () => {
    const traceState = createTraceState('ot=th:8');
    instrument({ shouldSample: () => ({ decision: 2, traceState }), toString: () => 'adding' });
    const { url, upstream } = await setUp();
    await request(url).get('/far').expect(200);
    assert.equal(upstream.only().headers['tracestate'], 'ot=th:8');
  });

  it('are created even without a context manager', async () => {
    trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }));
    const { url, upstream } = await setUp();
    await request(url).get('/far').set({ traceparent }).expect(200);
    const span = await ended();
    const call = await ended(client);
    assert.equal(call.parentSpanContext?.spanId, span.spanContext().spanId);
    assert.equal(receivedBy(upstream.only())[1], call.spanContext().spanId);
  });

  it('are not created by a disabled tracer, but services still receive ids', async () => {
    trace.setGlobalTracerProvider(new ProxyTracerProvider());
    const { url, upstream } = await setUp();
    await request(url).get('/far').expect(200);
    await request(url).get('/far').set({ traceparent }).expect(200);
    const [[began], [went, parent, flags]] = upstream.reached.map(receivedBy) as [string[], string[]];
    assert.match(String(began), /^(?!0{32})[\da-f]{32}$/);
    assert.deepEqual([went, flags], [traceId, '01']);
    assert.notEqual(parent, parentId);
  });

  it('are not created by a provider that is registered after start-up', async () => {
    const { url, upstream } = await setUp();
    instrument();
    await request(url).get('/far').set({ traceparent }).expect(200);
    const [id, span, flags] = receivedBy(upstream.only());
    assert.deepEqual([id, flags], [traceId, '01']);
    assert.notEqual(span, parentId);
    assert.deepEqual(exporter.getFinishedSpans(), []);
  });

  it('are sent to services in a single traceparent, even with an instrumentation of the HTTP client', async () => {
    instrument();
    const seen: unknown[] = [];
    const instrumentation = (message: unknown) => {
      const { request: made } = message as { request: { addHeader: (name: string, value: string) => void } };
      const span = trace.getTracer('undici').startSpan('outgoing');
      const { traceId: id, spanId } = span.spanContext();
      if (isSpanContextValid(span.spanContext())) made.addHeader('traceparent', `00-${id}-${spanId}-01`);
      span.end();
      seen.push(span);
    };
    subscribe('undici:request:create', instrumentation);
    servers.later(() => unsubscribe('undici:request:create', instrumentation));
    const { url, upstream, authUpstream } = await setUp();
    await Promise.all([1, 2, 3].map(() => request(url).get('/guarded').auth('ann', 'secret').expect(200)));
    assert.equal(seen.length, 6);
    for (const { names } of [...upstream.reached, ...authUpstream.reached])
      assert.equal(names.filter((name) => name === 'traceparent').length, 1);
    assert.ok(exporter.getFinishedSpans().every(({ name }) => name !== 'outgoing'));
  });

  it('use no propagator', async () => {
    instrument();
    const refuse = () => assert.fail('called');
    propagation.setGlobalPropagator({ inject: refuse, extract: refuse, fields: () => [] });
    servers.later(() => propagation.disable());
    const { url } = await setUp();
    await request(url).get('/far').set({ traceparent }).expect(200);
    assert.equal((await ended()).parentSpanContext?.spanId, parentId);
  });
});

describe('loadTracing', () => {
  async function load(more: Partial<TracingOptions> = {}) {
    const log: LogLine[] = [];
    const tracing = await loadTracing({ version: '1.0.0', logger: recordingLogger(log), ...more });
    return { tracing, log };
  }

  afterEach(() => otel.trace.disable());

  it('returns undefined and logs nothing without a provider', async () => {
    assert.deepEqual(await load(), { tracing: undefined, log: [] });
  });

  it('returns a middleware if there is a provider', async () => {
    otel.trace.setGlobalTracerProvider(new BasicTracerProvider());
    const { tracing, log } = await load();
    assert.equal(tracing?.middleware.name, 'serverSpan');
    assert.deepEqual(log, []);
  });

  it('detects a provider that was registered with another copy of the package', async () => {
    const { trace } = otel;
    const own = new BasicTracerProvider();
    const foreign = { ...otel, trace: Object.assign(Object.create(trace), { getTracerProvider: () => own }) };
    const { tracing } = await load({ load: async () => foreign });
    assert.notEqual(tracing, undefined);
  });

  it('starts no span for the detection', async () => {
    const started: unknown[] = [];
    const onStart = (span: unknown) => void started.push(span);
    const nothing = { onEnd() {}, forceFlush: async () => {}, shutdown: async () => {} };
    otel.trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors: [{ onStart, ...nothing }] }));
    await load();
    assert.deepEqual(started, []);
  });

  it('logs nothing if the package is not installed', async () => {
    const missing = await load({ load: () => import(absent('@opentelemetry/api')) });
    assert.deepEqual(missing, { tracing: undefined, log: [] });
  });

  it('logs a warning if the package is installed but cannot be loaded', async () => {
    for (const cause of [new SyntaxError('half a file'), await thrownBy(() => import(absent('something-else')))]) {
      const { tracing, log } = await load({ load: () => Promise.reject(cause) });
      assert.equal(tracing, undefined);
      assert.deepEqual(log, [
        { level: 'warn', fields: { err: cause }, message: 'OpenTelemetry cannot be loaded, so there are no spans' },
      ]);
    }
  });
});

/** Returns the URL of a module that throws Node's error for a missing package. */
function absent(name: string): string {
  return `data:text/javascript,${encodeURIComponent(nodeError(name))}`;
}

function nodeError(name: string): string {
  const message = `Cannot find package '${name}' imported from /app/dist/tracing/tracing.js`;
  return `throw Object.assign(new Error(${JSON.stringify(message)}), { code: 'ERR_MODULE_NOT_FOUND' });`;
}

async function thrownBy(run: () => Promise<unknown>): Promise<unknown> {
  try {
    await run();
  } catch (error) {
    return error;
  }
  return assert.fail('nothing was thrown');
}
