/** Tests the notices about mappings and versions whose path, in another spelling, has less protection. */
import assert from 'node:assert/strict';
import { configurationFrom } from '#config';
import { mappingRecord } from '../support/desks.ts';
import { untyped } from '../support/untyped.ts';

const guarded = (prefix: string, more: object = {}) => mappingRecord('guarded', prefix, 'app', more);
const open = (prefix: string, more: object = {}) =>
  mappingRecord('open', prefix, 'app', { bypass_auth: true, ...more });

function noticesOf(records: readonly object[], strictPaths = false): readonly string[] {
  return configurationFrom(untyped({ records }), { strictPaths }).notices.map(
    ({ record, message }) => `${record} ${message}`,
  );
}

describe('a guarded mapping', () => {
  const noticed: readonly (readonly [string, readonly object[]])[] = [
    ['an open one at the root', [guarded('/admin'), open('/')]],
    ['an open one above, in another case', [guarded('/App/admin'), open('/app')]],
    [
      'an open one with the same conditions',
      [guarded('/admin', { host: 'a.example' }), open('/', { host: 'a.example' })],
    ],
  ];
  for (const [what, records] of noticed)
    it(`gets a notice unless paths are strict: ${what}`, () => {
      const [notice = '', ...others] = noticesOf(records);
      assert.match(
        notice,
        /^Mapping guarded another spelling of its path, such as "\/\S+" or "\/\S+;x", reaches Mapping open/,
      );
      assert.deepEqual([others, noticesOf(records, true)], [[], []]);
    });

  it('gets a notice with strict paths, and so does an open one that has its prefix in another case', () => {
    const message = (record: string, prefix: string, other: string) =>
      `Mapping ${record} a service that ignores case treats "${prefix}" of Mapping ${other} as the same path, but the two are protected differently, so STRICT_PATHS rejects the requests of both`;
    assert.deepEqual(noticesOf([guarded('/admin'), open('/Admin')], true), [
      message('guarded', '/Admin', 'open'),
      message('open', '/admin', 'guarded'),
    ]);
    assert.deepEqual(noticesOf([guarded('/admin'), guarded('/Admin', { name: 'other' })], true), []);
  });

  const pattern = { prefix_regex: true };
  for (const [what, spelling, ...records] of [
    ['a pattern and an open path', '/ADMIN', guarded('/admin(/.*)?', pattern), open('/')],
    ['a pattern within a segment', '/ADMI', guarded('/admi[n]', pattern), open('/')],
    ['a pattern whose last letter is repeated after empty flags', '/ADMI', guarded('/admin(?){0}', pattern), open('/')],
    ['a pattern with a number', '/app/USERS/', guarded('^/app/users/[0-9]+', pattern), open('/app')],
    ['a pattern and its own path', '/Admin/', guarded('/admin/.*', pattern), open('/Admin')],
    ['a path and an open pattern', '/ADMIN', guarded('/admin'), open('/.*', pattern)],
    ['a path and an open pattern in lower case', '/admin;x', guarded('/admin'), open('/[a-z;]*', pattern)],
  ] as const)
    it(`gets a notice unless paths are strict: ${what}`, () => {
      assert.deepEqual(noticesOf(records), [
        `Mapping guarded another spelling of its path, such as "${spelling}", reaches Mapping open, which requires no credentials`,
      ]);
      assert.deepEqual(noticesOf(records, true), []);
    });

  const quiet: readonly (readonly [string, readonly object[]])[] = [
    ['the open one has another service', [guarded('/admin'), open('/', { service: 'other' })]],
    ['the open one has other conditions', [guarded('/admin'), open('/', { host: 'a.example' })]],
    ['the open one is exact', [guarded('/admin/x'), open('/admin', { prefix_exact: true })]],
    ['the open one is below it', [guarded('/'), open('/public')]],
    ['its pattern ignores case', [guarded('(?i)/admin(/.*)?', pattern), open('/')]],
    ['its pattern has no letters', [guarded('/[a-z]+/admin', pattern), open('/')]],
    ['its pattern has alternatives', [guarded('/a|/[b]', pattern), open('/')]],
    ['the open one is a pattern that matches only this spelling', [guarded('/admin'), open('/admin', pattern)]],
    [
      'the open one is a pattern and has another service',
      [guarded('/admin'), open('/.*', { ...pattern, service: 'other' })],
    ],
    ['both are patterns', [guarded('/admin', pattern), open('/.*', pattern)]],
    ['both are open', [guarded('/admin', { bypass_auth: true }), open('/')]],
  ];
  for (const [what, records] of quiet)
    it(`gets no notice when ${what}`, () => {
      assert.deepEqual(noticesOf(records), []);
    });
});

describe('a mapping with limits, bounds or rules for headers', () => {
  const labels = { gateway: [{ login: [{ remote_address: { key: 'client' } }] }] };
  for (const [fields, more] of [
    ['labels', { labels }],
    ['max_request_bytes, request headers', { max_request_bytes: 1000, remove_request_headers: ['X-Debug'] }],
    ['cors', { cors: { origins: ['https://a.example'] } }],
  ] as const)
    it(`gets a notice unless paths are strict, if the one above lacks its ${fields}`, () => {
      const records = [guarded('/login', { bypass_auth: true, ...more }), open('/')];
      assert.deepEqual(noticesOf(records), [
        `Mapping guarded another spelling of its path, such as "/LOGIN" or "/login;x", reaches Mapping open, which does not have its ${fields}`,
      ]);
      assert.deepEqual(noticesOf(records, true), []);
    });

  it('gets one notice for all of that, and for authentication', () => {
    const [notice = '', ...others] = noticesOf([guarded('/login', { labels }), open('/')]);
    assert.match(notice, /reaches Mapping open, which requires no credentials and does not have its labels$/);
    assert.deepEqual(others, []);
  });

  it('gets no notice if the one above has the same', () => {
    const more = { max_request_bytes: 1000, bypass_auth: true };
    assert.deepEqual(noticesOf([guarded('/login', more), open('/', more)]), []);
  });
});

describe('a version', () => {
  const version = { apiVersion: 'gateway/v1', kind: 'Version', name: 'first', prefix: '/v1', sunset: '2027-06-30' };

  it('gets a notice unless paths are strict, if a mapping above its prefix has its other spellings', () => {
    const records = [open('/'), version];
    assert.deepEqual(noticesOf(records), [
      'Version first another spelling of its path, such as "/V1" or "/v1;x", reaches Mapping open as if there were no Version',
    ]);
    assert.deepEqual(noticesOf(records, true), []);
  });

  it('gets no notice if all mappings are at its prefix or below', () => {
    assert.deepEqual(noticesOf([open('/v1'), guarded('/v1/x'), version]), [
      'Mapping guarded another spelling of its path, such as "/V1/X" or "/v1/x;x", reaches Mapping open, which requires no credentials',
    ]);
  });
});
