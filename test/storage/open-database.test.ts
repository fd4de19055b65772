/** Database URLs: an unusable one is rejected with a list of valid forms. */
import assert from 'node:assert/strict';
import { openDatabase, StorageSetupError } from '#storage';

describe('openDatabase', () => {
  for (const [url, message] of [
    ['mysql://root:secret@localhost/db', /"mysql:".*sqlite:\.\/path, sqlite::memory: or postgres:/],
    ['./data/frontdesk.db', /scheme "" in DATABASE_URL/],
    ['', /sqlite:\.\/path/],
    ['sqlite:', /is not the path of a file/],
    ['sqlite://data/frontdesk.db', /write sqlite:\.\/path/],
    ['postgres://demo:secret@ho st/db', /percent-encode/],
  ] as const) {
    it(`rejects ${url === '' ? 'an empty URL' : url} without revealing the password`, () =>
      assert.rejects(openDatabase({ url }), (error) => {
        assert.ok(error instanceof StorageSetupError);
        assert.match(error.message, message);
        assert.doesNotMatch(error.message, /secret/);
        return true;
      }));
  }
});
