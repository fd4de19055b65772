/** The tables of demo data stand in an order in which every reference finds its row. */
import assert from 'node:assert/strict';
import { createDemoTables } from '../../src/storage/demo-tables.ts';

describe('createDemoTables', () => {
  const tables = createDemoTables('2026-01-01T00:00:00.000Z');
  const names = [...tables.keys()];

  it('puts a table after the one that it refers to', () => {
    for (const [name, { reference }] of tables) {
      if (reference !== undefined) assert.ok(names.indexOf(reference.table) < names.indexOf(name), name);
    }
  });

  it('fills in what a row leaves out, and makes ids lower-case', () => {
    const id = '6F1F3C52-7D7E-4A57-9D43-5F0F6C1D2A01';
    const row = tables.get('car_bookings')?.columns.parse({ id, car_id: id, user: 'demo', status: 'pending' });
    assert.deepEqual(row, {
      id: id.toLowerCase(),
      car_id: id.toLowerCase(),
      user: 'demo',
      status: 'pending',
      version: 1,
      created_at: '2026-01-01T00:00:00.000Z',
      reference: 'A6E5CBF4',
      starts_at: '2026-01-01T00:00:00.000Z',
      ends_at: '2026-01-02T00:00:00.000Z',
      price: 0,
      currency: 'EUR',
      policy: '[]',
    });
  });
});
