/** Loggers: their levels, their failures, the ids in the lines of a request, and lines about outages. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import Koa, { type Context } from 'koa';
import request from 'supertest';
import {
  createAddresses,
  createOncePerMinute,
  createOutageLog,
  createProblemResponses,
  createRequestContext,
  createSafeLogger,
  type Logger,
  problem,
  requestContext,
  silentLogger,
} from '#http';
import { fromLevel, logRequest } from '../../../src/http/log/log.ts';
import { authRecord, call, desksOf, limitRecord, mappingRecord } from '../../support/desks.ts';
import { type LogLine, recordingLogger } from '../../support/edge.ts';
import { testServers } from '../../support/serve.ts';
import { replaceFile, temporaryFiles, yamlOf } from '../../support/temporary-files.ts';

const servers = testServers();
const open = desksOf(servers);

const fail = (): never => {
  throw new Error('the disk is full');
};
const failLater = async () => fail();

describe('createSafeLogger', () => {
  it('logs the message again with the reason if the fields cannot be written', async () => {
    for (const isAsync of [false, true]) {
      const lines: string[] = [];
      const write = (fields: object, message?: string) => void lines.push(JSON.stringify({ ...fields, message }));
      const level = isAsync ? async (...line: Parameters<typeof write>) => write(...line) : write;
      const logger = createSafeLogger({ info: level, warn: level, error: level, debug: level });
      for (const name of ['info', 'warn', 'error', 'debug'] as const) logger[name]?.({ bytes: 5n }, name);
      await Promise.resolve();
      const loggerFailed = 'Do not know how to serialize a BigInt';
      assert.deepEqual(
        lines.map((line) => JSON.parse(line)),
        ['info', 'warn', 'error', 'debug'].map((message) => ({ loggerFailed, message })),
      );
    }
  });

  it('adds no methods that the logger lacks, and preserves `this`', () => {
    const plain = { info() {}, warn() {}, error() {} };
    assert.deepEqual(Object.keys(createSafeLogger(plain)), ['info', 'warn', 'error']);
    class Own {
      level = 'warn';
      info() {}
      warn() {}
      error() {}
      isLevelEnabled(level: string) {
        return level === this.level;
      }
    }
    assert.equal(createSafeLogger(new Own()).isLevelEnabled?.('warn'), true);
  });

  for (const [what, write] of [
    ['throws', fail],
    ['rejects', failLater],
  ] as const)
    it(`protects requests and the process from a logger that ${what}`, async () => {
      const logger: Logger = { info: write, warn: write, error: write };
      const records = [mappingRecord('own', '/own', 'own'), mappingRecord('down', '/down', 'http://127.0.0.1:1')];
      const own = () => fail();
      const unhandled: unknown[] = [];
      const listener = (reason: unknown) => void unhandled.push(reason);
      process.on('unhandledRejection', listener);
      const desk = await open({ demo: false, config: { records }, services: { own }, logger });
      await call(desk, '/own').expect(500);
      await call(desk, '/down').expect(503);
      await call(desk, '/none').expect(404);
      process.off('unhandledRejection', listener);
      assert.deepEqual(unhandled, []);
    });
});

type Level = 'debug' | 'info' | 'warn' | 'error' | 'silent';

describe('a desk with its own logger', () => {
  /** Returns the levels of a warning about the configuration, an error, and the access log. */
  async function levelsOf(logLevel: Level | undefined, more: object = {}): Promise<readonly string[]> {
    const levels: string[] = [];
    const at = (level: string) => () => void levels.push(level);
    const logger = { info: at('info'), warn: at('warn'), error: at('error'), debug: at('debug'), ...more };
    const config = { records: [mappingRecord('own', '/own', 'own')] };
    const own = () => {
      throw new Error('broken');
    };
    const desk = await open({ demo: false, config, services: { own, unused: own }, logger, logLevel });
    await call(desk, '/own').expect(500);
    return levels;
  }

  const all = ['warn', 'error', 'info'];
  const expected: readonly (readonly [Level | undefined, readonly string[]])[] = [
    [undefined, all],
    ['debug', all],
    ['info', all],
    ['warn', ['warn', 'error']],
    ['error', ['error']],
    ['silent', []],
  ];
  for (const [logLevel, levels] of expected)
    it(`logs ${levels.join(', ') || 'nothing'} with logLevel ${logLevel}`, async () => {
      assert.deepEqual(await levelsOf(logLevel), levels);
    });

  it('logs no levels that the logger turns off, whatever logLevel is', async () => {
    const isLevelEnabled = (level: string) => level === 'warn';
    assert.deepEqual(await levelsOf('info', { isLevelEnabled }), ['warn']);
  });

  it('passes debug lines on only with logLevel debug', () => {
    const debug = () => {};
    for (const level of ['debug', 'info'] as const)
      assert.equal(fromLevel({ ...silentLogger, debug }, level).debug, level === 'debug' ? debug : undefined);
  });

  it('applies logLevel to the faster functions of the logger, too', async () => {
    const seen: string[] = [];
    const infoPlain = () => void seen.push('info');
    for (const logLevel of ['info', 'warn'] as const) await levelsOf(logLevel, { infoPlain });
    assert.deepEqual(seen, ['info']);
  });
});

