/** From what a client writes to the days that a stay takes. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { lengthOf, readStay, shiftStay, stayOf } from '../../../src/services/booking/stay.ts';
import { dayMs } from '../../../src/services/booking/trade.ts';
import { carTrade } from '../../../src/services/car/car-trade.ts';
import { hotelTrade } from '../../../src/services/hotel/hotel-trade.ts';

const firstOfMay = Date.UTC(2030, 4, 1) / dayMs;

describe('readStay', () => {
  const hotel = (check_in?: string, check_out?: string) =>
    readStay(hotelTrade, { ...(check_in && { check_in }), ...(check_out && { check_out }) });
  const car = (pickup_at: string, dropoff_at: string) => readStay(carTrade, { pickup_at, dropoff_at });
  const daysOf = (reading: ReturnType<typeof readStay>) => {
    assert.ok(reading.ok && reading.stay);
    return [reading.stay.firstDay - firstOfMay, reading.stay.endDay - firstOfMay];
  };
  const faultsOf = (reading: ReturnType<typeof readStay>) => (reading.ok ? [] : reading.faults.map(({ name }) => name));

  it('takes the nights from one date up to the other', () => {
    assert.deepEqual(daysOf(hotel('2030-05-01', '2030-05-04')), [0, 3]);
  });

  it('takes each day, in UTC, that a rental touches', () => {
    assert.deepEqual(daysOf(car('2030-05-01T23:59:00Z', '2030-05-03T00:00:01Z')), [0, 3]);
    assert.deepEqual(daysOf(car('2030-05-01T00:00:00Z', '2030-05-02T00:00:00Z')), [0, 1]);
    assert.deepEqual(daysOf(car('2030-05-01T00:30:00+01:00', '2030-05-01T02:00:00+01:00')), [-1, 1]);
  });

  for (const trade of [hotelTrade, carTrade])
    it(`gives an example of the end of a ${trade.name}'s stay that can be booked for years to come`, () => {
      const ms = trade.readEnd(trade.endExample);
      assert.ok(ms !== undefined && ms > Date.UTC(2031, 0, 1), trade.endExample);
    });

  it('is nothing where nothing is said', () => assert.deepEqual(hotel(), { ok: true, stay: undefined }));

  it('names the end that is missing, before the beginning, or too far', () => {
    assert.deepEqual(faultsOf(hotel('2030-05-01')), ['check_out']);
    assert.deepEqual(faultsOf(hotel(undefined, '2030-05-01')), ['check_in']);
    assert.deepEqual(faultsOf(hotel('2030-05-01', '2030-05-01')), ['check_out']);
    assert.deepEqual(faultsOf(hotel('2030-05-02', '2030-05-01')), ['check_out']);
    assert.deepEqual(faultsOf(hotel('2030-05-01', '2030-07-30')), []);
    assert.deepEqual(faultsOf(hotel('2030-05-01', '2030-07-31')), ['check_out']);
  });

  for (const text of ['2030-02-30', '2030-5-1', 'today', '2030-05-01T00:00:00Z', '+012030-05-01']) {
    it(`takes ${text} for no date`, () => assert.equal(hotelTrade.readEnd(text), undefined));
  }

  for (const text of ['2030-05-01', '2030-05-01T10:00', '2030-02-30T10:00:00Z', '2030-05-01T25:00:00Z', 'noon']) {
    it(`takes ${text} for no time`, () => assert.equal(carTrade.readEnd(text), undefined));
  }

  it('reads what it writes', () => {
    const ms = fc.integer({ min: 0, max: Date.UTC(9999, 11, 31) });
    fc.assert(
      fc.property(ms, (at) => {
        assert.equal(carTrade.readEnd(carTrade.writeEnd(at)), at);
        assert.equal(hotelTrade.readEnd(hotelTrade.writeEnd(at)), at - (at % dayMs));
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
