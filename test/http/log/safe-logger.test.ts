/** Loggers that throw or reject, alone and in a running desk. */
import assert from 'node:assert/strict';
import { createSafeLogger, type Logger } from '#http';
import { call, desksOf, mappingRecord } from '../../support/desks.ts';
import { testServers } from '../../support/serve.ts';

const fail = (): never => {
  throw new Error('the disk is full');
};
const failLater = async () => fail();

describe('createSafeLogger', () => {
  const open = desksOf(testServers());

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
