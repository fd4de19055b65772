/** Tests of what an object says about itself: all errors with remedies, within the bounds of the Kubernetes API. */
import assert from 'node:assert/strict';
import type { ConfigurationError, ObjectVerdict } from '#config';
import { verdictText } from '../../../src/kubernetes/reports/verdict-text.ts';
import { accepted, errorOf, mappingOf, refused } from './verdicts.ts';

const mapping = mappingOf('orders', 'shop');
const service = {
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name: 'orders', namespace: 'shop' },
};
const error = (message: string, more: Partial<ConfigurationError> = {}) => errorOf(mapping, message, more);

function check(verdict: ObjectVerdict, expected: Partial<ReturnType<typeof verdictText>>): void {
  const found = Object.entries(verdictText(verdict)).filter(([name]) => name in expected);
  assert.deepEqual(Object.fromEntries(found), expected);
}

describe('the text of a verdict', () => {
  it('says that an accepted object is in use', () => {
    check(accepted(mapping), { isAccepted: true, reason: 'Accepted', message: 'In use.', note: 'In use.' });
  });

  it('adds the notices about an accepted object', () => {
    check(accepted(mapping, error('host "a.example" is matched by no certificate', { remedy: 'Add one.' })), {
      reason: 'Accepted',
      message: 'In use, but it may not do what you expect.\nhost "a.example" is matched by no certificate\n  Add one.',
    });
  });

  it('gives each error of a refused object with its remedy, and what holds until it is fixed', () => {
    check(refused(mapping, error('prefix is missing'), error('service is missing', { remedy: 'service: orders' })), {
      isAccepted: false,
      reason: 'Invalid',
      message:
        'Not in use. Until it is fixed, requests that it matches are answered with 503.\nprefix is missing\n  prefix: /v1\nservice is missing\n  service: orders',
      note: 'prefix is missing. prefix: /v1 service is missing. service: orders (until it is fixed, requests that it matches are answered with 503)',
    });
  });

  it('adds no full stop to a question in the line of the Event', () => {
    const unknown = error('unknown key "prefx", did you mean "prefix"?', { remedy: 'Write "prefix".' });
    check(refused(mapping, unknown), {
      note: 'unknown key "prefx", did you mean "prefix"? Write "prefix". (until it is fixed, requests that it matches are answered with 503)',
    });
  });

  it('names the line of an annotation and its record, and the object of a conflict', () => {
    const other = { file: 'Mapping other/orders', line: 0 };
    const source = { file: 'Service shop/orders', line: 3 };
    const conflict = error('has the same match as an older record', { source, other, remedy: 'Change one.' });
    check(refused(service, conflict), {
      reason: 'Conflict',
      message:
        'Not in use. Until it is fixed, requests that it matches are answered with 503.\nline 3, Mapping orders: has the same match as an older record (Mapping other/orders)\n  Change one.',
    });
  });

  it('says that the last valid version of a refused object stays', () => {
    const verdict = { ...refused(mapping, error('prefix is missing')), state: 'last-valid' as const };
    check(
      { ...verdict, consequence: 'its last valid version stays' },
      { note: 'prefix is missing. prefix: /v1 (until it is fixed, its last valid version stays)' },
    );
  });

  it('stays within the bounds of conditions and Events, whatever the number and length of the errors', () => {
    const long = Array.from({ length: 500 }, (_, index) =>
      error(`${index} ${'x\n'.repeat(5_000)}`, { remedy: '🙂'.repeat(5_000) }),
    );
    const { message, note } = verdictText(refused(mapping, ...long));
    assert.ok(message.length <= 32_768);
    assert.ok(message.endsWith('And 490 more: frontdesk check --kubernetes lists all of them.'));
    assert.ok([...note].length <= 1_024);
    assert.ok(!note.includes('\n'));
    assert.ok(note.endsWith('answered with 503)'));
  });
});
