/** Lines about outages: how often they are logged. */
import assert from 'node:assert/strict';
import { createOncePerMinute, createOutageLog } from '#foundation';

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
