/** Frames of gRPC: written and read back, and refused when they are not whole. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { formatFrame, parseFrame } from '../../src/ratelimit/grpc-frame.ts';

describe('a frame', () => {
  it('is read back as it was written', () => {
    fc.assert(
      fc.property(fc.uint8Array(), (message) =>
        assert.deepEqual(parseFrame(formatFrame(message)), Buffer.from(message)),
      ),
    );
  });

  it('is refused when it is compressed, cut short, too long or no frame', () => {
    const check = (...bytes: number[]) => assert.equal(parseFrame(Buffer.from(bytes)), undefined);
    check();
    check(0, 0, 0, 0);
    check(1, 0, 0, 0, 1, 7);
    check(0, 0, 0, 0, 2, 7);
    check(0, 0, 0, 0, 1, 7, 7);
    check(0, 0xff, 0xff, 0xff, 0xff, 7);
  });
});
