/** The fields of protobuf messages, compared with the library protobufjs. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import protobuf, { type Writer } from 'protobufjs';
import { type ProtobufField, protobufContent, protobufFields, protobufNumber } from '#foundation';

const hex = (text: string) => Buffer.from(text, 'hex');

/** The same fields, as the library reads them. */
function fieldsOfLibrary(message: Uint8Array): readonly ProtobufField[] {
  const reader = protobuf.Reader.create(message);
  const fields: ProtobufField[] = [];
  while (reader.pos < reader.len) {
    const tag = reader.uint32();
    if (tag % 8 === 2) fields.push({ tag, content: Buffer.from(reader.bytes()), number: 0 });
    else if (tag % 8 === 0) fields.push({ tag, content: undefined, number: Number(reader.int64()) });
    else {
      reader.skipType(tag % 8);
      fields.push({ tag, content: undefined, number: 0 });
    }
  }
  return fields;
}

const fieldNumber = fc.integer({ min: 1, max: 2 ** 29 - 1 });

describe('protobufFields', () => {
  it('reads what the library writes, with any type, as the library reads it', () => {
    const int64 = fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }).map(String);
    const written = fc.oneof(
      fc.tuple(fc.constant(0), int64).map(([type, value]) => ({ type, write: (to: Writer) => to.uint64(value) })),
      fc.tuple(fc.constant(1), int64).map(([type, value]) => ({ type, write: (to: Writer) => to.fixed64(value) })),
      fc.uint8Array({ maxLength: 300 }).map((bytes) => ({ type: 2, write: (to: Writer) => to.bytes(bytes) })),
      fc.nat({ max: 2 ** 32 - 1 }).map((value) => ({ type: 5, write: (to: Writer) => to.fixed32(value) })),
    );
    fc.assert(
      fc.property(fc.array(fc.tuple(fieldNumber, written), { maxLength: 8 }), (fields) => {
        const writer = protobuf.Writer.create();
        for (const [number, { type, write }] of fields) write(writer.uint32(number * 8 + type));
        const message = writer.finish();
        assert.deepEqual(protobufFields(message), fieldsOfLibrary(message));
      }),
    );
  });

  it('reads arbitrary bytes like the library, or throws a RangeError', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 40 }), (noise) => {
        let fields: readonly ProtobufField[];
        try {
          fields = protobufFields(noise);
        } catch (error) {
          assert.ok(error instanceof RangeError);
          return;
        }
        assert.deepEqual(fields, fieldsOfLibrary(noise));
      }),
    );
  });

  it('reads numbers of 64 bits, negative ones too', () => {
    const numberOf = (bytes: string) => protobufFields(hex(`08${bytes}`))[0]?.number;
    assert.equal(numberOf('ffffffffffffffffff01'), -1);
    assert.equal(numberOf('8080808080808001'), 2 ** 49);
    assert.equal(numberOf('ffffffffffff7f'), 2 ** 49 - 1);
    assert.equal(numberOf('8000'), 0);
  });

  it('stops after as many fields as it may return', () => {
    assert.equal(protobufFields(hex('0a00'.repeat(5)), 3).length, 3);
    // What follows is not read.
    assert.equal(protobufFields(hex('0a00ff'), 1).length, 1);
  });

  const malformed: Readonly<Record<string, string>> = {
    'a tag without a value': '08',
    'a number that does not end': '0880',
    'a number of eleven bytes': '08ffffffffffffffffffff01',
    'content beyond the end': '0a0561',
    'content of a negative length': '0affffffffffffffffff01',
    'a fixed number beyond the end': '0d000000',
    'the field 0': '0200',
    'a tag of 33 bits': '888080801000',
    'a group': '0b0c',
    'the end of a group': '0c',
    'an unknown type': '0e00',
  };
  for (const [what, bytes] of Object.entries(malformed))
    it(`rejects ${what}`, () => assert.throws(() => protobufFields(hex(bytes)), RangeError));
});

describe('protobufContent and protobufNumber', () => {
  it('write fields that protobufFields reads', () => {
    fc.assert(
      fc.property(fieldNumber, fc.uint8Array({ maxLength: 300 }), fc.maxSafeNat(), (field, bytes, number) => {
        const message = Buffer.concat([protobufContent(field, bytes), protobufNumber(field, number)]);
        assert.deepEqual(protobufFields(message), [
          { tag: field * 8 + 2, content: Buffer.from(bytes), number: 0 },
          { tag: field * 8, content: undefined, number },
        ]);
      }),
    );
  });

  it('write text in UTF-8, and a lone surrogate as a replacement character', () => {
    assert.equal(protobufContent(1, 'é\ud800').toString('hex'), '0a05c3a9efbfbd');
  });
});
