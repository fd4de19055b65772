import assert from 'node:assert/strict';
import fc from 'fast-check';
import { boundTracestate, formatTraceparent, parseTraceparent } from '#http';

const traceId = '0af7651916cd43dd8448eb211c80319c';
const spanId = 'b7ad6b7169203331';

const hex = (length: number) =>
  fc
    .string({ unit: fc.constantFrom(...'0123456789abcdef'), minLength: length, maxLength: length })
    .filter((text) => !/^0+$/.test(text));

describe('traceparent', () => {
  function check(header: string | readonly string[] | undefined, flags: number | undefined) {
    it(`${flags === undefined ? 'is none in' : 'is read in'} ${JSON.stringify(header)}`, () => {
      assert.deepEqual(parseTraceparent(header), flags === undefined ? undefined : { traceId, spanId, flags });
    });
  }

  describe('of version 00', () => {
    check(`00-${traceId}-${spanId}-00`, 0);
    check(`00-${traceId}-${spanId}-01`, 1);
    check(`00-${traceId}-${spanId}-03`, 3);
    check(`00-${traceId}-${spanId}-ff`, 3);
    check(`00-${traceId}-${spanId}-08`, 0);
    check(`00-${traceId}-${spanId}-01-`, undefined);
    check(`00-${traceId}-${spanId}-01-what-the-future-holds`, undefined);
  });

  describe('of a later version', () => {
    check(`01-${traceId}-${spanId}-01`, 1);
    check(`cc-${traceId}-${spanId}-01-what-the-future-holds`, 1);
    check(`cc-${traceId}-${spanId}-01-`, 1);
    check(`cc-${traceId}-${spanId}-01.what`, undefined);
    check(`cc-${traceId}-${spanId}-011`, undefined);
    check(`ff-${traceId}-${spanId}-01`, undefined);
  });

  describe('that is malformed', () => {
    check(undefined, undefined);
    check('', undefined);
    check(`00-${traceId.toUpperCase()}-${spanId}-01`, undefined);
    check(`00-${traceId}-${spanId.toUpperCase()}-01`, undefined);
    check(`0A-${traceId}-${spanId}-01`, undefined);
    check(`00-${traceId}-${spanId}-0A`, undefined);
    check(`00-${'0'.repeat(32)}-${spanId}-01`, undefined);
    check(`00-${traceId}-${'0'.repeat(16)}-01`, undefined);
    check(`00-${traceId}0-${spanId}-01`, undefined);
    check(`00-${traceId.slice(1)}-${spanId}-01`, undefined);
    check(`00-${traceId}-${spanId}-1`, undefined);
    check(`00-${traceId}-${spanId}`, undefined);
    check(`00_${traceId}_${spanId}_01`, undefined);
    check(` 00-${traceId}-${spanId}-01`, undefined);
    check(`00-${traceId}-${spanId}-01\n`, undefined);
  });

  describe('that came twice', () => {
    check(`00-${traceId}-${spanId}-01, 00-${traceId}-${spanId}-01`, undefined);
    check(`cc-${traceId}-${spanId}-01, cc-${traceId}-${spanId}-01`, undefined);
    check([`00-${traceId}-${spanId}-01`, `00-${traceId}-${spanId}-01`], undefined);
  });

  it('is read as it was written', () => {
    fc.assert(
      fc.property(hex(32), hex(16), fc.nat(3), (trace, span, flags) => {
        const parent = { traceId: trace, spanId: span, flags };
        assert.deepEqual(parseTraceparent(formatTraceparent(parent)), parent);
      }),
    );
  });

  it('never throws, and what can be read can be written', () => {
    const almost = fc
      .tuple(fc.constantFrom('00', '01', 'ff', ''), fc.constantFrom(traceId, ''), fc.string(), fc.string())
      .map((parts) => parts.join('-'));
    fc.assert(
      fc.property(fc.oneof(fc.string({ unit: 'binary' }), almost), (header) => {
        const parent = parseTraceparent(header);
        if (parent !== undefined) assert.deepEqual(parseTraceparent(formatTraceparent(parent)), parent);
      }),
    );
  });
});

describe('tracestate', () => {
  function check(header: string | readonly string[] | undefined, expected: string | undefined) {
    it(`goes on as ${JSON.stringify(expected)} from ${JSON.stringify(header)?.slice(0, 60)}`, () => {
      assert.equal(boundTracestate(header), expected);
    });
  }

  check('congo=t61rcWkgMzE', 'congo=t61rcWkgMzE');
  check('rojo=00f067aa0ba902b7,congo=t61rcWkgMzE', 'rojo=00f067aa0ba902b7,congo=t61rcWkgMzE');
  check('rojo=1 ,\t congo=2', 'rojo=1,congo=2');
  check('rojo=1,,congo=2,', 'rojo=1,congo=2');
  check(['rojo=1', 'congo=2'], 'rojo=1,congo=2');
  check('fw529a3039@dt=FfD2,1a-_*/=x y', 'fw529a3039@dt=FfD2,1a-_*/=x y');
  check(undefined, undefined);
  check('', undefined);
  check(' , ', undefined);
  check('rojo', undefined);
  check('rojo=', undefined);
  check('Rojo=1', undefined);
  check('roJo=1', undefined);
  check('rojo=1=2', undefined);
  check('rojo=1,congo=ü', undefined);
  check(`${'k'.repeat(257)}=1`, undefined);

  const members = (count: number, of: (index: number) => string = (index) => `k${index}=v`) =>
    Array.from({ length: count }, (_, index) => of(index));

  it('keeps 32 members, and drops those behind them', () => {
    assert.equal(boundTracestate(members(32).join(',')), members(32).join(','));
    assert.equal(boundTracestate(members(40).join(',')), members(32).join(','));
  });

  it('keeps 512 characters', () => {
    const whole = members(4, (index) => `k${index}=${'v'.repeat(124)}`).join(',');
    assert.equal(whole.length, 511);
    assert.equal(boundTracestate(`${whole}v`), `${whole}v`);
  });

  it('drops whole members from the end beyond 512 characters', () => {
    const long = members(20, (index) => `k${index}=${'v'.repeat(50)}`);
    assert.equal(boundTracestate(long.join(',')), long.slice(0, 9).join(','));
  });

  it('drops members of more than 128 characters before any other', () => {
    const short = members(4, (index) => `k${index}=${'v'.repeat(60)}`);
    assert.equal(boundTracestate([`long=${'v'.repeat(256)}`, ...short].join(',')), short.join(','));
  });

  it('is nothing when nothing is short enough', () => {
    const long = members(3, (index) => `k${index}=${'v'.repeat(250)}`);
    assert.equal(boundTracestate(long.join(',')), undefined);
  });

  it('never throws, stays within its bounds, and goes on as it is the next time', () => {
    const one = fc.tuple(fc.constantFrom('a', 'k@1', ''), fc.string({ maxLength: 300 })).map((pair) => pair.join('='));
    fc.assert(
      fc.property(fc.oneof(fc.string({ unit: 'binary' }), fc.array(one, { maxLength: 60 })), (header) => {
        const state = boundTracestate(header);
        if (state === undefined) return;
        assert.ok(state.length > 0 && state.length <= 512 && state.split(',').length <= 32);
        assert.equal(boundTracestate(state), state);
      }),
    );
  });

  it('takes a header of any length in its stride', () => {
    const spaces = ' '.repeat(200_000);
    assert.equal(boundTracestate(`a=1,${spaces}b${spaces}`), undefined);
    assert.equal(boundTracestate('a=1,'.repeat(50_000)), members(32, () => 'a=1').join(','));
  });
});
