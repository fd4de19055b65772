/** Bytes on the wire: the field numbers of the public protocol, written by hand, and messages that read back as they were. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { windowSeconds } from '#config';
import type { Decision, RateLimitRequest } from '#ratelimit';
import { type Codec, loadCodec, type ProtocolName, unitsByNumber } from '../../../src/ratelimit/grpc/codec.ts';
import { descriptor } from '../../support/limits.ts';

const request: RateLimitRequest = { domain: 'd', descriptors: [descriptor('k=v')], hitsAddend: 3 };
const decision: Decision = {
  overallCode: 'OVER_LIMIT',
  statuses: [
    {
      code: 'OVER_LIMIT',
      currentLimit: { requestsPerUnit: 5, unit: 'week', windowSeconds: 604_800, name: 'n' },
      limitRemaining: 4,
      resetSeconds: 9,
    },
  ],
};

describe('the protocol', () => {
  let codecs: Readonly<Record<ProtocolName, Codec>>;
  const codecOf = (name: ProtocolName) => codecs[name];

  before(async () => {
    codecs = { v3: await loadCodec('v3'), lyft: await loadCodec('lyft') };
  });

  it('names its services and paths', () => {
    const check = (name: ProtocolName, service: string) =>
      assert.equal(codecOf(name).path, `/${service}/ShouldRateLimit`);
    check('v3', 'envoy.service.ratelimit.v3.RateLimitService');
    check('lyft', 'pb.lyft.ratelimit.RateLimitService');
  });

  it('writes a request alike in both packages', () => {
    const bytes = '0a0164' + '1208' + '0a06' + '0a016b' + '120176' + '1803';
    for (const name of ['v3', 'lyft'] as const)
      assert.equal(codecOf(name).encodeRequest(request).toString('hex'), bytes);
  });

  it('writes a decision with the fields that the package has', () => {
    const check = (name: ProtocolName, bytes: string) =>
      assert.equal(codecOf(name).encodeDecision(decision).toString('hex'), bytes);
    check('lyft', '0802' + '120a' + '0802' + '1204' + '08051007' + '1804');
    check('v3', '0802' + '1211' + '0802' + '1207' + '08051007' + '1a016e' + '1804' + '22020809');
  });

  it('carries the limit and the hits of a descriptor in v3, and leaves them out of the older package', () => {
    const own = { ...descriptor('k=v'), limit: { requestsPerUnit: 5, unit: 'week' as const }, hitsAddend: 0 };
    const asked: RateLimitRequest = { domain: 'd', descriptors: [own], hitsAddend: 1 };
    const v3 = codecOf('v3');
    const bytes = v3.encodeRequest(asked);
    assert.equal(
      bytes.toString('hex'),
      '0a0164' + '1212' + '0a060a016b120176' + '1204' + '08051007' + '1a020800' + '1801',
    );
    assert.deepEqual(v3.decodeRequest(bytes), asked);
    const lyft = codecOf('lyft');
    assert.deepEqual(lyft.decodeRequest(lyft.encodeRequest(asked)), {
      ...asked,
      descriptors: [descriptor('k=v')],
    });
  });

  it('reads a limit with an unknown unit as one without', () => {
    const bytes = Buffer.from('0a0164' + '120e' + '0a060a016b120176' + '1204' + '08051063', 'hex');
    assert.deepEqual(codecOf('v3').decodeRequest(bytes), {
      domain: 'd',
      descriptors: [{ ...descriptor('k=v'), limit: { requestsPerUnit: 5, unit: undefined } }],
      hitsAddend: 0,
    });
  });

  it('refuses to send a limit whose window has no field', () => {
    const limit = { requestsPerUnit: 5, unit: 'second' as const, unitMultiplier: 30 };
    assert.throws(
      () => codecOf('v3').encodeRequest({ domain: 'd', descriptors: [{ ...descriptor('k=v'), limit }] }),
      /unit_multiplier cannot be sent/,
    );
  });

  it('carries in v3 how many units a window has', () => {
    const { encodeDecision, decodeDecision } = codecOf('v3');
    const currentLimit = {
      requestsPerUnit: 5,
      unit: 'second',
      unitMultiplier: 30,
      windowSeconds: 30,
      name: 'n',
    } as const;
    const status = { code: 'OK', currentLimit, limitRemaining: 4, resetSeconds: 9 } as const;
    const answer: Decision = { overallCode: 'OK', statuses: [status] };
    assert.deepEqual(decodeDecision(encodeDecision(answer)), answer);
    assert.ok(
      encodeDecision(answer)
        .toString('hex')
        .includes('1a016e' + '2202081e'),
    );
  });

  it('carries headers for the client in v3', () => {
    const { encodeDecision, decodeDecision } = codecOf('v3');
    const answer: Decision = {
      overallCode: 'OK',
      statuses: [],
      responseHeaders: [{ name: 'RateLimit-Limit', value: '5' }],
    };
    assert.deepEqual(decodeDecision(encodeDecision(answer)), answer);
  });

  it('reads a request of an older client with its defaults', () => {
    const { decodeRequest } = codecOf('lyft');
    assert.deepEqual(decodeRequest(Buffer.from('0a0164', 'hex')), {
      domain: 'd',
      descriptors: [],
      hitsAddend: 0,
    });
  });

  it('reads a status with absent fields, unknown units and fractions of seconds', () => {
    const { decodeDecision } = codecOf('v3');
    const check = (bytes: string, expected: object) => {
      const [status] = decodeDecision(Buffer.from(`0801${bytes}`, 'hex')).statuses;
      assert.deepEqual(status, {
        code: 'OK',
        currentLimit: undefined,
        limitRemaining: 0,
        resetSeconds: undefined,
        ...expected,
      });
    };
    check('1200', {});
    check('1202' + '0800', {});
    check('1206' + '1204' + '08051063', {});
    check('1206' + '2204' + '08091001', { resetSeconds: 10 });
    check('1202' + '2200', { resetSeconds: 0 });
  });

  it('refuses an answer without a decision', () => {
    const { decodeDecision } = codecOf('v3');
    assert.throws(() => decodeDecision(Buffer.alloc(0)), /overall_code is UNKNOWN/);
    assert.throws(() => decodeDecision(Buffer.from('0a', 'hex')));
  });

  it('writes lone surrogates as replacement characters: other runtimes refuse invalid UTF-8', () => {
    const bytes = codecOf('v3').encodeRequest({ domain: 'd', descriptors: [descriptor('k=\ud800')] });
    assert.deepEqual(codecOf('v3').decodeRequest(bytes).descriptors, [descriptor('k=\ufffd')]);
    assert.ok(bytes.includes('\ufffd'));
  });

  it('reads the bytes of a raw header value as Latin-1', () => {
    const header = '0a0161' + '1a02' + 'e462';
    const { responseHeaders } = codecOf('v3').decodeDecision(Buffer.from(`0801${'1a07'}${header}`, 'hex'));
    assert.deepEqual(responseHeaders, [{ name: 'a', value: 'äb' }]);
  });

  const text = fc.string({ unit: 'binary' });
  const uint32 = fc.oneof(fc.nat(300), fc.nat(4_294_967_295));
  const unit = fc.constantFrom(...unitsByNumber.filter((one) => one !== undefined));
  const all = { noNullPrototype: true } as const;
  const own = fc.record({ requestsPerUnit: uint32, unit }, all);
  const entries = fc.array(fc.record({ key: text, value: text }, all), { maxLength: 4 });
  const ownDescriptor = fc.record(
    { entries, limit: own, hitsAddend: fc.maxSafeNat() },
    { ...all, requiredKeys: ['entries'] },
  );
  const anyRequest = fc.record({ domain: text, descriptors: fc.array(ownDescriptor), hitsAddend: uint32 }, all);
  const currentLimit = fc
    .record({ requestsPerUnit: uint32, unit, unitMultiplier: fc.integer({ min: 1, max: 1_000 }), name: text }, all)
    .map(({ unitMultiplier, name, ...limit }) => ({
      ...limit,
      ...(unitMultiplier > 1 && { unitMultiplier }),
      windowSeconds: windowSeconds({ unit: limit.unit, unitMultiplier }),
      name: name || undefined,
    }));
  const status = fc.record(
    {
      code: fc.constantFrom('OK' as const, 'OVER_LIMIT' as const),
      currentLimit: fc.option(currentLimit, { nil: undefined }),
      limitRemaining: uint32,
      resetSeconds: fc.option(uint32, { nil: undefined }),
    },
    all,
  );
  const header = fc.record({ name: text, value: text }, all);
  const anyDecision = fc.record(
    {
      overallCode: fc.constantFrom('OK' as const, 'OVER_LIMIT' as const),
      statuses: fc.array(status, { maxLength: 5 }),
      responseHeaders: fc.array(header, { minLength: 1, maxLength: 4 }),
    },
    all,
  );

  it('reads what it wrote, and skips fields that it does not know', () => {
    const unknown = Buffer.from('fa0703616263', 'hex');
    const { encodeRequest, decodeRequest, encodeDecision, decodeDecision } = codecOf('v3');
    const more = (bytes: Buffer) => Buffer.concat([unknown, bytes, unknown]);
    fc.assert(fc.property(anyRequest, (one) => assert.deepEqual(decodeRequest(more(encodeRequest(one))), one)));
    fc.assert(fc.property(anyDecision, (one) => assert.deepEqual(decodeDecision(more(encodeDecision(one))), one)));
  });

  it('reads or throws an Error, whatever the bytes', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 60 }), (noise) => {
        for (const decode of [codecOf('v3').decodeRequest, codecOf('v3').decodeDecision]) {
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
