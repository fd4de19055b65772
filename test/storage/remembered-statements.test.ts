/** A statement is prepared once, and the number of remembered ones is bounded. */
import assert from 'node:assert/strict';
import { DatabaseSync } from 'node:sqlite';
import { rememberStatements } from '../../src/storage/remembered-statements.ts';

const idOf = (row: unknown) => (row as { readonly id: number }).id;

describe('rememberStatements', () => {
  const prepared: string[] = [];
  const handle = {
    close() {},
    prepare(sql: string) {
      prepared.push(sql);
      return { columns: () => [{}], all: () => [sql] };
    },
  } as unknown as DatabaseSync;

  beforeEach(() => void prepared.splice(0));

  it('prepares the same SQL once', () => {
    const remembering = rememberStatements(handle);
    for (const sql of ['a', 'a', 'b', 'a']) assert.deepEqual(remembering.prepare(sql).all([]), [sql]);
    assert.deepEqual(prepared, ['a', 'b']);
  });

  it('forgets the least recently used beyond its bound', () => {
    const remembering = rememberStatements(handle, 2);
    for (const sql of ['a', 'b', 'a', 'c', 'a', 'b']) remembering.prepare(sql);
    assert.deepEqual(prepared, ['a', 'b', 'c', 'b']);
  });

  it('forgets nothing while it has room for what is asked', () => {
    const remembering = rememberStatements(handle, 2);
    for (const sql of ['a', 'b', 'b', 'a', 'b']) remembering.prepare(sql);
    assert.deepEqual(prepared, ['a', 'b']);
  });

  it('does not remember what cannot be prepared', () => {
    const real = new DatabaseSync(':memory:');
    const remembering = rememberStatements(real);
    assert.throws(() => remembering.prepare('select * from t'), /no such table/);
    real.exec('create table t (id); insert into t values (1)');
    assert.deepEqual([...remembering.prepare('select * from t').all([])].map(idOf), [1]);
    real.close();
  });

  it('lets two iterate over the same SQL at once', () => {
    const real = new DatabaseSync(':memory:');
    real.exec('create table t (id); insert into t values (1), (2)');
    const remembering = rememberStatements(real);
    const [one, two] = [0, 1].map(() => remembering.prepare('select id from t').iterate([]));
    assert.deepEqual(
      [one, two, one].map((rows) => idOf(rows?.next().value)),
      [1, 1, 2],
    );
    one?.return?.();
    two?.return?.();
    real.close();
  });
});
