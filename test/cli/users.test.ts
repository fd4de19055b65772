/** Reading a new password from a terminal or a pipe. */
import assert from 'node:assert/strict';
import { PassThrough } from 'node:stream';
import { text as textOf } from 'node:stream/consumers';
import { readPassword } from '../../src/cli/users.ts';

/** Types the text key by key. Returns the password or error, and what the terminal shows. */
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
  it('prompts twice on a terminal, and echoes nothing', async () => {
    const shown = 'Password: \nRepeat password: \n';
    assert.deepEqual(await type('pass wörd\rpass wörd\r'), { result: 'pass wörd', shown });
  });

  it('applies corrections made with backspace', async () => {
    assert.equal((await type('passs\x7f\rpass\r')).result, 'pass');
  });

  for (const [what, typed, message] of [
    ['two passwords do not match', 'one\rother\r', /do not match: try again/],
    ['the password is empty', '\r', /no password/],
    ['Ctrl-C is pressed', 'one\x03', /no password/],
    ['the terminal is closed', 'one\r', /no password/],
  ] as const)
    it(`rejects when ${what}`, async () => assert.match((await type(typed)).result, message));

  for (const isTTY of [true, false])
    it(`rejects a password that is not UTF-8 ${isTTY ? 'on a terminal' : 'in a pipe'}`, async () => {
      const typed = Buffer.from('pässe\rpässe\r', 'latin1');
      assert.match((await type(typed, isTTY)).result, /not valid UTF-8/);
    });

  it('reads the first line of a pipe unchanged, without a prompt', async () => {
    assert.deepEqual(await type(' pass \nmore\n', false), { result: ' pass ', shown: '' });
    for (const text of ['\nmore\n', '']) assert.match((await type(text, false)).result, /no password/);
  });
});
