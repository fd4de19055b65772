/** The user store: look-up, error messages for invalid users, and dummy hashes for unknown names. */
import assert from 'node:assert/strict';
import { createUsers } from '#auth';

const phc = (cost: string, letter = 'A') => `$scrypt$${cost}$${letter.repeat(22)}$${letter.repeat(43)}`;
const passwordHash = phc('ln=14,r=8,p=1');

describe('createUsers', () => {
  it('finds a user by the exact name', () => {
    const users = createUsers([{ name: 'demo', passwordHash }]);
    assert.deepEqual(users.find('demo')?.cost, { ln: 14, r: 8, p: 1 });
    for (const name of ['Demo', 'demo ', '', 'guest', '__proto__', 'constructor', 'toString'])
      assert.equal(users.find(name), undefined, name);
  });

  it('accepts names that can be sent in a header', () => {
    for (const name of ['a', 'demo', 'Jane Doe', 'jane@example.org', '100%', '__proto__', 'x'.repeat(64)])
      assert.ok(createUsers([{ name, passwordHash }]).find(name), name);
  });

  it('rejects names that cannot be sent in a header or that another server would parse differently', () => {
    for (const name of ['', 'J\u00fcrgen', '\u738b', ' demo', 'demo ', 'de\nmo', 'de\0mo', 'de:mo'])
      assert.throws(
        () => createUsers([{ name, passwordHash }]),
        /the name is empty or contains a colon, a non-ASCII or control character/,
        name,
      );
  });

  it('rejects a configuration in place of its users', () => {
    assert.throws(() => createUsers({ users: [] } as never), /^TypeError: the users must be a list/);
  });

  it('rejects a duplicate name', () => {
    const demo = { name: 'demo', passwordHash };
    assert.throws(
      () => createUsers([demo, demo]),
      /^Error: user "demo": another user already has this name; rename one of the two, or remove it$/,
    );
  });

  it('reports all invalid users together, with a remedy and without their hashes', () => {
    const bad = [
      { name: 'demo', passwordHash: 'plain' },
      { name: 'guest', passwordHash },
      { name: 'de:mo', passwordHash },
    ];
    assert.throws(
      () => createUsers(bad),
      (error: Error) => {
        assert.match(error.message, /^user "demo": .*frontdesk hash-password.*\nuser "de:mo": .*$/);
        assert.doesNotMatch(error.message, /plain|guest/);
        return true;
      },
    );
  });
});

describe('the dummy hash of an unknown name', () => {
  const names = Array.from({ length: 200 }, (_, index) => `unknown-${index}`);
  const costsOf = (...costs: string[]) => {
    const users = createUsers(costs.map((cost, index) => ({ name: `user${index}`, passwordHash: phc(cost) })));
    return names.map((name) => users.dummyHash(name).cost.ln);
  };

  it('has a cost distributed like those of users', () => {
    assert.deepEqual(new Set(costsOf('ln=12,r=8,p=1', 'ln=12,r=8,p=1')), new Set([12]));
    assert.deepEqual(new Set(costsOf('ln=10,r=8,p=1', 'ln=14,r=8,p=1')), new Set([10, 14]));
    const rare = costsOf('ln=10,r=8,p=1', ...Array<string>(9).fill('ln=14,r=8,p=1')).filter((ln) => ln === 10);
    assert.ok(rare.length < names.length / 2, `${rare.length}`);
  });

  it('has the default cost if there are no users', () => assert.deepEqual(new Set(costsOf()), new Set([14])));

  it('has a constant cost for each name', () => {
    const users = createUsers([10, 14].map((ln) => ({ name: `user${ln}`, passwordHash: phc(`ln=${ln},r=8,p=1`) })));
    for (const name of names) assert.deepEqual(users.dummyHash(name), users.dummyHash(name));
  });

  it('is random, so that no known password matches it', () => {
    const requestedSizes: number[] = [];
    const users = createUsers([{ name: 'demo', passwordHash }], (bytes) => {
      requestedSizes.push(bytes);
      return Buffer.alloc(bytes, 9);
    });
    assert.deepEqual(requestedSizes, [16, 32, 16]);
    assert.deepEqual(users.dummyHash('x').hash, Buffer.alloc(32, 9));
    assert.notDeepEqual(createUsers([]).dummyHash('x'), createUsers([]).dummyHash('x'));
  });
});
