/** Tests the notices about guarded mappings whose path, in another spelling, reaches an open mapping. */
import assert from 'node:assert/strict';
import { configurationFrom } from '#config';
import { mappingRecord } from '../support/desks.ts';

const guarded = (prefix: string, more: object = {}) => mappingRecord('guarded', prefix, 'app', more);
const open = (prefix: string, more: object = {}) =>
  mappingRecord('open', prefix, 'app', { bypass_auth: true, ...more });

function noticesOf(records: readonly object[], strictPaths = false): readonly string[] {
  return configurationFrom({ records }, { strictPaths }).notices.map(({ record, message }) => `${record} ${message}`);
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

  it('gets a notice when an open one has its prefix in another case, even with strict paths', () => {
    for (const strictPaths of [false, true])
      assert.deepEqual(noticesOf([guarded('/admin'), open('/Admin')], strictPaths), [
        'Mapping guarded a service that ignores case treats "/Admin" as the same path, and Mapping open requires no credentials',
      ]);
  });

  const pattern = { prefix_regex: true };
  for (const [what, spelling, ...records] of [
    ['a pattern and an open path', '/ADMIN', guarded('/admin(/.*)?', pattern), open('/')],
    ['a pattern within a segment', '/ADMI', guarded('/admi[n]', pattern), open('/')],
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
