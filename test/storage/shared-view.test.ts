/** Reads of one turn see the same, and nobody waits for more than a turn to see what is new. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { type Database, openDatabase } from '../../src/storage/index.ts';
import { createSharedView } from '../../src/storage/shared-view.ts';

describe('the view that reads of one turn share', () => {
  let directory: string;
  let file: string;

  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'frontdesk-'));
    file = join(directory, 'test.db');
  });

  afterEach(() => rmSync(directory, { recursive: true }));

  describe('on a connection', () => {
    let writer: DatabaseSync;
    let reader: DatabaseSync;

    beforeEach(() => {
      writer = new DatabaseSync(file);
      writer.exec('pragma journal_mode = WAL');
      writer.exec('create table counters (value integer); insert into counters values (0)');
      reader = new DatabaseSync(file, { readOnly: true });
    });

    afterEach(() => {
      if (reader.isOpen) reader.close();
      writer.close();
    });

    function openView() {
      const view = createSharedView(reader);
      const statement = reader.prepare('select value from counters');
      const read = () => {
        view.enter();
        return statement.get()?.['value'];
      };
      return { view, read };
    }

    it('takes no transaction for the only read of a turn', async () => {
      const { read } = openView();
      read();
      assert.equal(reader.isTransaction, false);
      await nextTurn();
      assert.equal(reader.isTransaction, false);
    });

    it('shows the same to the second read of a turn and to all that follow', () => {
      const { read } = openView();
      read();
      assert.equal(read(), 0);
      writer.exec('update counters set value = 1');
      assert.equal(read(), 0);
    });

    it('shows what another process has committed in the next turn', async () => {
      const { read } = openView();
      read();
      read();
      writer.exec('update counters set value = 1');
      await nextTurn();
      assert.equal(read(), 1);
      assert.equal(read(), 1);
    });

    it('shows what this process has committed at once, to the first read and to the second', () => {
      const { view, read } = openView();
      read();
      read();
      writer.exec('update counters set value = 1');
      view.leave();
      assert.equal(read(), 1);
      assert.equal(read(), 1);
    });

    it('outlives a connection that is closed within the turn', async () => {
      const { read } = openView();
      read();
      read();
      reader.close();
      await nextTurn();
    });
  });

  it('is left when a statement through Kysely has written', async () => {
    const database: Database = await openDatabase({ url: `sqlite:${file}` });
    try {
      const find = database.first(database.kysely.selectFrom('accounts').select('name').where('id', '=', ''));
      const read = () => find('demo');
      assert.deepEqual([read(), read()], [undefined, undefined]);
      await database.kysely.insertInto('accounts').values({ id: 'demo', name: 'Demo' }).execute();
      assert.deepEqual([read(), read()], [{ name: 'Demo' }, { name: 'Demo' }]);
    } finally {
      await database.close();
    }
  });
});
