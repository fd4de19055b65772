/** Concealing credentials in texts. */
import assert from 'node:assert/strict';
import { conceal } from '../../../src/diag/snapshot/conceal.ts';

function check(title: string, read: (text: string) => string, texts: readonly (readonly [string, string?])[]): void {
  it(title, () => {
    for (const [text, expected = text] of texts) assert.equal(read(text), expected);
  });
}

describe('conceal', () => {
  check('removes user and password from every URL, and keeps the rest', conceal, [
    ['no answer of postgres://ann:pw@db:5432/x', 'no answer of postgres://…@db:5432/x'],
    ['redis://:pw@one, redis://ann@two', 'redis://…@one, redis://…@two'],
    ['http://ann:p/w?x#y@host', 'http://…@host'],
    ['http://ann:p@w@host', 'http://…@host'],
    ['/to/http:/ann:pw@host', '/to/http:/…@host'],
    ['/to/http%3A%2F%2Fann%3Apw%40host/x', '/to/http%3A%2F%2F…@host/x'],
    ['/to/http:%2f%2fann:p%2Fw@host/x', '/to/http:%2f%2f…@host/x'],
    ['/to/http%3A//ann%40host/x', '/to/http%3A//…@host/x'],
    ['/at/10%3A30%2F20/ann%40host'],
    ['/at/10:30/ann@host'],
    ['connect ECONNREFUSED 127.0.0.1:80'],
    ['http://host:80/path, ann@example.com'],
  ]);

  check('removes a possible beginning of them at the end of a truncated text', conceal, [
    ['no answer of http://ann:p…', 'no answer of http://…@'],
    ['/to/http:%2F%2Fann…', '/to/http:%2F%2F…@'],
    ['http://host:80/path is long…'],
  ]);
});
