/** Parsing the start and end of a stay, and the days that it occupies. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { dayMs, lengthOf, parseStay, shiftStay, stayOf } from '../../../src/travel/booking/stay.ts';
import { carKind } from '../../../src/travel/car/car.ts';
import { hotelKind } from '../../../src/travel/hotel/hotel.ts';

const firstOfMay = Date.UTC(2030, 4, 1) / dayMs;

describe('parseStay', () => {
  const hotel = (check_in?: string, check_out?: string) =>
    parseStay(hotelKind, 90, { ...(check_in && { check_in }), ...(check_out && { check_out }) });
  const car = (pickup_at: string, dropoff_at: string) => parseStay(carKind, 90, { pickup_at, dropoff_at });
  const daysOf = (parsed: ReturnType<typeof parseStay>) => {
    assert.ok(parsed.ok && parsed.stay);
    return [parsed.stay.firstDay - firstOfMay, parsed.stay.endDay - firstOfMay];
  };
  const faultsOf = (parsed: ReturnType<typeof parseStay>) => (parsed.ok ? [] : parsed.faults.map(({ field }) => field));

  it('covers the nights from check-in to check-out', () => {
    assert.deepEqual(daysOf(hotel('2030-05-01', '2030-05-04')), [0, 3]);
  });

  it('covers each UTC day that a rental touches', () => {
    assert.deepEqual(daysOf(car('2030-05-01T23:59:00Z', '2030-05-03T00:00:01Z')), [0, 3]);
    assert.deepEqual(daysOf(car('2030-05-01T00:00:00Z', '2030-05-02T00:00:00Z')), [0, 1]);
    assert.deepEqual(daysOf(car('2030-05-01T00:30:00+01:00', '2030-05-01T02:00:00+01:00')), [-1, 1]);
  });

  it('has an example that can still be booked in 2030', () => {
    for (const kind of [hotelKind, carKind]) {
      const [from, to] = kind.stay.examples;
      const parsed = parseStay(kind, 90, { [kind.stay.fields[0]]: from, [kind.stay.fields[1]]: to });
      assert.ok(parsed.ok && Number(parsed.stay?.fromMs) > Date.UTC(2031, 0, 1));
    }
  });

  it('returns no stay when both start and end are missing', () =>
    assert.deepEqual(hotel(), { ok: true, stay: undefined }));

  it('reports a start or end that is missing or malformed, and an end that is too early or too late', () => {
    assert.deepEqual(faultsOf(hotel('2030-05-01')), ['check_out']);
    assert.deepEqual(faultsOf(hotel(undefined, '2030-05-01')), ['check_in']);
    assert.deepEqual(faultsOf(hotel('today', '2030-05-01')), ['check_in']);
    assert.deepEqual(faultsOf(hotel('today', 'tomorrow')), ['check_in', 'check_out']);
    assert.deepEqual(faultsOf(hotel('today')), ['check_in', 'check_out']);
    assert.deepEqual(faultsOf(hotel('2030-05-01', '2030-05-01')), ['check_out']);
    assert.deepEqual(faultsOf(hotel('2030-05-02', '2030-05-01')), ['check_out']);
    assert.deepEqual(faultsOf(hotel('2030-05-01', '2030-07-30')), []);
    assert.deepEqual(faultsOf(hotel('2030-05-01', '2030-07-31')), ['check_out']);
  });

  it('explains how to write the + of a time zone in a URL', () => {
    const parsed = car('2030-05-01T10:00:00 02:00', '2030-05-02 10:00');
    assert.deepEqual(parsed.ok ? [] : parsed.faults.map(({ detail }) => detail), [
      'has a space instead of +: write + as %2B in a URL',
      'must be like 2031-05-12T09:00:00+02:00',
    ]);
  });

  it('rejects malformed dates and times, and days that do not exist', () => {
    for (const text of ['2030-02-30', '2030-5-1', 'today', '2030-05-01T00:00:00Z', '+012030-05-01'])
      assert.equal(hotelKind.stay.parse(text), undefined, text);
    for (const text of ['2030-05-01', '2030-05-01T10:00', '2030-02-30T10:00:00Z', '2030-05-01T25:00:00Z', 'noon'])
      assert.equal(carKind.stay.parse(text), undefined, text);
  });

  it('parses the dates and times that it prints', () => {
    const ms = fc.integer({ min: 0, max: Date.UTC(9999, 11, 31) });
    fc.assert(
      fc.property(ms, (at) => {
        assert.equal(carKind.stay.parse(carKind.stay.print(at)), at);
        assert.equal(hotelKind.stay.parse(hotelKind.stay.print(at)), at - (at % dayMs));
      }),
    );
  });
});

describe('shiftStay', () => {
  it('keeps the length', () => {
    const stay = stayOf(firstOfMay * dayMs + 1, (firstOfMay + 2) * dayMs + 1);
    const shifted = shiftStay(stay, 5);
    assert.equal(shifted.firstDay, stay.firstDay + 5);
    assert.equal(lengthOf(shifted), lengthOf(stay));
  });
});
