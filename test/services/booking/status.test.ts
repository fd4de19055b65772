/** The states of a booking. */
import assert from 'node:assert/strict';
import { bookingStatus } from '#services/booking';

describe('bookingStatus', () => {
  it('is pending, confirmed or cancelled, and nothing else', () => {
    assert.deepEqual(bookingStatus.options, ['pending', 'confirmed', 'cancelled']);
    assert.equal(bookingStatus.safeParse('Confirmed').success, false);
  });
});
