/** Announced bodies, and the queue of their bytes: it preserves their order, and many small chunks use few buffers. */
import assert from 'node:assert/strict';
import { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import fc from 'fast-check';
import { ByteQueue, hasBody } from '#http';

function request(coding: string) {
  return Object.assign(new IncomingMessage(new Socket()), { headers: { 'transfer-encoding': coding } });
}

describe('hasBody', () => {
  it('rejects a transfer coding that Node lets through', () => {
    assert.equal(hasBody(request('Chunked'), 10), true);
    assert.throws(() => hasBody(request('gzip, chunked'), 10), { slug: 'bad-request' });
  });
});

describe('ByteQueue', () => {
  it('returns all bytes in order', () => {
    const lengths = fc.array(fc.oneof(fc.integer({ min: 0, max: 40 }), fc.integer({ min: 1000, max: 5000 })), {
      maxLength: 80,
    });
    fc.assert(
      fc.property(lengths, lengths, (...rounds) => {
        const queue = new ByteQueue();
        for (const round of rounds) {
          const chunks = round.map((length, index) => Buffer.alloc(length, index));
          for (const chunk of chunks) queue.add(chunk);
          const all = Buffer.concat(chunks);
          assert.equal(queue.length(), all.length);
          assert.deepEqual(Buffer.concat(queue.take()), all);
          assert.equal(queue.length(), 0);
        }
      }),
    );
  });

  it('stores 60,000 single bytes in a few buffers', () => {
    const queue = new ByteQueue();
    for (let count = 0; count < 60_000; count += 1) queue.add(Buffer.from('x'));
    assert.ok(queue.take().length < 40);
  });
});
