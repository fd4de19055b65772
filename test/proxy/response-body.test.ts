/** Response bodies: buffering for slow clients, idle detection and order. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import fc from 'fast-check';
import { ResponseBody } from '../../src/proxy/response-body.ts';
import { createIdleTimer } from '../../src/proxy/time-limits.ts';
import { createDeferred } from '../support/waiting.ts';

const nothing = () => {};

describe('a response body', () => {
  it('is kept in a few buffers when it arrives byte by byte and the client does not read', async () => {
    const body = new ResponseBody(nothing, nothing);
    const byte = Buffer.from('x');
    for (let count = 0; count < 100; count += 1) body.write(byte);
    const stream = body.stream(createIdleTimer(0, nothing));
    for (let count = 0; count < 60_000; count += 1) body.write(byte);
    body.end([]);
    // Reads the chunks one by one, because toArray() would read the whole buffer as one.
    const chunks: Buffer[] = [];
    await once(
      stream.on('data', (chunk: Buffer) => chunks.push(chunk)),
      'end',
    );
    assert.equal(Buffer.concat(chunks).length, 60_100);
    assert.ok(chunks.length < 100, `${chunks.length} chunks`);
  });

  it('restarts the idle timer with each chunk that the client reads, until it is complete', async () => {
    let touches = 0;
    const touch = () => {
      touches += 1;
    };
    const body = new ResponseBody(nothing, nothing);
    const chunks = body.stream({ touch, stop: nothing })[Symbol.asyncIterator]();
    for (let count = 0; count < 8; count += 1) body.write(Buffer.alloc(4096));
    const beforeReading = touches;
    for (let count = 0; count < 4; count += 1) await chunks.next();
    assert.ok(touches >= beforeReading + 4, `${touches} after ${beforeReading}`);
    body.end([]);
    const beforeRest = touches;
    for (let count = 0; count < 5; count += 1) await chunks.next();
    assert.equal(touches, beforeRest);
  });

  for (const [what, waitedMs, expected] of [
    ['not read for five seconds', 5000, true],
    ['read more often', 4999, false],
  ] as const)
    it(`that is ${what} ${expected ? 'may' : 'can not'} be broken off because of that`, async () => {
      let nowMs = 0;
      const resumed = createDeferred();
      const body = new ResponseBody(resumed.resolve, nothing, () => nowMs);
      while (body.write(Buffer.alloc(4096)));
      nowMs += waitedMs;
      assert.equal(body.wasHeldUp(), expected);
      body.stream(createIdleTimer(0, nothing)).resume();
      await resumed.promise;
      nowMs += 100_000;
      assert.equal(body.wasHeldUp(), expected);
    });

  it('arrives completely and in order, whatever its chunks, and resumes after a pause', () =>
    fc.assert(
      fc.asyncProperty(
        fc.array(fc.oneof(fc.integer({ min: 1, max: 40 }), fc.integer({ min: 900, max: 70_000 })), {
          maxLength: 40,
        }),
        fc.nat(40),
        async (lengths, takenAfter) => {
          const chunks = lengths.map((length, index) => Buffer.alloc(length, index));
          let resume = nothing;
          const body = new ResponseBody(() => resume(), nothing);
          const send = async (some: readonly Buffer[]) => {
            for (const chunk of some) {
              const resumed = new Promise<void>((resolve) => {
                resume = resolve;
              });
              if (!body.write(chunk)) await resumed;
            }
          };
          const begun = send(chunks.slice(0, takenAfter));
          const arrived = body.stream(createIdleTimer(0, nothing)).toArray();
          await begun;
          await send(chunks.slice(takenAfter));
          body.end([]);
          assert.deepEqual(Buffer.concat(await arrived), Buffer.concat(chunks));
        },
      ),
    ));
});
