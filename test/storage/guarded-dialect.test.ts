/** Every statement that Kysely sends goes through the guard, whatever part of Kysely sends it. */
import assert from 'node:assert/strict';
import { DatabaseSync } from 'node:sqlite';
import { Kysely, SqliteDialect, sql } from 'kysely';
import { guardDialect } from '../../src/storage/guarded-dialect.ts';
import { rememberStatements } from '../../src/storage/remembered-statements.ts';

describe('guardDialect', () => {
  const open = (around: <T>(ask: () => Promise<T>) => Promise<T>, begin?: string) => {
    const executed: string[] = [];
    const handle = rememberStatements(new DatabaseSync(':memory:'));
    const prepare = (text: string) => {
      const statement = handle.prepare(text);
      const executing =
        <Result>(run: (parameters: readonly unknown[]) => Result) =>
        (parameters: readonly unknown[]) => {
          executed.push(text);
          return run(parameters);
        };
      return { ...statement, all: executing(statement.all), run: executing(statement.run) };
    };
    const dialect = new SqliteDialect({ database: { close: handle.close, prepare } });
    const kysely = new Kysely<unknown>({ dialect: guardDialect(dialect, { around, ...(begin ? { begin } : {}) }) });
    return { kysely, executed };
  };

  it('can run a statement again', async () => {
    let failures = 2;
    const { kysely } = open(async (ask) => {
      for (;;) {
        try {
          return await ask();
        } catch (error) {
          failures -= 1;
          if (failures === 0) throw error;
        }
      }
    });
    await assert.rejects(sql`select nonsense`.execute(kysely), /no such column/);
    assert.equal(failures, 0);
    await kysely.destroy();
  });

  it('guards each statement once, however often its connection is used', async () => {
    let guarded = 0;
    const { kysely, executed } = open((ask) => {
      guarded += 1;
      return ask();
    });
    for (let time = 0; time < 3; time += 1) await sql`select 1`.execute(kysely);
    assert.deepEqual([executed.length, guarded], [3, 6], 'a guard for each connection and each statement');
    await kysely.destroy();
  });

  it('begins transactions as it is told', async () => {
    const { kysely, executed } = open((ask) => ask(), 'begin immediate');
    await kysely.transaction().execute((transaction) => sql`select 1`.execute(transaction));
    assert.deepEqual(executed, ['begin immediate', 'select 1', 'commit']);
    await kysely.destroy();
  });

  it('begins them as the dialect does when it is told nothing', async () => {
    const { kysely, executed } = open((ask) => ask());
    await kysely.transaction().execute((transaction) => sql`select 1`.execute(transaction));
    assert.equal(executed[0], 'begin');
    await kysely.destroy();
  });
});
