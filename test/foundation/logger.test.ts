/** Loggers that wrap another one: their levels and their failures. */
import assert from 'node:assert/strict';
import { createSafeLogger, fromLevel, type Logger, silentLogger } from '#foundation';
import { call, desksOf, mappingRecord } from '../support/desks.ts';
import { testServers } from '../support/serve.ts';

const open = desksOf(testServers());

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
