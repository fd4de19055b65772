/** What is taken out of texts that others wrote. */
import assert from 'node:assert/strict';
import { conceal, concealMessage } from '../../src/config/conceal.ts';

describe('conceal', () => {
  function check(text: string, expected: string) {
    assert.equal(conceal(text), expected);
  }

  it('takes user and password out of every URL, and leaves the rest', () => {
    check('no answer of postgres://ann:pw@db:5432/x', 'no answer of postgres://…@db:5432/x');
    check('redis://:pw@one, redis://ann@two', 'redis://…@one, redis://…@two');
    check('http://ann:p/w?x#y@host', 'http://…@host');
    check('http://ann:p@w@host', 'http://…@host');
    check('/to/http:/ann:pw@host', '/to/http:/…@host');
    check('/to/http%3A%2F%2Fann%3Apw%40host/x', '/to/http%3A%2F%2F…@host/x');
    check('/to/http:%2f%2fann:p%2Fw@host/x', '/to/http:%2f%2f…@host/x');
    check('/to/http%3A//ann%40host/x', '/to/http%3A//…@host/x');
    check('/at/10%3A30%2F20/ann%40host', '/at/10%3A30%2F20/ann%40host');
    check('/at/10:30/ann@host', '/at/10:30/ann@host');
    check('connect ECONNREFUSED 127.0.0.1:80', 'connect ECONNREFUSED 127.0.0.1:80');
    check('http://host:80/path, ann@example.com', 'http://host:80/path, ann@example.com');
  });

  it('takes out what may be the beginning of them, where a text was cut', () => {
    check('no answer of http://ann:p…', 'no answer of http://…@');
    check('/to/http:%2F%2Fann…', '/to/http:%2F%2F…@');
    check('http://host:80/path is long…', 'http://host:80/path is long…');
  });
});

describe('concealMessage', () => {
  function check(message: string, expected: string) {
    assert.equal(concealMessage(message), expected);
  }

  it('takes out what is quoted of a field that names a secret', () => {
    check('regex_headers.x-token "pw(" is no regular expression: `pw(`', 'regex_headers.x-token "…"');
    check('regex_headers.x-city "Paris(" is wrong', 'regex_headers.x-city "Paris(" is wrong');
    check('unknown key "token"', 'unknown key "token"');
  });

  it('takes user and password out of a reference without a scheme', () => {
    check('service "ann:pw@shop:80" is wrong', 'service "…@shop:80" is wrong');
    check('service "shop:80" is wrong', 'service "shop:80" is wrong');
  });

  it('takes out the value of a descriptor that stands twice', () => {
    check('the key "api_key" with the value "pw" stands twice', 'the key "api_key" with the value "…" stands twice');
    check('the key "generic_key" with the value "x"', 'the key "generic_key" with the value "x"');
    check('the key "api_key" without a value', 'the key "api_key" without a value');
  });
});