const traceId = '0af7651916cd43dd8448eb211c80319c';
const ids = { 'X-Request-Id': 'one', traceparent: `00-${traceId}-b7ad6b7169203331-00` };

describe('logRequest', () => {
  async function during(run: (ctx: Context) => void): Promise<void> {
    const app = new Koa().use(createRequestContext(createAddresses())).use((ctx) => {
      run(ctx);
      ctx.status = 204;
    });
    await request(app.callback()).get('/').set(ids).expect(204);
  }

  it('begins each line with the ids of the request and its trace', async () => {
    const lines: LogLine[] = [];
    await during((ctx) => logRequest(recordingLogger(lines), 'warn', ctx, { reason: 'late' }, 'no answer'));
    const fields = { requestId: 'one', traceId, reason: 'late' };
    assert.deepEqual(lines, [{ level: 'warn', fields, message: 'no answer' }]);
  });

  it('does not create a trace when the level is off', async () => {
    const logger: Logger = { ...silentLogger, warn: () => assert.fail('written') };
    await during((ctx) => {
      logRequest(logger, 'warn', ctx, {}, 'no answer');
      assert.equal(requestContext(ctx).trace, undefined);
    });
  });
});

describe('createOutageLog', () => {
  const setUp = () => {
    const lines: string[] = [];
    let nowMs = 0;
    const write = (fields: object, message?: string) => void lines.push(`${message} ${JSON.stringify(fields)}`);
    const log = createOutageLog({ logger: { info: write, warn: write }, ended: 'it is back', clock: () => nowMs });
    const at = (ms: number, what: 'failed' | 'answered', fields: object = { reason: 'refused' }) => {
      nowMs = ms;
      if (what === 'failed') log.failed(fields, 'it is away');
      else log.answered();
    };
    return { lines, at };
  };

  it('logs four lines for an outage of two and a half minutes with a failure every 100 ms', () => {
    const { lines, at } = setUp();
    at(0, 'answered');
    for (let ms = 1000; ms < 151_000; ms += 100) at(ms, 'failed');
    for (let ms = 151_000; ms < 170_000; ms += 100) at(ms, 'answered');
    assert.deepEqual(lines, [
      'it is away {"reason":"refused"}',
      'it is away {"reason":"refused","failures":601,"forMs":60000}',
      'it is away {"reason":"refused","failures":1201,"forMs":120000}',
      'it is back {"failures":1500,"forMs":149900}',
    ]);
  });

  it('logs a new cause at once, and each cause once a minute', () => {
    const { lines, at } = setUp();
    const cause = (text: string, around = 'no decision') => ({ err: new Error(around, { cause: new Error(text) }) });
    at(0, 'failed', cause('connect ECONNREFUSED'));
    at(1, 'failed', cause('connect ECONNREFUSED', 'not tried'));
    at(2, 'failed', cause('WRONGPASS'));
    at(3, 'failed', cause('connect ECONNREFUSED'));
    at(4, 'failed', { reason: 'it responded with 500' });
    for (const ms of [5, 59_999]) at(ms, 'failed', cause('WRONGPASS'));
    at(60_000, 'failed', cause('WRONGPASS'));
    assert.deepEqual(
      lines.map((line) => JSON.parse(line.slice('it is away '.length))).map(({ failures }) => failures),
      [undefined, 3, 5, 8],
    );
  });

  it('logs few lines a minute, however many causes there are', () => {
    const { lines, at } = setUp();
    for (let index = 0; index < 1_000; index += 1) at(index, 'failed', { reason: `port ${index} is closed` });
    assert.equal(lines.length, 1, 'numbers make no new cause');
    for (let index = 0; index < 26; index += 1) at(2_000, 'failed', { reason: 'x'.repeat(index + 1) });
    assert.equal(lines.length, 8);
    at(60_000, 'failed');
    at(60_001, 'failed', { reason: 'x' });
    assert.equal(lines.length, 10);
  });

  it('treats an intermittent failure as one outage', () => {
    const { lines, at } = setUp();
    for (let ms = 0; ms < 30_000; ms += 100) at(ms, ms % 200 === 0 ? 'failed' : 'answered');
    assert.equal(lines.length, 1);
    at(40_000, 'answered');
    at(50_000, 'failed');
    assert.equal(lines.length, 3);
  });
});

