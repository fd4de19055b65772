/** Encoding and decoding of messages, compared with bytes written by hand from the public protocol. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import type { CurrentLimit, Decision, Descriptor } from '#ratelimit';
import { type Codec, loadCodec, type ProtocolName } from '../../../src/ratelimit/grpc/codec.ts';
import { descriptor } from '../../support/limits.ts';

const hex = (text: string) => Buffer.from(text, 'hex');

describe('the codec of the gRPC protocol', () => {
  let codecs: Readonly<Record<ProtocolName, Codec>>;

  before(async () => {
    codecs = { v3: await loadCodec('v3'), lyft: await loadCodec('lyft') };
  });

  const plain = descriptor('k=v');
  const own = { ...plain, limit: { requestsPerUnit: 5, unit: 'week' }, hitsAddend: 0 } as const;

  it('encodes a request with the fields of each version', () => {
    const check = (name: ProtocolName, descriptors: readonly Descriptor[], bytes: string) => {
      const request = { domain: 'd', descriptors, hitsAddend: 3 };
      assert.equal(codecs[name].encodeRequest(request).toString('hex'), `0a0164${bytes}1803`);
    };
    for (const name of ['v3', 'lyft'] as const) check(name, [plain], '1208' + '0a06' + '0a016b' + '120176');
    check('v3', [own], '1212' + '0a060a016b120176' + '1204' + '08051007' + '1a020800');
    check('lyft', [own], '1208' + '0a060a016b120176');
  });

  it('encodes a decision with the fields of each version', () => {
    const check = (name: ProtocolName, more: Partial<CurrentLimit>, bytes: string) => {
      const currentLimit: CurrentLimit = {
        requestsPerUnit: 5,
        unit: 'week',
        windowSeconds: 604_800,
        name: 'n',
        ...more,
      };
      const statuses = [{ code: 'OVER_LIMIT', currentLimit, limitRemaining: 4, resetSeconds: 9 }] as const;
      const decision: Decision = { overallCode: 'OVER_LIMIT', statuses };
      assert.equal(codecs[name].encodeDecision(decision).toString('hex'), `0802${bytes}`);
    };
    check('lyft', {}, '120a' + '0802' + '1204' + '08051007' + '1804');
    check('v3', {}, '1211' + '0802' + '1207' + '08051007' + '1a016e' + '1804' + '22020809');
    const thirtySeconds = { unit: 'second', unitMultiplier: 30, windowSeconds: 30 } as const;
    check('v3', thirtySeconds, '1215' + '0802' + '120b' + '08051001' + '1a016e' + '2202081e' + '1804' + '22020809');
  });

  it('encodes the response headers of a decision', () => {
    const responseHeaders = [{ name: 'a', value: 'b' }];
    const bytes = codecs.v3.encodeDecision({ overallCode: 'OK', statuses: [], responseHeaders });
    assert.equal(bytes.toString('hex'), '0801' + '1a06' + '0a0161' + '120162');
  });

  it('decodes a request with its defaults, and treats an unknown unit as absent', () => {
    const check = (name: ProtocolName, bytes: string, descriptors: readonly Descriptor[]) =>
      assert.deepEqual(codecs[name].decodeRequest(hex(`0a0164${bytes}`)), { domain: 'd', descriptors, hitsAddend: 0 });
    check('lyft', '', []);
    const limit = { requestsPerUnit: 5, unit: undefined };
    check('v3', '120e' + '0a060a016b120176' + '1204' + '08051063', [{ ...plain, limit }]);
  });

  it('encodes and decodes hits that are given back in both versions, and windows of several units in v3', () => {
    const check = (name: ProtocolName, own: object, bytes: string) => {
      const request = { domain: 'd', descriptors: [{ ...plain, ...own }], hitsAddend: 3 };
      const encoded = codecs[name].encodeRequest(request);
      assert.equal(encoded.toString('hex'), `0a0164${bytes}1803`);
      assert.deepEqual(codecs[name].decodeRequest(encoded), request);
    };
    for (const name of ['v3', 'lyft'] as const)
      check(name, { isNegativeHits: true }, '120a' + '0a060a016b120176' + '2001');
    const limit = { requestsPerUnit: 5, unit: 'minute', unitMultiplier: 5 };
    check('v3', { limit }, '1212' + '0a060a016b120176' + '1208' + '08051002' + '1a020805');
  });

  it('decodes a status with absent fields, unknown units and fractions of a second', () => {
    const check = (bytes: string, resetSeconds?: number) =>
      assert.deepEqual(codecs.v3.decodeDecision(hex(`0801${bytes}`)).statuses, [
        { code: 'OK', currentLimit: undefined, limitRemaining: 0, resetSeconds },
      ]);
    check('1200');
    check('1202' + '0800');
    check('1206' + '1204' + '08051063');
    check('1206' + '2204' + '08091001', 10);
    check('1202' + '2200', 0);
  });

  it('encodes lone surrogates as replacement characters, because other runtimes reject invalid UTF-8', () => {
    const bytes = codecs.v3.encodeRequest({ domain: 'd', descriptors: [descriptor('k=\ud800')] });
    assert.deepEqual(codecs.v3.decodeRequest(bytes).descriptors, [descriptor('k=\ufffd')]);
    assert.ok(bytes.includes('\ufffd'));
  });

  it('decodes a raw header value as Latin-1', () => {
    const { responseHeaders } = codecs.v3.decodeDecision(hex('0801' + '1a07' + '0a0161' + '1a02' + 'e462'));
    assert.deepEqual(responseHeaders, [{ name: 'a', value: 'äb' }]);
  });

  it('decodes a request with as many descriptors and entries as the bounds allow', () => {
    const entry = { key: 'k'.repeat(256), value: 'v'.repeat(16) };
    const entries = Array.from({ length: 32 }, () => entry);
    const full = { entries, limit: { requestsPerUnit: 1, unit: 'day' as const }, hitsAddend: 2 ** 32 };
    const request = { domain: 'd', descriptors: Array.from({ length: 64 }, () => full), hitsAddend: 2 };
    assert.deepEqual(codecs.v3.decodeRequest(codecs.v3.encodeRequest(request)), request);
  });

  const withLength = (tag: string, content: string) => {
    const length = content.length / 2;
    const bytes = [(length % 128) + 128, (Math.floor(length / 128) % 128) + 128, Math.floor(length / 16_384)];
    return tag + Buffer.from(bytes).toString('hex') + content;
  };
  const descriptors = '1200'.repeat(20_000);
  const entries = '0a00'.repeat(20_000);
  const excessive: Readonly<Record<string, string>> = {
    descriptors,
    entries: withLength('12', entries),
    domains: entries,
    'unknown fields': '7800'.repeat(20_000),
    'descriptors behind a field of another type': withLength('1a', descriptors),
    'descriptors behind a tag of 33 bits': withLength('9a80808010', descriptors),
    'entries behind a field of another type': withLength('12', `18020800${entries}`),
    'entries behind a flag of another type': withLength('12', withLength('22', entries)),
  };
  for (const [name, bytes] of Object.entries(excessive))
    it(`rejects a message with thousands of ${name} before it decodes them`, () => {
      const message = /^RangeError: the message (has too many fields|is malformed)/;
      assert.throws(() => codecs.v3.decodeRequest(hex(bytes)), message);
    });

  it('decodes arbitrary bytes or throws an Error', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 60 }), (noise) => {
        for (const decode of [codecs.v3.decodeRequest, codecs.v3.decodeDecision]) {
          try {
            decode(Buffer.from(noise));
          } catch (error) {
            assert.ok(error instanceof Error);
          }
        }
      }),
    );
  });
});
