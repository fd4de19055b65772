/** Questions of one turn, asked together, each with an answer of its own. */
import assert from 'node:assert/strict';
import { createBatches } from '../../src/ratelimit/batches.ts';

describe('batches', () => {
  let asked: (readonly number[])[];
  let answer: (questions: readonly number[]) => readonly (string | Error)[];

  beforeEach(() => {
    asked = [];
    answer = (questions) => questions.map(String);
  });

  const batches = () =>
    createBatches<number, string>({
      async ask(questions) {
        asked.push(questions);
        return answer(questions);
      },
      weightOf: (question) => question,
      weightMax: 10,
    });

  it('ask everything of a turn at once, and give each its answer', async () => {
    const ask = batches();
    assert.deepEqual(await Promise.all([ask(1), ask(2), ask(3)]), ['1', '2', '3']);
    assert.deepEqual(asked, [[1, 2, 3]]);
  });

  it('ask what comes in the next turn by itself', async () => {
    const ask = batches();
    const first = ask(1);
    await new Promise((resolve) => setImmediate(resolve));
    await Promise.all([first, ask(2)]);
    assert.deepEqual(asked, [[1], [2]]);
  });

  it('weigh no more than they may, but for what does so alone', async () => {
    const ask = batches();
    await Promise.all([4, 6, 1, 30, 9, 1].map(ask));
    assert.deepEqual(asked, [[4, 6], [1], [30], [9, 1]]);
  });

  it('let one question fail without the others', async () => {
    answer = (questions) => questions.map((question) => (question === 2 ? new Error('not this') : String(question)));
    const ask = batches();
    const [first, second, third] = await Promise.allSettled([ask(1), ask(2), ask(3)]);
    assert.deepEqual([first.status, second.status, third.status], ['fulfilled', 'rejected', 'fulfilled']);
  });

  it('fail together when nobody answers, and ask again the next time', async () => {
    answer = () => {
      throw new Error('nobody there');
    };
    const ask = batches();
    const failed = [ask(1), ask(2)];
    for (const promise of failed) await assert.rejects(promise, /nobody there/);
    answer = (questions) => questions.map(String);
    assert.equal(await ask(3), '3');
  });
});
