/** The encoding of `grpc-message`. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { decodeGrpcMessage, encodeGrpcMessage } from '#http';

const anyText = fc.string({ unit: 'binary', maxLength: 80 });

describe('grpc-message', () => {
  for (const [text, encoded] of [
    ['Not found: there is no such method.', 'Not found: there is no such method.'],
    ['100 %', '100 %25'],
    ['a\nb\x7f', 'a%0Ab%7F'],
    ['Grüße ☺', 'Gr%C3%BC%C3%9Fe %E2%98%BA'],
    ['\ud800', '%EF%BF%BD'],
    [' spaces are lost at the ends ', 'spaces are lost at the ends'],
  ] as const)
    it(`${JSON.stringify(text)} is encoded as ${encoded}`, () => {
      assert.equal(encodeGrpcMessage(text), encoded);
    });

  it('survives encoding and decoding', () => {
    fc.assert(
      fc.property(anyText, (text) => {
        const encoded = encodeGrpcMessage(text);
        assert.match(encoded, /^(?:[\x20-\x24\x26-\x7e]|%[\dA-F]{2})*$/);
        assert.equal(decodeGrpcMessage(encoded), text.trim());
      }),
    );
  });

  it('has up to 1,024 bytes, and is cut between characters', () => {
    assert.equal(encodeGrpcMessage('x'.repeat(2000)), 'x'.repeat(1024));
    assert.equal(encodeGrpcMessage('☺'.repeat(2000)), '%E2%98%BA'.repeat(113));
    fc.assert(
      fc.property(fc.string({ unit: 'binary', minLength: 200, maxLength: 2000 }), (text) => {
        const encoded = encodeGrpcMessage(text);
        assert.ok(encoded.length <= 1024);
        assert.ok(text.trim().startsWith(decodeGrpcMessage(encoded)));
      }),
    );
  });

  it('is never refused: what is not encoded correctly is kept', () => {
    for (const [encoded, text] of [
      ['100 %', '100 %'],
      ['%zz%41', '%zzA'],
      ['%4', '%4'],
      ['%c3%bc', 'ü'],
      ['%ff', '\ufffd'],
    ] as const)
      assert.equal(decodeGrpcMessage(encoded), text);
    fc.assert(fc.property(anyText, (text) => typeof decodeGrpcMessage(text) === 'string'));
  });
});
