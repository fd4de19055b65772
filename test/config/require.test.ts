/** Tests `requireConfiguration`, which rejects with a single error that lists all problems. */
import assert from 'node:assert/strict';
import { fileURLToPath } from 'node:url';
import { type ConfigurationRecords, requireConfiguration, requireSettings } from '#config';

const shipped = fileURLToPath(new URL('../../config', import.meta.url));

const hash = `$scrypt$ln=14,r=8,p=1$${'A'.repeat(22)}$${'A'.repeat(43)}`;
const mapping = { apiVersion: 'gateway/v1', kind: 'Mapping', name: 'hotel', prefix: '/v1/hotels', service: 'hotel' };

describe('requireConfiguration', () => {
  it('accepts records from a program', async () => {
    const { configuration } = await requireConfiguration({ records: [mapping] }, requireSettings({}));
    assert.equal(configuration.mappings[0]?.prefix, '/v1/hotels');
  });

  it('loads the directory in the settings by default', async () => {
    const nowhere = requireSettings({ configDir: '/nowhere/at/all' });
    await assert.rejects(requireConfiguration(undefined, nowhere), /nowhere\/at\/all {2}the directory cannot be read/);
  });

  it('rejects a configuration of the wrong shape, which a program without types may pass', async () => {
    const config = {} as ConfigurationRecords;
    await assert.rejects(requireConfiguration(config, requireSettings({})), {
      message: /^the configuration has an error:\n<options>:1 {2}records is missing\n {4}For example: records: /,
    });
  });

  it('rejects with all errors, sorted by file and line', async () => {
    const records = [
      { ...mapping, prefix: 'v1' },
      { ...mapping, service: '' },
    ];
    const message =
      /^Error: the configuration has 2 errors:\n<options>:1 {2}Mapping hotel: .*\n.*\n<options>:2 {2}Mapping/;
    await assert.rejects(requireConfiguration({ records }, requireSettings({})), message);
  });

  it('rejects demo users with published passwords on a server that is open to the network', async () => {
    const open = requireSettings({ host: '0.0.0.0' });
    const allowed = requireSettings({ host: '0.0.0.0', allowDemoUsers: true });
    await assert.rejects(
      requireConfiguration(shipped, open),
      /demo passwords of demo and guest .* HOST=0\.0\.0\.0 .*ALLOW_DEMO_USERS=true/,
    );
    assert.equal((await requireConfiguration(shipped, allowed)).configuration.users.length, 2);
    const users = [{ name: 'demo', password_hash: hash }];
    assert.equal((await requireConfiguration({ records: [], users }, open)).configuration.users.length, 1);
  });
});
