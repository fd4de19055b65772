/** A URL says which database is opened, and a bad one says what to write instead. */
import assert from 'node:assert/strict';
import { openDatabase, StorageSetupError } from '#storage';

describe('openDatabase', () => {
  const refuse = (url: string, message: RegExp) =>
    assert.rejects(openDatabase({ url }), (error) => {
      assert.ok(error instanceof StorageSetupError);
      assert.match(error.message, message);
      assert.doesNotMatch(error.message, /secret/);
      return true;
    });

  it('opens what the scheme names', async () => {
    const database = await openDatabase({ url: 'sqlite::memory:' });
    assert.equal(database.dialect, 'sqlite');
    await database.close();
  });

  it('names the known forms where it cannot tell the kind, and never a password', async () => {
    await refuse('mysql://root:secret@localhost/db', /"mysql:".*sqlite:\.\/path, sqlite::memory: or postgres:/);
    await refuse('./data/frontdesk.db', /scheme ""/);
    await refuse('', /sqlite:\.\/path/);
  });

  it('refuses a SQLite URL that names no file', async () => {
    await refuse('sqlite:', /names no file/);
    await refuse('sqlite://data/frontdesk.db', /write sqlite:\.\/path/);
  });

  it('refuses a PostgreSQL URL that cannot be read', () => refuse('postgres://demo:secret@ho st/db', /percent-encode/));
});
