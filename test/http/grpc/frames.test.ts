/** Reading and writing the length-prefixed messages of gRPC bodies. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { createGrpcFrameReader, formatGrpcFrame, parseGrpcFrame } from '#http';

const anyFrame = fc
  .tuple(fc.constantFrom(0, 1, 128), fc.uint8Array({ maxLength: 40 }))
  .map(([flags, bytes]) => ({ flags, message: Buffer.from(bytes) }));

describe('the frame of a gRPC message', () => {
  it('has a byte of flags and the length before the message', () => {
    assert.deepEqual(formatGrpcFrame(Buffer.from('abc')), Buffer.from('\0\0\0\0\x03abc'));
    assert.deepEqual(formatGrpcFrame(Buffer.alloc(0), 128), Buffer.from([128, 0, 0, 0, 0]));
  });

  it('is parsed alone if it is uncompressed and complete', () => {
    assert.deepEqual(parseGrpcFrame(formatGrpcFrame(Buffer.from('abc'))), Buffer.from('abc'));
    for (const body of ['', '\0\0\0\0', '\x01\0\0\0\0', '\0\0\0\0\x02a', '\0\0\0\0\x01ab'])
      assert.equal(parseGrpcFrame(Buffer.from(body, 'latin1')), undefined);
  });
});

describe('a reader of gRPC frames', () => {
  it('returns every frame, however the bytes are split', () => {
    fc.assert(
      fc.property(fc.array(anyFrame, { maxLength: 6 }), fc.array(fc.nat(12), { minLength: 1 }), (frames, sizes) => {
        const bytes = Buffer.concat(frames.map(({ message, flags }) => formatGrpcFrame(message, flags)));
        const reader = createGrpcFrameReader(40);
        const read = [];
        for (let [at, turn] = [0, 0]; at < bytes.length; turn += 1) {
          const size = 1 + (sizes[turn % sizes.length] ?? 0);
          read.push(...(reader.read(bytes.subarray(at, at + size)) ?? []));
          at += size;
        }
        assert.deepEqual(read, frames);
        assert.ok(reader.isBetweenFrames());
      }),
    );
  });

  it('knows whether it is within a frame', () => {
    const reader = createGrpcFrameReader(10);
    assert.ok(reader.isBetweenFrames());
    reader.read(Buffer.from('\0\0\0\0\x03ab'));
    assert.ok(!reader.isBetweenFrames());
    reader.read(Buffer.from('c'));
    assert.ok(reader.isBetweenFrames());
  });

  it('returns undefined as soon as a frame announces a message beyond the bound, and from then on', () => {
    const reader = createGrpcFrameReader(10);
    assert.deepEqual(reader.read(formatGrpcFrame(Buffer.alloc(10)))?.length, 1);
    assert.deepEqual(reader.read(Buffer.from([0, 0, 0, 0])), []);
    assert.equal(reader.read(Buffer.from([11])), undefined);
    assert.equal(reader.read(Buffer.from('a')), undefined);
  });
});
