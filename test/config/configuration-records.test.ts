import assert from 'node:assert/strict';
import { configurationFrom } from '#config';
import { createFrontdesk } from '../../src/index.ts';

/** What a program without types may hand in. */
const configurationOf = (given: unknown) => configurationFrom(given as Parameters<typeof configurationFrom>[0]);

describe('records that a program hands in', () => {
  const check = (name: string, given: unknown, message: string, remedy: RegExp) =>
    it(`must be a map of lists: ${name}`, () => {
      const { configuration, errors } = configurationOf(given);
      assert.deepEqual(
        errors.map((error) => [error.source, error.record, error.message]),
        [[{ file: '<options>', line: 1 }, undefined, message]],
      );
      assert.match(errors[0]?.remedy ?? '', remedy);
      assert.deepEqual(configuration.mappings, []);
    });

  check('nothing in it', {}, 'records is missing', /^For example: records: \[/);
  check('a word for another', { record: [] }, 'unknown key "record", did you mean "records"?', /^Write "records"/);
  check(
    'a list beside it',
    { records: [], route: [] },
    'unknown key "route"',
    /the known keys are records, limits, users, demo/,
  );
  check(
    'one record',
    { records: { kind: 'Mapping' } },
    'records must be a list, not a map',
    /^For example: records: \[/,
  );
  check('one domain', { records: [], limits: { domain: 'd' } }, 'limits must be a list, not a map', /limits: \[/);
  check('one user', { records: [], users: { name: 'a' } }, 'users must be a list, not a map', /users: \[/);
  check('the list alone', [], 'the configuration must be a map, not a list', /^For example: \{ records: \[/);
  check('nothing', null, 'the configuration must be a map, not nothing', /^For example: \{ records: \[/);

  it('may lack the lists that are not needed', () => {
    const given = { records: [], limits: undefined, users: undefined, demo: undefined };
    for (const one of [given, { records: [] }]) assert.deepEqual(configurationOf(one).errors, []);
  });

  it('keep a desk from being made, with the same words', async () => {
    const config = {} as Parameters<typeof configurationFrom>[0];
    await assert.rejects(createFrontdesk({ config }), {
      message: /^the configuration has an error:\n<options>:1 {2}records is missing\n {4}For example: records: /,
    });
  });
});
