/** Whether anybody traces, as it is found out at the start. */
import assert from 'node:assert/strict';
import * as otel from '@opentelemetry/api';
import { BasicTracerProvider } from '@opentelemetry/sdk-trace-base';
import { loadTracing, type TracingOptions } from '#tracing';
import { type LogLine, recordingLogger } from '../support/edge.ts';

describe('loadTracing', () => {
  async function load(more: Partial<TracingOptions> = {}) {
    const log: LogLine[] = [];
    const tracing = await loadTracing({ version: '1.0.0', logger: recordingLogger(log), ...more });
    return { tracing, log };
  }

  afterEach(() => otel.trace.disable());

  it('gives nothing when nobody has registered a provider, and says nothing', async () => {
    assert.deepEqual(await load(), { tracing: undefined, log: [] });
  });

  it('gives a middleware when somebody has', async () => {
    otel.trace.setGlobalTracerProvider(new BasicTracerProvider());
    const { tracing, log } = await load();
    assert.equal(tracing?.middleware.name, 'serverSpan');
    assert.deepEqual(log, []);
  });

  it('finds a provider that another copy of the package knows', async () => {
    const { trace } = otel;
    const own = new BasicTracerProvider();
    const foreign = { ...otel, trace: Object.assign(Object.create(trace), { getTracerProvider: () => own }) };
    const { tracing } = await load({ load: async () => foreign });
    assert.notEqual(tracing, undefined);
  });

  it('asks no tracer for a span to find out', async () => {
    const started: unknown[] = [];
    const onStart = (span: unknown) => void started.push(span);
    const nothing = { onEnd() {}, forceFlush: async () => {}, shutdown: async () => {} };
    otel.trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors: [{ onStart, ...nothing }] }));
    await load();
    assert.deepEqual(started, []);
  });

  it('takes it for normal that the package is not there', async () => {
    const missing = await load({ load: () => import(absent('@opentelemetry/api')) });
    assert.deepEqual(missing, { tracing: undefined, log: [] });
  });

  it('says so when the package is there and cannot be loaded', async () => {
    for (const cause of [new SyntaxError('half a file'), await thrownBy(() => import(absent('something-else')))]) {
      const { tracing, log } = await load({ load: () => Promise.reject(cause) });
      assert.equal(tracing, undefined);
      assert.deepEqual(log, [
        { level: 'warn', fields: { err: cause }, message: 'OpenTelemetry cannot be loaded: there are no spans' },
      ]);
    }
  });
});

/** A module that needs a package which is not there, as Node itself puts it. */
function absent(name: string): string {
  return `data:text/javascript,${encodeURIComponent(nodeError(name))}`;
}

function nodeError(name: string): string {
  const message = `Cannot find package '${name}' imported from /app/dist/tracing/load-tracing.js`;
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
