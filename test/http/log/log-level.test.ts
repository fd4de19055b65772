/** The option `logLevel`, which restricts the logger of a program. */
import assert from 'node:assert/strict';
import { silentLogger } from '#http';
import { fromLevel } from '../../../src/http/log/log.ts';
import { call, desksOf, mappingRecord } from '../../support/desks.ts';
import { testServers } from '../../support/serve.ts';

type Level = 'debug' | 'info' | 'warn' | 'error' | 'silent';

describe('a desk with its own logger', () => {
  const open = desksOf(testServers());

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
