/** What a Version record that is right is read as; test/fixtures has those that are not. */
import assert from 'node:assert/strict';
import { configurationFrom } from '#config';

const record = { apiVersion: 'gateway/v1', kind: 'Version', name: 'first', prefix: '/v1' };

function versionOf(more: object) {
  const { configuration, errors } = configurationFrom({ records: [{ ...record, ...more }] });
  assert.deepEqual(errors, []);
  const [version] = configuration.versions;
  assert.ok(version);
  return version;
}

describe('a Version record', () => {
  it('is read whole, its prefix without the slash at the end', () => {
    const links = { successor: '/v2/', info: 'https://example.com/leaving?from=v1#now' };
    const times = { deprecation: '2026-06-30T00:00:00Z', sunset: '2027-06-30T00:00:00Z' };
    assert.deepEqual(versionOf({ ...times, ...links, prefix: '/api/v1/' }), {
      kind: 'Version',
      name: 'first',
      prefix: '/api/v1',
      deprecatedAtMs: Date.UTC(2026, 5, 30),
      endsAtMs: Date.UTC(2027, 5, 30),
      ...links,
      source: { file: '<options>', line: 1 },
    });
  });

  it('needs one of the two times, and nothing more', () => {
    const { deprecatedAtMs, endsAtMs, successor, info } = versionOf({ sunset: '2027-06-30' });
    assert.deepEqual(
      [deprecatedAtMs, endsAtMs, successor, info],
      [undefined, Date.UTC(2027, 5, 30), undefined, undefined],
    );
    assert.equal(versionOf({ deprecation: '2026-06-30' }).endsAtMs, undefined);
  });

  it('may end in the moment in which it is deprecated', () => {
    const { deprecatedAtMs, endsAtMs } = versionOf({ deprecation: '2027-06-30', sunset: '2027-06-30T02:00:00+02:00' });
    assert.equal(deprecatedAtMs, endsAtMs);
  });

  for (const [written, expected] of [
    ['2027-06-30', Date.UTC(2027, 5, 30)],
    ['2028-02-29', Date.UTC(2028, 1, 29)],
    ['2027-06-30T23:59:59Z', Date.UTC(2027, 5, 30, 23, 59, 59)],
    ['2027-06-30T23:59:59.250Z', Date.UTC(2027, 5, 30, 23, 59, 59, 250)],
    ['2027-06-30T00:00:00+02:00', Date.UTC(2027, 5, 29, 22)],
    ['2027-06-30T00:00:00-09:30', Date.UTC(2027, 5, 30, 9, 30)],
  ] as const)
    it(`reads ${written}`, () => {
      assert.equal(versionOf({ sunset: written }).endsAtMs, expected);
    });

  for (const successor of ['/v2', '/v2/?from=v1', '/caf%C3%A9/', 'http://next.example', 'HTTPS://next.example/v2/'])
    it(`may be succeeded by ${successor}`, () => {
      assert.equal(versionOf({ sunset: '2027-06-30', successor }).successor, successor);
    });

  it('may be of a part of another', () => {
    const records = ['/v1', '/v1/messages'].map((prefix) => ({
      ...record,
      name: prefix,
      prefix,
      sunset: '2027-06-30',
    }));
    const { configuration, errors } = configurationFrom({ records });
    assert.deepEqual(errors, []);
    assert.equal(configuration.versions.length, 2);
  });
});
