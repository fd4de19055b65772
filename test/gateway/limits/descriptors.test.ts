/** Turning the labels of a mapping into descriptors. */
import assert from 'node:assert/strict';
import type { Label, LabelGroup } from '#config';
import { requestBounds, requestBytesMax } from '#ratelimit/limit';
import type { RequestAttributes } from '#routing';
import { createDescriptors } from '../../../src/gateway/limits/descriptors.ts';

type HeaderLabel = Extract<Label, { kind: 'header' }>;

const label = (name: string, fields: Partial<HeaderLabel> = {}): Label => ({
  kind: 'header',
  name,
  header: name,
  omitIfNotPresent: true,
  default: '',
  ...fields,
});

const group = (...labels: Label[]): LabelGroup => ({ name: 'group', labels });

const attributes: RequestAttributes = {
  method: 'POST',
  path: '/v1/hotels/x',
  search: '?y=1',
  host: 'api.example.com',
  client: '203.0.113.7',
  listener: 'http',
  headers: {},
};

/** Formats each descriptor as text: `a=1,b=2`. */
const describing =
  (groups: readonly LabelGroup[], ...folds: [boolean?]) =>
  (request: Partial<RequestAttributes> = {}) =>
    createDescriptors(
      groups,
      'hotel:8080',
      ...folds,
    )({ ...attributes, ...request }).map(({ entries }) => entries.map(({ key, value }) => `${key}=${value}`).join());

describe('labels to descriptors', () => {
  function check(what: string, groups: LabelGroup[], headers: RequestAttributes['headers'], ...expected: string[]) {
    it(what, () => assert.deepEqual(describing(groups)({ headers }), expected));
  }

  const [ab, c] = [group(label('a'), label('b')), group(label('c'))];
  const always = { omitIfNotPresent: false };
  const withDefault = group(label('a', { ...always, default: 'none' }), label('b', always));
  const user = group(label('user', { header: 'x-travel-user' }));

  check(
    'creates one descriptor for each group, in the same order',
    [ab, c],
    { a: '1', b: '2', c: '3' },
    'a=1,b=2',
    'c=3',
  );
  check('reads the value from the header of the label', [user], { 'x-travel-user': 'demo', user: 'me' }, 'user=demo');
  check('omits a label whose header is missing, and a group without labels', [ab, c], { b: '2' }, 'b=2');
  check('returns no descriptors when all groups are omitted', [ab, c], {});
  check('sends the default, or an empty value, without omit_if_not_present', [withDefault], {}, 'a=none,b=');
  const utf8 = (text: string) => Buffer.from(text).toString('latin1');
  check('reads a value in UTF-8 as text', [c], { c: utf8('müller 文件') }, 'c=müller 文件');
  check('reads a repeated header in UTF-8 as text', [c], { c: ['a', utf8('ü')] } as never, 'c=a, ü');
  check('reads bytes that are not UTF-8 one by one', [c], { c: 'm\xfcller\xff' }, 'c=müllerÿ');
  check('keeps text that code in this process has set', [c], { c: '\u010d\xc3\xbc' }, 'c=\u010d\xc3\xbc');
  check('keeps a header that is present but empty', [c], { c: '' }, 'c=');
  check('joins a repeated header', [c], { c: ['a', 'b'] } as never, 'c=a, b');

  const site = group(label('site', { header: 'host' }));
  check('normalises the host like mappings do', [site], { host: 'API.example.com.:81' }, 'site=api.example.com');
  it('sends an invalid host unchanged', () => {
    assert.deepEqual(describing([site])({ host: '', headers: { host: "it's" } }), ["site=it's"]);
    assert.deepEqual(describing([site])({ host: '' }), []);
  });

  for (const [what, one, value] of [
    ['a fixed value', { kind: 'generic_key', name: 'g', value: 'bookings' }, 'bookings'],
    ['the address of the client', { kind: 'remote_address', name: 'from' }, '203.0.113.7'],
    [
      'the network of the client',
      { kind: 'masked_remote_address', name: 'from', ipv4: 24, ipv6: 64 },
      '203.0.113.0/24',
    ],
    ['the name of the gateway', { kind: 'source_cluster', name: 'by' }, 'frontdesk'],
    ['the service of the mapping', { kind: 'destination_cluster', name: 'to' }, 'hotel:8080'],
    ['the method', { kind: 'method', name: 'method' }, 'POST'],
    ['the path, without the query', { kind: 'path', name: 'at' }, '/v1/hotels/x'],
  ] as const)
    check(`sends ${what}`, [group(one)], {}, `${one.name}=${value}`);

  it('lower-cases paths when the mapping ignores case, so that all spellings share a counter', () => {
    const groups = [group({ kind: 'path', name: 'at' })];
    const path = '/V1/hOtels/x';
    assert.deepEqual(describing(groups, true)({ path }), ['at=/v1/hotels/x']);
    assert.deepEqual(describing(groups, false)({ path }), [`at=${path}`]);
  });

  it('shortens each of many long values, so that they fit into one request', () => {
    const { descriptors, entries } = requestBounds;
    const labels = Array.from({ length: entries }, () => label('c'));
    const describe = describing(Array.from({ length: descriptors }, () => group(...labels)));
    const bytes = (c: string) => Buffer.byteLength(describe({ headers: { c } }).join());
    for (const c of ['x', 'é', '語']) assert.ok(bytes(c.repeat(16_000)) < requestBytesMax);
  });

  it('shortens long values, and keeps them distinct', () => {
    const describe = (c: string) => describing([group(label('c'))])({ headers: { c } })[0] ?? '';
    const bound = 65_536;
    const long = 'x'.repeat(bound);
    assert.equal(describe(long), `c=${long}`);
    assert.ok(describe(`${long}x`).length <= 'c='.length + bound);
    assert.match(describe(`first${long}last`), /^c=first.*sha256:.*last$/);
    for (const [a, b] of [
      [`${long}a`, `${long}b`],
      [`${long}a${long}`, `${long}b${long}`],
    ] as const) {
      assert.notEqual(describe(a), describe(b));
      assert.equal(describe(a), describe(a));
    }
  });
});
