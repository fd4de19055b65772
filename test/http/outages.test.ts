/** An outage is a line when it begins, one a minute with counts, and one when it has ended. */
import assert from 'node:assert/strict';
import { createOutageLog } from '#http';

describe('an outage', () => {
  const setUp = () => {
    const lines: string[] = [];
    let nowMs = 0;
    const write = (fields: object, message?: string) => void lines.push(`${message} ${JSON.stringify(fields)}`);
    const log = createOutageLog({ logger: { info: write, warn: write }, ended: 'it is back', clock: () => nowMs });
    const at = (ms: number, what: 'failed' | 'answered') => {
      nowMs = ms;
      if (what === 'failed') log.failed({ reason: 'refused' }, 'it is away');
      else log.answered();
    };
    return { lines, at };
  };

  it('of two and a half minutes with a request every 100 ms is four lines', () => {
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

  it('that comes and goes is one', () => {
    const { lines, at } = setUp();
    for (let ms = 0; ms < 30_000; ms += 100) at(ms, ms % 200 === 0 ? 'failed' : 'answered');
    assert.equal(lines.length, 1);
    at(40_000, 'answered');
    at(50_000, 'failed');
    assert.equal(lines.length, 3);
  });
});
