/** Our reading and writing of the protocol beside a generic codec's, on messages nobody thought of. */
import assert from 'node:assert/strict';
import { fileURLToPath } from 'node:url';
import { loadSync, type MethodDefinition } from '@grpc/proto-loader';
import fc from 'fast-check';
import { windowSeconds } from '#config';
import type { Decision, RateLimitRequest } from '#ratelimit';
import { createProtocol, type ProtocolName } from '../../src/ratelimit/protocol.ts';
import { wireUnits } from '../../src/ratelimit/wire-units.ts';

const names = ['v3', 'lyft'] as const satisfies readonly ProtocolName[];

function codecsOf(name: ProtocolName) {
  const { file, service, requests, decisions } = createProtocol(name);
  const includeDirs = [fileURLToPath(new URL('../../proto', import.meta.url))];
  const services = loadSync(file, { includeDirs, longs: Number, defaults: true, arrays: true });
  const generic = (services[service] as Record<string, MethodDefinition<object, object>>)['ShouldRateLimit'];
  assert.ok(generic !== undefined);
  return {
    generic,
    encodeRequest: requests.format,
    decodeDecision: decisions.parse,
    decodeRequest: requests.parse,
    encodeDecision: decisions.format,
  };
}

const codecs = { v3: codecsOf('v3'), lyft: codecsOf('lyft') };

/** Plain objects, as ours are. */
const plain = { noNullPrototype: true };

const uint32 = fc.oneof(fc.constantFrom(0, 1, 127, 128, 4_294_967_295), fc.nat(100_000));
const text = fc.oneof(fc.string({ maxLength: 20 }), fc.string({ unit: 'binary', maxLength: 400 }));
const unit = fc.constantFrom(...(Object.keys(wireUnits) as (keyof typeof wireUnits)[]));
const entry = fc.record({ key: text, value: text }, plain);
const descriptor = fc.record(
  {
    entries: fc.array(entry, { maxLength: 4 }),
    limit: fc.record({ requestsPerUnit: uint32, unit }, plain),
    hitsAddend: fc.oneof(uint32, fc.maxSafeNat()),
  },
  { ...plain, requiredKeys: ['entries'] },
);
const request = fc.record(
  { domain: text, descriptors: fc.array(descriptor, { maxLength: 5 }), hitsAddend: uint32 },
  plain,
);

const currentLimit = fc
  .record({
    requestsPerUnit: uint32,
    unit,
    unitMultiplier: fc.integer({ min: 1, max: 5_000 }),
    name: fc.option(text, { nil: undefined }),
  })
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
    resetSeconds: fc.option(fc.oneof(uint32, fc.maxSafeNat()), { nil: undefined }),
  },
  plain,
);
const decision = fc.record(
  {
    overallCode: fc.constantFrom('OK' as const, 'OVER_LIMIT' as const),
    statuses: fc.array(status, { maxLength: 5 }),
    responseHeaders: fc.array(fc.record({ name: text, value: text }, plain), { minLength: 1, maxLength: 4 }),
  },
  { ...plain, requiredKeys: ['overallCode', 'statuses'] },
);

/** Fields that no version of the messages has: every way to write one, a group in a group among them. */
const strangers = fc.constantFrom(
  ...['8001ffffffffffffffffff01', '81010203040506070809', '820103616263', '8301830184018401', '850101020304'],
);
const sprinkled = (bytes: Buffer, hex: readonly string[]) => Buffer.concat([...hex.map(fromHex), bytes]);
const fromHex = (hex: string) => Buffer.from(hex, 'hex');

const wireUnitOf = (name: keyof typeof wireUnits) => wireUnits[name];

function genericRequest({ descriptors, ...rest }: RateLimitRequest): object {
  return {
    ...rest,
    descriptors: descriptors.map(({ entries, limit, hitsAddend }) => ({
      entries,
      limit: limit?.unit && { requestsPerUnit: limit.requestsPerUnit, unit: wireUnitOf(limit.unit) },
      hitsAddend: hitsAddend === undefined ? undefined : { value: hitsAddend },
    })),
  };
}

function genericDecision({ overallCode, statuses, responseHeaders = [] }: Decision): object {
  return {
    overallCode,
    statuses: statuses.map(({ code, currentLimit: limit, limitRemaining, resetSeconds }) => ({
      code,
      currentLimit: limit && {
        requestsPerUnit: limit.requestsPerUnit,
        unit: wireUnitOf(limit.unit),
        name: limit.name,
        unitMultiplier: limit.unitMultiplier === undefined ? undefined : { value: limit.unitMultiplier },
      },
      limitRemaining,
      durationUntilReset: resetSeconds === undefined ? undefined : { seconds: resetSeconds },
    })),
    responseHeadersToAdd: responseHeaders.map(({ name, value }) => ({ key: name, value })),
    // v3 has them, and we do not read them.
    rawBody: Buffer.from('body'),
    requestHeadersToAdd: [{ key: 'a', value: 'b' }],
  };
}

