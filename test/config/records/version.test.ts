/** What a Version record that is right becomes; test/fixtures has those that are refused. */
import assert from 'node:assert/strict';
import { configurationFrom } from '#config';

const head = { apiVersion: 'gateway/v1', kind: 'Version' };

function versionsOf(...records: readonly object[]) {
  const { configuration, errors } = configurationFrom({ records: records.map((record) => ({ ...head, ...record })) });
  assert.deepEqual(errors, []);
  return configuration.versions;
}

describe('a Version record', () => {
  const check = (written: object, expected: object) =>
    it(`reads ${JSON.stringify(written)}`, () => {
      const unset = { deprecatedAtMs: undefined, endsAtMs: undefined, successor: undefined, info: undefined };
      const common = { kind: 'Version', name: 'first', prefix: '/v1', source: { file: '<options>', line: 1 } };
      const [version] = versionsOf({ name: 'first', prefix: '/v1', ...written });
      assert.deepEqual(version, { ...common, ...unset, ...expected });
    });

  const june = Date.UTC(2027, 5, 30);
  check({ prefix: '/api/v1/', sunset: '2027-06-30' }, { prefix: '/api/v1', endsAtMs: june });
  check({ deprecation: '2027-06-30' }, { deprecatedAtMs: june });
  check({ deprecation: '2027-06-30', sunset: '2027-06-30T02:00:00+02:00' }, { deprecatedAtMs: june, endsAtMs: june });
  check({ sunset: '2028-02-29' }, { endsAtMs: Date.UTC(2028, 1, 29) });
  check({ sunset: '2027-06-30T23:59:59Z' }, { endsAtMs: Date.UTC(2027, 5, 30, 23, 59, 59) });
  check({ sunset: '2027-06-30T23:59:59.250Z' }, { endsAtMs: Date.UTC(2027, 5, 30, 23, 59, 59, 250) });
  check({ sunset: '2027-06-30T00:00:00-09:30' }, { endsAtMs: Date.UTC(2027, 5, 30, 9, 30) });

  const info = 'https://example.com/leaving?from=v1#now';
  check({ sunset: '2027-06-30', info }, { endsAtMs: june, info });
  for (const successor of ['/v2', '/v2/?from=v1', '/caf%C3%A9/', 'http://next.example', 'HTTPS://next.example/v2/'])
    check({ sunset: '2027-06-30', successor }, { endsAtMs: june, successor });

  it('may be of a part of another', () => {
    const [all, part] = ['/v1', '/v1/messages'].map((prefix) => ({ name: prefix, prefix, sunset: '2027-06-30' }));
    assert.equal(versionsOf({ ...all }, { ...part }).length, 2);
  });
});
