/** Reading and writing the length-prefixed messages of gRPC bodies. */
import assert from 'node:assert/strict';
import { formatGrpcFrame, parseGrpcFrame } from '#http';

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
