/** Loggers of a program that throw or reject, and what becomes of requests to a desk that has one. */
import assert from 'node:assert/strict';
import { createSafeLogger, type Logger } from '#http';
import { call, desksOf, mappingRecord } from '../../support/desks.ts';
import { testServers } from '../../support/serve.ts';

const fail = (): never => {
  throw new Error('the disk is full');
};
const failLater = async () => fail();

describe('a logger of a program', () => {
  const open = desksOf(testServers());

  it('gets the message again, with the reason, when it cannot write the fields', async () => {
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

  it('keeps what it lacks absent, and its own `this`', () => {
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
    it(`that ${what} ends neither a request nor the process`, async () => {
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
