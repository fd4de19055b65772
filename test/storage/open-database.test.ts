/** URLs of databases: an unusable one is refused with the forms that work. */
import assert from 'node:assert/strict';
import { openDatabase, StorageSetupError } from '#storage';

describe('openDatabase', () => {
  for (const [url, message] of [
    ['mysql://root:secret@localhost/db', /"mysql:".*sqlite:\.\/path, sqlite::memory: or postgres:/],
    ['./data/frontdesk.db', /scheme ""/],
    ['', /sqlite:\.\/path/],
    ['sqlite:', /names no file/],
    ['sqlite://data/frontdesk.db', /write sqlite:\.\/path/],
    ['postgres://demo:secret@ho st/db', /percent-encode/],
  ] as const) {
    it(`refuses ${url === '' ? 'an empty URL' : url}, and never prints a password`, () =>
      assert.rejects(openDatabase({ url }), (error) => {
        assert.ok(error instanceof StorageSetupError);
        assert.match(error.message, message);
        assert.doesNotMatch(error.message, /secret/);
        return true;
      }));
  }
});
