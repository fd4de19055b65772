/** A busy file is asked again, a little later each time, and not for ever. */
import assert from 'node:assert/strict';
import { patiently } from '../../src/storage/patience.ts';

const busy = Object.assign(new Error('database is locked'), { code: 'ERR_SQLITE_ERROR', errcode: 5 });

describe('patiently', () => {
  it('gives what it gets without waiting when the file is free', async () => {
    const wait = () => assert.fail('waited');
    assert.equal(await patiently(() => 1, { wait }), 1);
  });

  it('asks again until the file is free', async () => {
    const pauses: number[] = [];
    let asked = 0;
    const ask = () => {
      asked += 1;
      if (asked < 4) throw busy;
      return 'row';
    };
    assert.equal(await patiently(ask, { wait: async (pauseMs) => pauses.push(pauseMs) }), 'row');
    assert.deepEqual(pauses, [1, 2, 3]);
  });

  it('gives up with the last error after its attempts', async () => {
    let asked = 0;
    const ask = async () => {
      asked += 1;
      throw busy;
    };
    await assert.rejects(patiently(ask, { attempts: 5, wait: async () => {} }), busy);
    assert.equal(asked, 5);
  });

  it('does not repeat what failed for another reason', async () => {
    let asked = 0;
    const ask = () => {
      asked += 1;
      throw new Error('syntax');
    };
    await assert.rejects(patiently(ask, { wait: async () => {} }), /syntax/);
    assert.equal(asked, 1);
  });
});
