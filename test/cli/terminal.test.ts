/** The output of the command line on a terminal and in a pipe. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { PassThrough } from 'node:stream';
import { text as textOf } from 'node:stream/consumers';
import { WriteStream } from 'node:tty';
import { stripVTControlCharacters, styleText } from 'node:util';
import { requireSettings } from '#config';
import { settingTable } from '#server/product';
import { explainOnce } from '../../src/cli/explain.ts';
import { type Colours, colours, print, wrap } from '../../src/cli/terminal.ts';
import { built } from '../support/programs/built.ts';
import { isInstalled } from '../support/programs/installed.ts';

/** Returns what is written to a stream. `depth` is its number of colour bits, 1 with NO_COLOR. */
async function printed(text: string, chosen: Colours, { isTTY = true, depth = 8, columns = 80 } = {}): Promise<string> {
  const output = Object.assign(new PassThrough(), { isTTY, columns, getColorDepth: () => depth });
  print(output as unknown as WriteStream, text, chosen);
  output.end();
  return textOf(output);
}

const always = { validateStream: false } as const;

describe('print', () => {
  const long = `services/rooms.yaml:4  Mapping rooms: ${'unknown '.repeat(12)}key\n    Write "prefix".\n`;

  it('adds colours on a terminal', async () => {
    const text = await printed('frontdesk 1.0.0 is ready.\n  gateway      http://127.0.0.1:8080\n', colours.start);
    const [ready, name, url] = [
      styleText('green', 'frontdesk 1.0.0 is ready.', always),
      styleText('dim', 'gateway', always),
      styleText('cyan', 'http://127.0.0.1:8080', always),
    ];
    assert.equal(text, `${ready}\n  ${name}      ${url}\n`);
    const place = styleText('bold', 'services/rooms.yaml:4', always);
    assert.ok((await printed(long, colours.errors)).startsWith(`${place}  Mapping`));
  });

  it('adds no colours to a terminal without them, but still wraps the text', async () => {
    const { getColorDepth } = WriteStream.prototype;
    assert.equal(getColorDepth({ TERM: 'xterm-256color', NO_COLOR: '1' }), 1);
    const text = await printed(long, colours.errors, { depth: 1 });
    assert.equal(stripVTControlCharacters(text), text);
    assert.ok(text.split('\n').every((line) => line.length <= 80));
  });

  it('does not change the text in a pipe', async () => {
    assert.equal(await printed(long, colours.errors, { isTTY: false }), long);
  });
});

describe('wrap', () => {
  function check(what: string, text: string, expected: string) {
    it(what, () => assert.equal(wrap(text, 20), expected));
  }

  check('does not change lines that fit', 'a b\n  c', 'a b\n  c');
  check(
    'aligns a continuation line with the last column that starts in the first half',
    '  name  one two three four',
    '  name  one two\n        three four',
  );
  check(
    'indents a continuation line when there is no column',
    'one two three four five',
    'one two three four\n    five',
  );
  check(
    'does not break a long word',
    '  name  a-word-that-is-too-long x',
    '  name  a-word-that-is-too-long\n        x',
  );
  check('continues a shell command with a backslash', '  curl -i http://x.test', '  curl -i \\\n  http://x.test');
});

describe('the commands on a terminal', () => {
  function hasColoursAndFits(text: string): void {
    const plain = stripVTControlCharacters(text);
    assert.notEqual(text, plain);
    assert.deepEqual(
      plain.split('\n').filter((line) => line.length > 80),
      [],
    );
  }

  it('print the routes of check in colours and 80 columns', function () {
    if (!isInstalled('script')) this.skip();
    const command = `${process.execPath} ${built('main.js')} check`;
    const env = { PATH: process.env['PATH'], TERM: 'xterm-256color', CONFIG_DIR: 'config' };
    const { stdout } = spawnSync('script', ['-qec', command, '/dev/null'], { env, encoding: 'utf8' });
    hasColoursAndFits(stdout.replaceAll('\r', ''));
    assert.match(stripVTControlCharacters(stdout), /^\/v1\/hotels +-> +hotel /m);
  });

  it('print an explanation in colours and 80 columns', async () => {
    const options = { method: 'GET', url: '/v1/hotels', user: 'demo', header: [] };
    const { text } = await explainOnce(requireSettings(settingTable, { configDir: 'config' }), options);
    hasColoursAndFits(await printed(text, colours.explanation));
  });
});
