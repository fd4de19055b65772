/** Notices of guarded mappings whose path, in another spelling, reaches an open mapping to the same service. */
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
    it(`is named when another spelling reaches it, unless paths are strict: ${what}`, () => {
      const [notice = '', ...others] = noticesOf(records);
      assert.match(
        notice,
        /^Mapping guarded its path in another spelling, such as "\/\S+" or "\/\S+;x", reaches Mapping open/,
      );
      assert.deepEqual([others, noticesOf(records, true)], [[], []]);
    });

  it('is named when an open one has its prefix in another case, with strict paths too', () => {
    for (const strictPaths of [false, true])
      assert.deepEqual(noticesOf([guarded('/admin'), open('/Admin')], strictPaths), [
        'Mapping guarded "/Admin" is the same path to a service that ignores case, and Mapping open opens it',
      ]);
  });

  const pattern = { prefix_regex: true };
  for (const [what, spelling, ...records] of [
    ['a pattern beside an open path', '/ADMIN', guarded('/admin(/.*)?', pattern), open('/')],
    ['a pattern within a segment', '/ADMI', guarded('/admi[n]', pattern), open('/')],
    ['a pattern with a number', '/app/USERS/', guarded('^/app/users/[0-9]+', pattern), open('/app')],
    ['a pattern beside its own path', '/Admin/', guarded('/admin/.*', pattern), open('/Admin')],
    ['a path beside an open pattern', '/ADMIN', guarded('/admin'), open('/.*', pattern)],
    ['a path beside an open pattern of lower case', '/admin;x', guarded('/admin'), open('/[a-z;]*', pattern)],
  ] as const)
    it(`is named when another spelling reaches it, unless paths are strict: ${what}`, () => {
      assert.deepEqual(noticesOf(records), [
        `Mapping guarded its path in another spelling, such as "${spelling}", reaches Mapping open, which asks for no credentials`,
      ]);
      assert.deepEqual(noticesOf(records, true), []);
    });

  const quiet: readonly (readonly [string, readonly object[]])[] = [
    ['the open one leads to another service', [guarded('/admin'), open('/', { service: 'other' })]],
    ['the open one has other conditions', [guarded('/admin'), open('/', { host: 'a.example' })]],
    ['the open one is exact', [guarded('/admin/x'), open('/admin', { prefix_exact: true })]],
    ['the open one is below it', [guarded('/'), open('/public')]],
    ['its pattern takes any case', [guarded('(?i)/admin(/.*)?', pattern), open('/')]],
    ['its pattern has no letters', [guarded('/[a-z]+/admin', pattern), open('/')]],
    ['its pattern has alternatives', [guarded('/a|/[b]', pattern), open('/')]],
    ['the open one is a pattern of this spelling alone', [guarded('/admin'), open('/admin', pattern)]],
    ['the open one leads elsewhere by a pattern', [guarded('/admin'), open('/.*', { ...pattern, service: 'other' })]],
    ['both are patterns', [guarded('/admin', pattern), open('/.*', pattern)]],
    ['both are open', [guarded('/admin', { bypass_auth: true }), open('/')]],
  ];
  for (const [what, records] of quiet)
    it(`is not named when ${what}`, () => {
      assert.deepEqual(noticesOf(records), []);
    });
});