/** What the older package has no field for. */
const plainRequest = (asked: RateLimitRequest): RateLimitRequest => ({
  ...asked,
  descriptors: asked.descriptors.map(({ entries }) => ({ entries })),
});
const plainDecision = ({ overallCode, statuses }: Decision): Decision => ({
  overallCode,
  statuses: statuses.map(({ currentLimit: limit, ...rest }) => ({
    ...rest,
    resetSeconds: undefined,
    currentLimit: limit && {
      requestsPerUnit: limit.requestsPerUnit,
      unit: limit.unit,
      windowSeconds: windowSeconds({ unit: limit.unit, unitMultiplier: 1 }),
      name: undefined,
    },
  })),
});

describe('the bytes of the protocol', () => {
  for (const name of names) {
    const { generic, ...own } = codecs[name];
    const requestWith = name === 'v3' ? (asked: RateLimitRequest) => asked : plainRequest;
    const decisionWith = name === 'v3' ? (told: Decision) => told : plainDecision;

    it(`read a request of ${name} as a generic codec wrote it, and skip what nobody knows`, () => {
      fc.assert(
        fc.property(request, fc.array(strangers, { maxLength: 3 }), (asked, hex) => {
          const bytes = sprinkled(generic.requestSerialize(genericRequest(asked)), hex);
          assert.deepEqual(own.decodeRequest(bytes), requestWith(asked));
        }),
      );
    });

    it(`write a request of ${name} as a generic codec reads it`, () => {
      fc.assert(
        fc.property(request, (asked) => {
          const read = generic.requestDeserialize(own.encodeRequest(asked));
          const expected = generic.requestDeserialize(generic.requestSerialize(genericRequest(asked)));
          assert.deepEqual(read, expected);
        }),
      );
    });

    it(`read an answer of ${name} as a generic codec wrote it, and skip what nobody knows`, () => {
      fc.assert(
        fc.property(decision, fc.array(strangers, { maxLength: 3 }), (told, hex) => {
          const bytes = sprinkled(generic.responseSerialize(genericDecision(told)), hex);
          assert.deepEqual(own.decodeDecision(bytes), decisionWith(told));
        }),
      );
    });

    it(`write an answer of ${name} as a generic codec reads it`, () => {
      fc.assert(
        fc.property(decision, (told) => {
          const bytes = own.encodeDecision(told);
          assert.deepEqual(own.decodeDecision(bytes), decisionWith(told));
          const { rawBody, requestHeadersToAdd, ...wire } = genericDecision(told) as Record<string, unknown>;
          assert.deepEqual(
            generic.responseDeserialize(bytes),
            generic.responseDeserialize(generic.responseSerialize(wire)),
          );
        }),
      );
    });
  }

  it('refuse a message that is cut short anywhere but between two fields', () => {
    fc.assert(
      fc.property(request, fc.nat(), (asked, where) => {
        const bytes = codecs.v3.encodeRequest(asked);
        const cut = bytes.subarray(0, where % (bytes.length + 1));
        let read: RateLimitRequest;
        try {
          read = codecs.v3.decodeRequest(cut);
        } catch (error) {
          assert.ok(error instanceof RangeError);
          return;
        }
        // What is left is a message of its own: the same as far as it goes.
        assert.deepEqual(read.descriptors, asked.descriptors.slice(0, read.descriptors.length));
      }),
    );
  });

  it('never do anything but read or throw, whatever the bytes', () => {
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

  it('refuse what no message is made of', () => {
    const check = (hex: string, expected: RegExp) =>
      assert.throws(() => codecs.v3.decodeRequest(fromHex(hex)), expected, hex);
    check('00', /number 0/);
    check('0e', /type 6/);
    check('0c', /type 4/);
    check('0a05', /cut short/);
    // An entry that is longer than the descriptor around it.
    check('1204' + '0a060a016b120176', /cut short/);
    check(`18${'ff'.repeat(10)}01`, /more than 10 bytes/);
    check('8301'.repeat(101), /type 3/);
  });

  it('write a long message after a short one, and the other way round', () => {
    const { encodeRequest, decodeRequest } = codecs.v3;
    const asked = (length: number) => ({
      domain: 'd',
      descriptors: [{ entries: [{ key: 'k', value: 'ä'.repeat(length) }] }],
      hitsAddend: 1,
    });
    for (const length of [1, 100_000, 2, 5_000, 3])
      assert.deepEqual(decodeRequest(encodeRequest(asked(length))), asked(length));
  });
});
