/** Dear work under a ceiling: shared when it is the same, refused when there is no room. */
import assert from 'node:assert/strict';
import { createVerifications } from '../../src/auth/verifications.ts';

function createWork() {
  const ends: { readonly succeed: () => void; readonly fail: () => void }[] = [];
  const work = () =>
    new Promise<string>((resolve, reject) => {
      ends.push({ succeed: () => resolve('done'), fail: () => reject(new Error('out of memory')) });
    });
  return { work, ends };
}

describe('createVerifications', () => {
  it('runs up to its maximum and refuses the rest at once', () => {
    const { work, ends } = createWork();
    const verifications = createVerifications<string>(2);
    assert.ok(verifications.run('a', work));
    assert.ok(verifications.run('b', work));
    assert.equal(verifications.run('c', work), undefined);
    assert.equal(ends.length, 2);
  });

  it('shares work that is already running, even when there is no room', async () => {
    const { work, ends } = createWork();
    const verifications = createVerifications<string>(1);
    const results = [1, 2, 3].map(() => verifications.run('a', work));
    assert.equal(ends.length, 1);
    ends[0]?.succeed();
    assert.deepEqual(await Promise.all(results), ['done', 'done', 'done']);
  });

  it('has room again when work is done, and does it anew', async () => {
    const { work, ends } = createWork();
    const verifications = createVerifications<string>(1);
    const first = verifications.run('a', work);
    ends[0]?.succeed();
    await first;
    assert.ok(verifications.run('a', work));
    assert.equal(ends.length, 2);
  });

  it('has room again when work failed, and tells everybody who shared it', async () => {
    const { work, ends } = createWork();
    const verifications = createVerifications<string>(1);
    const results = [verifications.run('a', work), verifications.run('a', work)];
    ends[0]?.fail();
    for (const result of results) await assert.rejects(async () => result, /out of memory/);
    assert.ok(verifications.run('b', work));
  });
});
