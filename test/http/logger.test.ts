import assert from 'node:assert/strict';
import { silentLogger } from '#http';

describe('silentLogger', () => {
  it('takes every line, says that no level is on, and cannot be changed', () => {
    for (const level of ['info', 'warn', 'error'] as const) silentLogger[level]({ a: 1 }, 'a line');
    assert.equal(silentLogger.isLevelEnabled?.('error'), false);
    assert.ok(Object.isFrozen(silentLogger));
  });
});
