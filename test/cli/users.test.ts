/** A new password, as a terminal or a pipe gives it. */
import assert from 'node:assert/strict';
import { PassThrough } from 'node:stream';
import { text as textOf } from 'node:stream/consumers';
import { readPassword } from '../../src/cli/users.ts';

/** What is typed, key by key, and what the terminal shows. */
async function type(text: string | Buffer, isTTY = true) {
  const input = Object.assign(new PassThrough(), { isTTY });
  const output = new PassThrough();
  const shown = textOf(output);
  const reading = readPassword({ input, output });
  for (const key of text) input.write(typeof key === 'string' ? key : Buffer.of(key));
  input.end();
  const result = await reading.catch((error: Error) => error.message);
  output.end();
  return { result, shown: await shown };
}

describe('readPassword', () => {
  it('asks a terminal twice, and echoes nothing', async () => {
    assert.deepEqual(await type('pass wörd\rpass wörd\r'), { result: 'pass wörd', shown: 'Password: \nAgain: \n' });
  });

  it('takes what was typed after a correction', async () => {
    assert.equal((await type('passs\x7f\rpass\r')).result, 'pass');
  });

  for (const [what, typed, message] of [
    ['two that differ', 'one\rother\r', /differ: nothing was written/],
    ['an empty one', '\r', /no password/],
    ['Ctrl-C', 'one\x03', /no password/],
    ['a terminal that closes', 'one\r', /no password/],
  ] as const)
    it(`refuses ${what}`, async () => assert.match((await type(typed)).result, message));

  for (const isTTY of [true, false])
    it(`refuses one that is not UTF-8 ${isTTY ? 'at a terminal' : 'in a pipe'}`, async () => {
      const typed = Buffer.from('pässe\rpässe\r', 'latin1');
      assert.match((await type(typed, isTTY)).result, /not text in UTF-8/);
    });

  it('takes the first line of a pipe, as it is, and asks nothing', async () => {
    assert.deepEqual(await type(' pass \nmore\n', false), { result: ' pass ', shown: '' });
    for (const text of ['\nmore\n', '']) assert.match((await type(text, false)).result, /no password/);
  });
});
