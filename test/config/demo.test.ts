/** Demo data: tables of rows of scalars; the wording of each refusal is in the golden files. */
import assert from 'node:assert/strict';
import { configurationFrom } from '#config';

describe('demo data', () => {
  it('is kept as it stands', () => {
    const demo = { hotels: [{ id: 'a', stars: 4, open: true, note: null }], cars: [] };
    const { configuration, errors } = configurationFrom({ records: [], demo });
    assert.deepEqual([configuration.demo, errors], [demo, []]);
  });

  it('is refused whole when a cell is not a scalar', () => {
    const { configuration, errors } = configurationFrom({ records: [], demo: { hotels: [{ id: {} }] } });
    assert.deepEqual(configuration.demo, {});
    assert.equal(errors[0]?.message, 'hotels[0].id must be a string, a number, true, false or null');
  });
});
