/** `traceparent` and `tracestate`: parsing, formatting and bounds. The generation of trace ids. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { boundTracestate, formatTraceparent, parseTraceparent } from '#http';
import { createTraceIds } from '../../src/http/trace.ts';
import { anyCharacter } from '../support/any-character.ts';

const traceId = '0af7651916cd43dd8448eb211c80319c';
const spanId = 'b7ad6b7169203331';

const hex = (length: number) =>
  fc
    .string({ unit: fc.constantFrom(...'0123456789abcdef'), minLength: length, maxLength: length })
    .filter((text) => !/^0+$/.test(text));

describe('traceparent', () => {
  const ids = `${traceId}-${spanId}`;

  it('is parsed in version 00 and in later versions, which may have more fields', () => {
    for (const [header, flags] of Object.entries({
      [`00-${ids}-00`]: 0,
      [`00-${ids}-01`]: 1,
      [`00-${ids}-03`]: 3,
      [`00-${ids}-ff`]: 3,
      [`00-${ids}-08`]: 0,
      [`01-${ids}-01`]: 1,
      [`cc-${ids}-01-more-fields`]: 1,
      [`cc-${ids}-01-`]: 1,
    }))
      assert.deepEqual(parseTraceparent(header), { traceId, spanId, flags }, header);
  });

  for (const [what, headers] of Object.entries<readonly (string | readonly string[] | undefined)[]>({
    'version 00 with more fields': [`00-${ids}-01-`, `00-${ids}-01-more-fields`],
    'a later version without a separator': [`cc-${ids}-01.what`, `cc-${ids}-011`, `ff-${ids}-01`],
    'upper-case digits': [`00-${ids.toUpperCase()}-01`, `0A-${ids}-01`, `00-${ids}-0A`],
    'ids of zeros': [`00-${'0'.repeat(32)}-${spanId}-01`, `00-${traceId}-${'0'.repeat(16)}-01`],
    'other lengths': [`00-${traceId}0-${spanId}-01`, `00-${ids.slice(1)}-01`, `00-${ids}-1`, `00-${ids}`],
    'other text': [undefined, '', `00_${traceId}_${spanId}_01`, ` 00-${ids}-01`, `00-${ids}-01\n`],
    'a repeated header': ['00', 'cc'].map((version) => `${version}-${ids}-01, ${version}-${ids}-01`),
    'a list of headers': [[`00-${ids}-01`, `00-${ids}-01`]],
  }))
    it(`is rejected for ${what}`, () => {
      for (const header of headers) assert.equal(parseTraceparent(header), undefined, String(header));
    });

  it('survives formatting and parsing', () => {
    fc.assert(
      fc.property(hex(32), hex(16), fc.nat(3), (trace, span, flags) => {
        const parent = { traceId: trace, spanId: span, flags };
        assert.deepEqual(parseTraceparent(formatTraceparent(parent)), parent);
      }),
    );
  });

  it('never makes the parser throw, and can be formatted again if it can be parsed', () => {
    const almost = fc
      .tuple(fc.constantFrom('00', '01', 'ff', ''), fc.constantFrom(traceId, ''), fc.string(), fc.string())
      .map((parts) => parts.join('-'));
    fc.assert(
      fc.property(fc.oneof(fc.string({ unit: anyCharacter }), almost), (header) => {
        const parent = parseTraceparent(header);
        if (parent !== undefined) assert.deepEqual(parseTraceparent(formatTraceparent(parent)), parent);
      }),
    );
  });
});

describe('tracestate', () => {
  it('is passed on without blanks and empty members, and dropped if it is malformed', () => {
    const rows: readonly (readonly [header: string | readonly string[], expected: string])[] = [
      ['congo=t61rcWkgMzE', 'congo=t61rcWkgMzE'],
      ['rojo=00f067aa0ba902b7,congo=t61rcWkgMzE', 'rojo=00f067aa0ba902b7,congo=t61rcWkgMzE'],
      ['rojo=1 ,\t congo=2', 'rojo=1,congo=2'],
      ['rojo=1,,congo=2,', 'rojo=1,congo=2'],
      [['rojo=1', 'congo=2'], 'rojo=1,congo=2'],
      ['fw529a3039@dt=FfD2,1a-_*/=x y', 'fw529a3039@dt=FfD2,1a-_*/=x y'],
    ];
    for (const [header, expected] of rows) assert.equal(boundTracestate(header), expected);
    const malformed = ['', ' , ', 'rojo', 'rojo=', 'Rojo=1', 'roJo=1', 'rojo=1=2', 'rojo=1,congo=ü'];
    for (const header of [undefined, ...malformed, `${'k'.repeat(257)}=1`])
      assert.equal(boundTracestate(header), undefined, header);
  });

  const members = (count: number, of: (index: number) => string = (index) => `k${index}=v`) =>
    Array.from({ length: count }, (_, index) => of(index));

  it('is cut to 32 members', () => {
    assert.equal(boundTracestate(members(32).join(',')), members(32).join(','));
    assert.equal(boundTracestate(members(40).join(',')), members(32).join(','));
  });

  it('is cut to 512 characters by dropping members longer than 128 first, then whole members from the end', () => {
    const whole = `${members(4, (index) => `k${index}=${'v'.repeat(124)}`).join(',')}v`;
    assert.equal(whole.length, 512);
    assert.equal(boundTracestate(whole), whole);
    const many = members(20, (index) => `k${index}=${'v'.repeat(50)}`);
    assert.equal(boundTracestate(many.join(',')), many.slice(0, 9).join(','));
    const short = members(4, (index) => `k${index}=${'v'.repeat(60)}`);
    assert.equal(boundTracestate([`long=${'v'.repeat(256)}`, ...short].join(',')), short.join(','));
    const long = members(3, (index) => `k${index}=${'v'.repeat(250)}`);
    assert.equal(boundTracestate(long.join(',')), undefined);
  });

  it('never throws, stays within its bounds, and does not change when it is cut again', () => {
    const one = fc.tuple(fc.constantFrom('a', 'k@1', ''), fc.string({ maxLength: 300 })).map((pair) => pair.join('='));
    fc.assert(
      fc.property(fc.oneof(fc.string({ unit: anyCharacter }), fc.array(one, { maxLength: 60 })), (header) => {
        const state = boundTracestate(header);
        if (state === undefined) return;
        assert.ok(state.length > 0 && state.length <= 512 && state.split(',').length <= 32);
        assert.equal(boundTracestate(state), state);
      }),
    );
  });

  it('is parsed in linear time, however long it is', () => {
    const spaces = ' '.repeat(200_000);
    assert.equal(boundTracestate(`a=1,${spaces}b${spaces}`), undefined);
    assert.equal(boundTracestate('a=1,'.repeat(50_000)), members(32, () => 'a=1').join(','));
  });
});

