/** Configuration errors: the name that a mistyped one was meant for, and the text that people read. */
import assert from 'node:assert/strict';
import * as fc from 'fast-check';
import { configurationFrom, formatErrors } from '#config';
import { didYouMean, editDistance, suggestion } from '../../src/config/errors.ts';

const known = ['prefix', 'rewrite', 'service', 'timeout_ms', 'labels', 'auth_service'];

function check(mistyped: string, expected: string | undefined): void {
  it(`takes ${JSON.stringify(mistyped)} for ${expected ?? 'nothing known'}`, () => {
    assert.equal(suggestion(mistyped, known), expected);
  });
}

describe('suggestion', () => {
  check('prefx', 'prefix');
  check('perfix', 'prefix');
  check('Prefix', 'prefix');
  check('rewrites', 'rewrite');
  check('timeout', 'timeout_ms');
  check('serivce', 'service');
  check('colour', undefined);
  check('ms', undefined);
  check('', undefined);

  it('takes the nearest when several are near', () => {
    assert.equal(suggestion('labeels', ['label', 'table', 'labels']), 'labels');
    assert.equal(suggestion('service', ['auth_service', 'services']), 'services');
  });

  it('ends a sentence, or leaves it as it is', () => {
    assert.equal(didYouMean('prefx', known), ', did you mean "prefix"?');
    assert.equal(didYouMean('colour', known), '');
  });
});

describe('editDistance', () => {
  it('counts letters put in, left out, replaced and swapped', () => {
    assert.equal(editDistance('port', 'ports'), 1);
    assert.equal(editDistance('port', 'prt'), 1);
    assert.equal(editDistance('port', 'part'), 1);
    assert.equal(editDistance('port', 'prot'), 1);
    assert.equal(editDistance('', 'port'), 4);
    assert.equal(editDistance('kitten', 'sitting'), 3);
  });

  it('is the same both ways, nothing to oneself, and never more than the longer word', () => {
    const word = fc.string({ maxLength: 12 });
    void fc.assert(
      fc.property(word, word, (a, b) => {
        assert.equal(editDistance(a, b), editDistance(b, a));
        assert.equal(editDistance(a, a), 0);
        assert.ok(editDistance(a, b) <= Math.max(a.length, b.length));
      }),
    );
  });
});

describe('formatErrors', () => {
  const error = {
    source: { file: '/srv/app/config/services/hotel.yaml', line: 14 },
    record: 'Mapping hotel',
    message: 'unknown key "prefx", did you mean "prefix"?',
    remedy: 'Write "prefix", or remove it.',
  };

  it('says file, line, record and fault, and the remedy on the line below', () => {
    assert.equal(
      formatErrors([error], '/srv/app'),
      'config/services/hotel.yaml:14  Mapping hotel: unknown key "prefx", did you mean "prefix"?\n    Write "prefix", or remove it.',
    );
  });

  it('leaves out the record when the file as a whole is at fault, and names a second place', () => {
    const other = { file: '/srv/app/config/a.yaml', line: 2 };
    assert.equal(
      formatErrors(
        [
          { source: { file: 'users.yaml', line: 1 }, record: undefined, message: 'it clashes', other, remedy: 'Move.' },
          error,
        ],
        '/srv/app',
      ).split('\n')[0],
      'users.yaml:1  it clashes (config/a.yaml:2)',
    );
  });

  /** What is printed of one record that cannot be used. */
  function printed(given: Parameters<typeof configurationFrom>[0]): string {
    const { errors } = configurationFrom(given);
    assert.ok(errors.length > 0);
    return formatErrors(errors, '/srv/app');
  }

  const mapping = { apiVersion: 'gateway/v1', kind: 'Mapping', name: 'shop', prefix: '/', service: 'shop' };
  const authService = { apiVersion: 'gateway/v1', kind: 'AuthService', name: 'auth' };

  it('tells no password of a URL', () => {
    assert.equal(
      printed({ records: [{ ...mapping, service: 'https://ann:hunter2@shop.test/x' }] }).split('\n')[0],
      '<options>:1  Mapping shop: service "https://…@shop.test/x" is not a service reference',
    );
    for (const record of [
      { ...mapping, service: 'ann:hunter2@shop.test' },
      { ...mapping, cors: { origins: ['https://ann:hunter2@shop.test'] } },
      { ...mapping, host: 'http://ann:hunter2@shop.test/' },
      { ...mapping, name: 'http://ann:hunter2@shop.test/', prefix: 'x' },
      { ...authService, auth_service: 'http://ann:hunter2@auth.test/x' },
    ]) {
      const text = printed({ records: [record] });
      assert.ok(!text.includes('hunter2'), text);
    }
  });

  it('tells no value of a header, a user or a descriptor that is a secret by its name', () => {
    for (const given of [
      { records: [{ ...mapping, regex_headers: { Authorization: 'hunter2(' } }] },
      { records: [{ ...mapping, add_request_headers: { 'X-Api-Key': 'hunter2%NOTHING%' } }] },
      { records: [], users: [{ name: 'ann', password_hash: 'hunter2' }] },
      {
        records: [],
        limits: [
          {
            domain: 'd',
            descriptors: [
              { key: 'api_key', value: 'hunter2' },
              { key: 'api_key', value: 'hunter2' },
            ],
          },
        ],
      },
    ]) {
      const text = printed(given);
      assert.ok(!text.includes('hunter2'), text);
    }
  });

  it('tells the name of a service or a header that cannot be one, whatever the field is called', () => {
    assert.match(
      printed({ records: [{ ...authService, auth_service: 'a b' }] }),
      /auth_service "a b" is not a service/,
    );
    const record = { ...authService, auth_service: 'auth', allowed_authorization_headers: ['X User'] };
    assert.match(printed({ records: [record] }), /"X User" is not a header name/);
  });

  it('is empty for no errors', () => {
    assert.equal(formatErrors([], '/'), '');
  });
});
