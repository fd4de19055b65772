/** The users of the configuration: found by name, refused with a remedy, and the decoy for everybody else. */
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

  it('holds a user whose name means something to JavaScript', () => {
    assert.ok(createUsers([{ name: '__proto__', passwordHash }]).find('__proto__'));
  });

  it('takes names that can stand in a header', () => {
    for (const name of ['a', 'demo', 'Jane Doe', 'jane@example.org', '100%', 'x'.repeat(64)])
      assert.ok(createUsers([{ name, passwordHash }]).find(name), name);
  });

  it('refuses names that cannot, or that another server would read differently', () => {
    for (const name of ['', 'J\u00fcrgen', '\u738b', ' demo', 'demo ', 'de\nmo', 'de\0mo', 'de:mo'])
      assert.throws(() => createUsers([{ name, passwordHash }]), /printable ASCII without a colon/, name);
  });

  it('refuses a name that is there twice', () => {
    const twice = [
      { name: 'demo', passwordHash },
      { name: 'demo', passwordHash },
    ];
    assert.throws(() => createUsers(twice), /^Error: user "demo": the name is there twice; remove one of the two$/);
  });

  it('names all unusable users at once, with the remedy and without the hash', () => {
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

describe('the decoy', () => {
  const costOf = (...costs: string[]) =>
    createUsers(costs.map((cost, index) => ({ name: `user${index}`, passwordHash: phc(cost) }))).decoy.cost;

  it('costs what the dearest user costs', () => {
    assert.deepEqual(costOf('ln=10,r=8,p=1', 'ln=12,r=8,p=1', 'ln=11,r=8,p=1'), { ln: 12, r: 8, p: 1 });
    assert.deepEqual(costOf('ln=12,r=8,p=1', 'ln=11,r=8,p=4'), { ln: 11, r: 8, p: 4 });
    assert.deepEqual(costOf('ln=2,r=1,p=1'), { ln: 2, r: 1, p: 1 });
  });

  it('costs what a new hash costs when there are no users', () => assert.deepEqual(costOf(), { ln: 14, r: 8, p: 1 }));

  it('is random, so that nobody knows a password for it', () => {
    const asked: number[] = [];
    const users = createUsers([{ name: 'demo', passwordHash }], (bytes) => {
      asked.push(bytes);
      return Buffer.alloc(bytes, 9);
    });
    assert.deepEqual(asked, [16, 32]);
    assert.deepEqual(users.decoy.hash, Buffer.alloc(32, 9));
    assert.notDeepEqual(createUsers([]).decoy, createUsers([]).decoy);
  });
});
