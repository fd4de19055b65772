import assert from 'node:assert/strict';
import { createTraceIds } from '../../src/http/trace.ts';

describe('new ids', () => {
  it('are of 32 and 16 hexadecimal digits in lower case, and none comes twice', () => {
    const ids = createTraceIds();
    const made = Array.from({ length: 2000 }, () => [ids.traceId(), ids.spanId()]).flat();
    for (const [index, id] of made.entries()) assert.match(id, index % 2 === 0 ? /^[\da-f]{32}$/ : /^[\da-f]{16}$/);
    assert.equal(new Set(made).size, made.length);
  });

  it('take random bytes many at a time, and none of them twice', () => {
    let fetched = 0;
    const ids = createTraceIds((bytes) => {
      for (const index of bytes.keys()) bytes[index] = (index + fetched) % 251;
      fetched += bytes.length;
    });
    assert.equal(fetched, 0);
    assert.equal(ids.spanId(), '0001020304050607');
    assert.equal(ids.traceId(), '08090a0b0c0d0e0f1011121314151617');
    for (let made = 0; made < 170; made += 1) {
      ids.traceId();
      ids.spanId();
    }
    assert.equal(fetched, 2 * 4096);
  });

  it('are never all zero', () => {
    const ids = createTraceIds((bytes) => bytes.fill(0).fill(1, 64));
    assert.equal(ids.traceId(), '01'.repeat(16));
    assert.equal(ids.spanId(), '01'.repeat(8));
  });
});