describe('createTraceIds', () => {
  it('generates unique ids of 32 and 16 lower-case hexadecimal digits', () => {
    const ids = createTraceIds();
    const made = Array.from({ length: 2000 }, () => [ids.traceId(), ids.spanId()]).flat();
    for (const [index, id] of made.entries()) assert.match(id, index % 2 === 0 ? /^[\da-f]{32}$/ : /^[\da-f]{16}$/);
    assert.equal(new Set(made).size, made.length);
  });

  it('fetches random bytes in batches and uses each byte once', () => {
    let fetched = 0;
    const ids = createTraceIds((bytes) => {
      for (const index of bytes.keys()) bytes[index] = (index + fetched) % 251;
      fetched += bytes.length;
    });
    assert.equal(fetched, 0);
    assert.equal(ids.spanId(), '0001020304050607');
    assert.equal(ids.traceId(), '08090a0b0c0d0e0f1011121314151617');
    for (let made = 0; made < 170; made += 1) {
      ids.traceId();
      ids.spanId();
    }
    assert.equal(fetched, 2 * 4096);
  });

  it('never returns an id that is all zeros', () => {
    const ids = createTraceIds((bytes) => bytes.fill(0).fill(1, 64));
    assert.equal(ids.traceId(), '01'.repeat(16));
    assert.equal(ids.spanId(), '01'.repeat(8));
  });
});
