/** Detection of an OpenTelemetry set-up at start-up. */
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