it('createOncePerMinute returns true immediately and then once a minute', () => {
  let nowMs = 0;
  const isDue = createOncePerMinute(() => nowMs);
  const due = [0, 1, 59_999, 60_000, 60_001, 200_000].filter((atMs) => {
    nowMs = atMs;
    return isDue();
  });
  assert.deepEqual(due, [0, 60_000, 200_000]);
});

describe('requests that fail because of one outage', () => {
  const writeFiles = temporaryFiles();
  let lines: string[];
  const warn = (fields: object, message?: string) => {
    const { redis, mapping } = fields as { redis?: string; mapping?: string };
    lines.push(`${message} ${mapping ?? (redis && 'redis')}`);
  };
  const logger = { info() {}, warn, error: warn };

  beforeEach(() => {
    lines = [];
  });

  it('are logged once for several mappings of a service', async () => {
    const { port } = await servers.refusing();
    const unguarded = { bypass_auth: true };
    const records = [
      mappingRecord('one', '/one', `http://127.0.0.1:${port}`, unguarded),
      mappingRecord('two', '/two', `127.0.0.1:${port}`, unguarded),
      mappingRecord('deep', '/deep', `http://127.0.0.1:${port}`, { ...unguarded, timeout_ms: 999 }),
      mappingRecord('other', '/other', `http://127.0.0.1:${(await servers.refusing()).port}`, unguarded),
    ];
    const desk = await open({ config: { records }, only: ['gateway'], logger });
    for (const path of ['/one', '/two', '/deep', '/one', '/other']) await call(desk, path).expect(503);
    const away = 'The service behind the gateway could not be reached.';
    assert.deepEqual(lines, [`${away} one`, `${away} other`]);
  });

  it('are logged with the service, the address that was tried last and the record', async () => {
    const logged: Record<string, unknown>[] = [];
    const warn = (fields: object) => void logged.push({ ...fields });
    const [upstream, auth, limiter] = [await servers.refusing(), await servers.refusing(), await servers.refusing()];
    const askers = [
      { ...authRecord, auth_service: auth.origin, failure_mode_allow: true },
      { ...limitRecord, service: `grpc://127.0.0.1:${limiter.port}` },
    ];
    const labels = { gateway: [{ all: [{ generic_key: 'all' }] }] };
    const records = [mappingRecord('one', '/one', 'http://rooms', { labels }), ...askers];
    const serviceAddresses = { rooms: `127.0.0.1:${upstream.port}` };
    const desk = await open({
      ...{ config: { records }, only: ['gateway'], serviceAddresses },
      logger: { info() {}, warn, error: warn },
    });
    await call(desk, '/one').expect(503);
    const found = logged.filter(({ mapping }) => mapping === 'one');
    assert.deepEqual(
      found.map(({ record, service, upstream }) => ({ record, service, upstream })),
      [
        { record: 'auth', service: auth.origin, upstream: undefined },
        { record: 'limits', service: `grpc://127.0.0.1:${limiter.port}`, upstream: undefined },
        { record: undefined, service: 'rooms:80', upstream: upstream.origin },
      ],
    );
  });

  it('are logged once across reloads while a record names the auth or rate-limit service', async () => {
    const away = async () => `127.0.0.1:${(await servers.refusing()).port}`;
    const askers = [
      { ...authRecord, auth_service: await away(), failure_mode_allow: true },
      { ...limitRecord, service: `grpc://${await away()}` },
    ];
    const mapping = (rewrite: string) =>
      mappingRecord('one', '/one', 'own', { rewrite, labels: { gateway: [{ all: ['remote_address'] }] } });
    const config = await writeFiles({ 'services/one.yaml': yamlOf(mapping('/a'), ...askers) });
    const own = async (ctx: Context) => {
      ctx.body = 'ok';
    };
    const desk = await open({ config, services: { own }, only: ['gateway'], logger });
    const meet = async (...records: object[]) => {
      await replaceFile(join(config, 'services/one.yaml'), yamlOf(...records));
      await desk.reload();
      lines = [];
      await call(desk, '/one').expect(200);
      return lines;
    };
    const first = ['the rate-limit service returned no decision one', 'the auth service returned no decision one'];
    assert.deepEqual(await meet(mapping('/a'), ...askers), first);
    assert.deepEqual(await meet(mapping('/b'), ...askers), []);
    assert.deepEqual(await meet(mapping('/b')), []);
    assert.deepEqual(await meet(mapping('/b'), ...askers), first);
  });

  it('are logged once across reloads while a record names the service', async () => {
    const ports = { one: (await servers.refusing()).port, two: (await servers.refusing()).port };
    type Name = keyof typeof ports;
    const yaml = (names: readonly Name[]) =>
      yamlOf(
        ...names.map((name) => mappingRecord(name, `/${name}`, `127.0.0.1:${ports[name]}`, { bypass_auth: true })),
      );
    const config = await writeFiles({ 'services/all.yaml': yaml(['one', 'two']) });
    const desk = await open({ config, only: ['gateway'], logger });
    const meet = async (...names: Name[]) => {
      await replaceFile(join(config, 'services/all.yaml'), yaml(names));
      await desk.reload();
      lines = [];
      for (const name of names) await call(desk, `/${name}`).expect(503);
      return lines;
    };
    const away = 'The service behind the gateway could not be reached.';
    assert.deepEqual(await meet('one', 'two'), [`${away} one`, `${away} two`]);
    assert.deepEqual(await meet('one'), []);
    assert.deepEqual(await meet('one', 'two'), [`${away} two`]);
  });

  it('are logged once if Redis is unavailable and requests are denied because of it', async () => {
    const redisUrl = `redis://127.0.0.1:${(await servers.refusing()).port}`;
    const more = { bypass_auth: true, labels: { gateway: [{ group: [{ k: { header: 'x-k' } }] }] } };
    const records = [
      mappingRecord('one', '/one', 'http://127.0.0.1:1', more),
      { ...limitRecord, failure_mode_deny: true },
    ];
    const limits = [
      { domain: 'gateway', descriptors: [{ key: 'k', rate_limit: { unit: 'day', requests_per_unit: 1 } }] },
    ];
    const settings = { redisUrl, ratelimitFailOpen: false, only: ['gateway', 'ratelimit'] as const };
    const desk = await open({ config: { records, limits }, ...settings, logger });
    for (let sent = 0; sent < 3; sent += 1) await call(desk, '/one').expect(503);
    assert.deepEqual(lines, ['hits cannot be counted in Redis: requests are not decided redis']);
  });

  it('are logged once if in-process services cannot reach the database', async () => {
    const app = new Koa().use(createProblemResponses({ logger })).use((ctx) => {
      Object.assign(requestContext(ctx), { mapping: ctx.path, service: ctx.path });
      throw problem('storage-unavailable');
    });
    for (const path of ['/hotel', '/car', '/hotel']) await request(app.callback()).get(path).expect(503);
    assert.deepEqual(lines, ['The database could not be used. /hotel']);
  });
});
