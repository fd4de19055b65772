/** `frontdesk completion`: what a shell offers after Tab. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { completionScript } from '../../src/cli/help/completion.ts';
import { createProgram } from '../../src/cli/program.ts';
import { runCommand } from '../support/programs/command.ts';
import { knownCommands, runFrontdesk } from '../support/programs/frontdesk-process.ts';
import { isInstalled } from '../support/programs/installed.ts';
import { temporaryFiles } from '../support/temporary-files.ts';

const shells = ['bash', 'zsh', 'fish'] as const;

const userCommands = ['add', 'list', 'set-password', 'remove', 'add-key', 'remove-key'];

/** What is typed after `frontdesk`, and what is offered for its last word, which may be empty. */
const offers: readonly (readonly [typed: string, offered: readonly string[]])[] = [
  ['', [...knownCommands, '--help', '--version', '-h', '-v']],
  ['se', ['serve']],
  ['serve --d', ['--demo']],
  ['serve --demo --o', ['--only']],
  ['serve --only ', ['gateway', 'auth', 'ratelimit', 'hotel', 'car', 'api']],
  ['explain GET / --user a', []],
  ['users ', [...userCommands, 'help', '--help', '-h']],
  ['users add ann --r', ['--role']],
  ['completion ', [...shells, '--help', '-h']],
  ['help se', ['serve', 'settings']],
  ['help settings ACC', ['ACCESS_LOG']],
  ['users help ', [...userCommands, 'help']],
  ['check sp', ['space dir']],
];

describe('frontdesk completion', () => {
  const writeFiles = temporaryFiles();

  /** Returns the words that the shell offers, one in a line of its output. `-` stands for itself and begins an option. */
  async function offeredBy(shell: string, ask: (script: string) => string): Promise<readonly string[]> {
    const { stdout: completion } = await runCommand(['completion', shell]);
    const cwd = await writeFiles({ completion, 'space dir/file': '' });
    const args = { bash: ['--norc', '-c'], zsh: ['-f', '-c'], fish: ['--no-config', '-c'] }[shell] ?? [];
    const env = { PATH: process.env['PATH'], HOME: cwd, TERM: 'xterm' };
    const { stdout, stderr } = spawnSync(shell, [...args, ask(join(cwd, 'completion'))], {
      cwd,
      env,
      encoding: 'utf8',
    });
    assert.equal(stderr, '');
    return stdout.split('\n').filter((line) => line !== '');
  }

  // Only the shell itself adds directories to what is offered.
  for (const [typed, offered] of offers.filter(([line]) => !line.startsWith('check'))) {
    it(`offers in bash after \`frontdesk ${typed}\`: ${offered.join(' ') || 'nothing'}`, async function () {
      if (!isInstalled('bash')) return this.skip();
      const words = ['frontdesk', ...typed.split(' ')];
      const ask = (script: string) =>
        `source '${script}'; COMP_WORDS=(${words.map((word) => `'${word}'`).join(' ')}); COMP_CWORD=${words.length - 1}; ` +
        `_frontdesk; printf '%s\\n' "\${COMPREPLY[@]}"`;
      assert.deepEqual((await offeredBy('bash', ask)).toSorted(), offered.toSorted());
    });
  }

  it('completes npx frontdesk in bash as well, and files for other programs of npx', async function () {
    if (!isInstalled('bash')) return this.skip();
    const ask = (script: string) =>
      `source '${script}'; complete -p npx; for program in frontdesk other; do COMP_WORDS=(npx "$program" che); ` +
      `COMP_CWORD=2; _frontdesk_npx; printf '%s\\n' "\${COMPREPLY[@]}"; done`;
    assert.deepEqual(await offeredBy('bash', ask), ['complete -o default -F _frontdesk_npx npx', 'check']);
  });

  it('leaves the completion that npx already has in bash', async function () {
    if (!isInstalled('bash')) return this.skip();
    const ask = (script: string) => `complete -F _own npx; source '${script}'; complete -p npx`;
    assert.deepEqual(await offeredBy('bash', ask), ['complete -F _own npx']);
  });

  it('offers the same in fish, and options only after a dash', async function () {
    if (!isInstalled('fish')) return this.skip();
    const commands = offers.flatMap(([typed, offered]) =>
      ['frontdesk', 'npx frontdesk'].map((program) => [`${program} ${typed}`, offered] as const),
    );
    for (const [typed, offered] of commands) {
      const ask = (script: string) => `source ${script}; complete -C '${typed}'`;
      const lines = (await offeredBy('fish', ask)).map((line) => line.split('\t')[0]?.replace(/\/$/, ''));
      const expected = offered.filter((word) => typed.includes('-') || !word.startsWith('-'));
      assert.deepEqual(lines.toSorted(), expected.toSorted(), typed);
    }
  });

  it('completes the word before Tab in an interactive bash, also the names of directories', async function () {
    if (!isInstalled('bash') || !isInstalled('script')) return this.skip();
    const { stdout: completion } = await runCommand(['completion', 'bash']);
    const cwd = await writeFiles({ completion, 'space dir/file': '', 'spare.yaml': '' });
    const input = [
      'source completion',
      'frontdesk() { printf "<%s>" typed "$@"; echo; }',
      'frontdesk sp\t --de\t',
      'frontdesk check space\t',
      'npx() { frontdesk npx "$@"; }',
      'npx frontdesk sp\t --de\t',
      'npx spar\t',
      'exit\n',
    ].join('\n');
    const env = { PATH: process.env['PATH'], HOME: cwd, TERM: 'dumb', INPUTRC: '/dev/null' };
    const { stdout } = spawnSync('script', ['-qec', 'bash --norc', '/dev/null'], { cwd, env, input, encoding: 'utf8' });
    assert.match(stdout, /<typed><split><--demo>/);
    assert.match(stdout, /<typed><check><space dir\/>/);
    assert.match(stdout, /<typed><npx><frontdesk><split><--demo>/);
    assert.match(stdout, /<typed><npx><spare\.yaml>/);
  });

  it('is valid in zsh, and offers what it lists, also after npx', async function () {
    if (!isInstalled('zsh')) return this.skip();
    const ask = (script: string) =>
      `compdef() {}; source ${script}; _describe() { print -l -- "\${candidates[@]%%:*}" }; ` +
      `words=(frontdesk users ''); CURRENT=3; _frontdesk; words=(npx frontdesk serve --only ''); CURRENT=5; _frontdesk_npx`;
    const expected = [...userCommands, 'help', '-h', '--help', 'gateway', 'auth', 'ratelimit', 'hotel', 'car', 'api'];
    assert.deepEqual(await offeredBy('zsh', ask), expected);
  });

  it('names every command and option of the help in each script', () => {
    const program = createProgram();
    const names = program.commands.flatMap((command) => [
      command.name(),
      ...command.options.filter(({ hidden }) => !hidden).map(({ long }) => long?.slice(2) ?? ''),
    ]);
    for (const shell of shells) {
      const script = completionScript(program, shell, {});
      assert.deepEqual(
        names.filter((name) => !script.includes(name)),
        [],
      );
      assert.ok(!script.includes('child'));
    }
  });

  it('rejects another shell with the names of those that it knows', async () => {
    const { code, stderr } = await runFrontdesk(['completion', 'tcsh']);
    assert.equal(code, 1);
    assert.match(
      stderr,
      /^error: .*'tcsh' is invalid for argument 'shell'\. Allowed choices are bash, zsh, fish\.\nExa/,
    );
  });
});
