/** Database URLs: an unusable one is rejected with a list of valid forms. */
import assert from 'node:assert/strict';
import { StorageSetupError } from '../../../src/travel/storage/database.ts';
import { openDatabase } from '../../../src/travel/storage/open-database.ts';

describe('openDatabase', () => {
  for (const [url, message] of [
    ['mysql://root:secret@localhost/db', /"mysql:".*sqlite:\.\/path, sqlite::memory: or postgres:/],
    ['./data/frontdesk.db', /scheme "" in DATABASE_URL/],
    ['', /sqlite:\.\/path/],
    ['sqlite:', /is not the path of a file/],
    ['sqlite://data/frontdesk.db', /write sqlite:\.\/path/],
    ['postgres://demo:secret@ho st/db', /percent-encode/],
    ['postgresql://demo:secret@/db?host=a,b', /invalid: percent-encode .* several servers as postgres:/],
    ['postgres://demo:x,secret/@a/db', /invalid: percent-encode .* several servers as postgres:/],
    ['postgres://demo:secret@a/db?port=1,2', /invalid: percent-encode .* several servers as postgres:/],
    ['postgres://demo:secret@a,b/db?target_session_attrs=any', /Write target_session_attrs=read-write/],
    [
      'postgres://demo:secret@127.0.0.1:1,[::1]:1/db',
      /1,\[::1\]:1\/db: no server accepts writes \(127\.0\.0\.1:1: .*; \[::1\]:1: /,
    ],
    ['postgres://demo:secret@a/db?load_balance_hosts=random', /the parameter load_balance_hosts .*Remove it/],
    ['postgres://demo:secret@a/db?hostaddr=10.0.0.1,10.0.0.2', /the parameter hostaddr .*Remove it/],
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
