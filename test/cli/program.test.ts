/** The command line as a user meets it: what it prints and how it ends. */
import assert from 'node:assert/strict';
import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { parsePasswordHash } from '#config';
import { verifyPassword } from '../../src/auth/password-hash.ts';
import { built } from '../support/programs/built.ts';
import { runCommand } from '../support/programs/command.ts';
import { type Ended, knownCommands, type RunOptions, runFrontdesk } from '../support/programs/frontdesk-process.ts';
import { temporaryFiles } from '../support/temporary-files.ts';

/** The key in the fourth line has lost a letter. */
const brokenRecord = 'apiVersion: gateway/v1\nkind: Mapping\nname: rooms\nprefx: /v1/rooms\nservice: hotel\n';

describe('frontdesk', () => {
  const writeFiles = temporaryFiles();

  /** A run prints no errors when it ends with 0, else nothing but errors; never a stack trace. */
  function check(
    name: string,
    args: readonly string[],
    code: number,
    expected: (ended: Ended) => unknown,
    options: () => Promise<RunOptions> = async () => ({}),
    run = runCommand,
  ): void {
    it(name, async () => {
      const how = await run(args, await options());
      assert.equal(how.code, code, how.stderr);
      assert.equal(code === 0 ? how.stderr : how.stdout, '');
      assert.doesNotMatch(how.stderr, /^\s+at |node:internal|^\w*Error:/m);
      await expected(how);
    });
  }

  /** The same in a process of its own. */
  function checkProcess(...[name, args, code, expected, options]: Parameters<typeof check>): void {
    check(name, args, code, expected, options, runFrontdesk);
  }

  it('is a program that a shell starts, also when the build has run again below a link', async () => {
    assert.equal((await stat(built('main.js'))).mode & 0o111, 0o111);
  });

  check('--help lists the commands and every setting with its default', ['--help'], 0, ({ stdout }) => {
    for (const word of [...knownCommands, 'CONFIG_DIR', 'TLS_CERT']) assert.ok(stdout.includes(word), word);
    assert.match(stdout, /^ {2}RATELIMIT_PORT +.*\[8081\]$/m);
  });

  checkProcess('names the command that an unknown one may mean, in three lines', ['chek'], 1, ({ stderr }) =>
    assert.match(stderr, /^error: unknown command 'chek'\n\(Did you mean check\?\)\n+frontdesk --help lists .*\n$/),
  );

  checkProcess(
    'check prints file, line, record and remedy of each error of CONFIG_DIR, and ends with 1',
    ['check'],
    1,
    ({ stderr }) => {
      assert.match(stderr, /^services\/rooms\.yaml:4 {2}Mapping rooms: .*prefx.*\n {4}.*prefix/m);
      assert.match(stderr, /^users\.yaml:1 /m);
    },
    async () => ({
      cwd: await writeFiles({ 'services/rooms.yaml': brokenRecord, 'users.yaml': 'users: none\n' }),
      env: { CONFIG_DIR: '.' },
    }),
  );

  checkProcess(
    'hash-password turns a line of standard input into a line of users.yaml whose hash this password matches, and no other',
    ['hash-password'],
    0,
    async ({ stdout }) => {
      const [, text = ''] = /^ {4}password_hash: "(\S+)"\n$/.exec(stdout) ?? [];
      const hash = parsePasswordHash(text);
      assert.ok(hash !== undefined, stdout);
      assert.equal(await verifyPassword('pass wörd ', hash), true);
      assert.equal(await verifyPassword('pass wörd', hash), false);
    },
    async () => ({ input: 'pass wörd \nsecond line' }),
  );

  let usersDirectory: string;
  check(
    'users add writes a user with the password of standard input, and leaves the file as it was otherwise',
    ['users', 'add', 'ann'],
    0,
    async ({ stdout }) => {
      assert.equal(stdout, 'users.yaml has the user ann now; a running frontdesk takes it over.\n');
      const text = await readFile(join(usersDirectory, 'users.yaml'), 'utf8');
      const [, hash = ''] = /^# mine\nusers:\n {2}- name: ann\n {4}password_hash: "(\S+)"\n$/.exec(text) ?? [];
      assert.ok(await verifyPassword('secret', parsePasswordHash(hash) ?? assert.fail(text)));
    },
    async () => {
      usersDirectory = await writeFiles({ 'users.yaml': '# mine\nusers: []\n' });
      return { input: 'secret\n', cwd: usersDirectory, env: { CONFIG_DIR: '.' } };
    },
  );

  let newDirectory: string;
  check(
    'users add begins the configuration of an auth service alone, and --role gives the user the role',
    ['users', 'add', 'bob', '--role', 'admin'],
    0,
    async ({ stdout }) => {
      assert.match(stdout, /^config\/users\.yaml has the user bob now/);
      const text = await readFile(join(newDirectory, 'config/users.yaml'), 'utf8');
      assert.match(text, /^users:\n {2}- name: bob\n(?: {4}.*\n)* {4}roles:\s*(?:\[ ?|- )admin/m);
    },
    async () => {
      newDirectory = await writeFiles();
      return { input: 'secret\n', cwd: newDirectory };
    },
  );

  check(
    'users add says what is wrong with a name before it asks for a password',
    ['users', 'add', 'ann:b'],
    1,
    ({ stderr }) => assert.match(stderr, /^frontdesk: nothing was written:\n.*users\.yaml:2 .*ann:b/),
    async () => ({ cwd: await writeFiles({ 'users.yaml': 'users: []\n' }), env: { CONFIG_DIR: '.' } }),
  );

  checkProcess(
    'serve names `frontdesk init` where there is no configuration',
    ['serve'],
    1,
    ({ stderr }) => assert.match(stderr, /^frontdesk: .*config:1 .*does not exist\n {4}.*frontdesk init/s),
    async () => ({ cwd: await writeFiles() }),
  );

  // What else may be wrong: server/options.test.ts and server/listeners.test.ts.
  check(
    'serve says in one message which settings are bad or misspelt',
    ['serve'],
    1,
    ({ stderr }) => {
      assert.match(stderr, /^frontdesk: .*PORT="eighty": expected a whole number from 0 to 65535/s);
      assert.match(stderr, /CONFG_DIR is not a setting.*CONFIG_DIR/);
    },
    async () => ({ env: { PORT: 'eighty', CONFG_DIR: 'x' } }),
  );

  for (const [args, error, remedy] of [
    [
      'hash-password s3cret',
      "too many arguments for 'hash-password'",
      /: frontdesk hash-password\n.* < .*\nIt asks for/,
    ],
    ['users add ann s3cret', "too many arguments for 'add'", /: frontdesk users add ann\n.* --role admin\nIt asks for/],
    ['users add', "missing required argument 'name'", /: frontdesk users add ann\n/],
    ['users list', "unknown command 'list'", /: frontdesk users add ann\n/],
    ['serve s3cret', "too many arguments for 'serve'", /: frontdesk serve --demo\n/],
    ['serve --port 9000', "unknown option '--port'", /: PORT=9000 frontdesk serve\n.*environment variables/],
    ['split s3cret', "too many arguments for 'split'", /: PORT=9000 frontdesk split\n.*environment variables/],
    ['init a s3cret', "too many arguments for 'init'", /: frontdesk init \.\/config --service http/],
    ['check a s3cret', "too many arguments for 'check'", /: frontdesk check \.\/config\n/],
    ['explain /v1/hotels', "missing required argument 'url'", /: frontdesk explain GET \/v1\/hotels\n/],
    ['explain GET / s3cret', "too many arguments for 'explain'", /: frontdesk explain GET \/v1\/hotels\n/],
    [
      'serve --only hotel,spa',
      "option '--only <modules>' argument 'hotel,spa' is invalid. Choose from gateway, auth, ratelimit, hotel, car, api, with commas between them.",
      /: frontdesk serve --demo\n/,
    ],
    ['explain GET / --header', "option '-H, --header <line>' argument missing", / -H 'X-Plan: gold'\n/],
  ] as const)
    it(`${args} is an error that says what to type`, async () => {
      const { code, stderr } = await runCommand(args.split(' '));
      assert.equal(code, 1);
      assert.ok(stderr.startsWith(`error: ${error}\nType for example: frontdesk `), stderr);
      assert.match(stderr, remedy);
      assert.doesNotMatch(stderr, /s3cret/);
    });

  const app = {
    'config/services/app.yaml': 'apiVersion: gateway/v1\nkind: Mapping\nname: a\nprefix: /\nservice: a:1\n',
  };
  for (const [what, args, expected, files = {}] of [
    ['a folder of the directory', 'check config/services', /^ {4}.* Name the directory above: config\.$/m],
    [
      'a file in place of a directory',
      'check config/services/app.yaml',
      /is not a directory\n {4}Name a directory\. A conf/,
    ],
    [
      'a second start in the same directory',
      'init',
      /^frontdesk: .*config.services.app\.yaml\. Name another directory: frontdesk init /,
    ],
    [
      'settings written as YAML',
      'serve',
      /^frontdesk: config.settings\.env:2 is no setting: write NAME=value, such as PORT=9000\n$/,
      { 'config/settings.env': '# mine\nPORT: 9000\n' },
    ],
    [
      'another directory in the settings of this one',
      'check',
      /^frontdesk: A setting cannot be used:\n {2}config.settings\.env:1 CONFIG_DIR says where this file is: set it in the env/,
      { 'config/settings.env': 'CONFIG_DIR=./other\n' },
    ],
    [
      'a name of the settings that is none',
      'serve',
      /^frontdesk: 2 settings cannot be used:\n {2}config.settings\.env:3 PROT2X is not a setting: remove it\n {2}config.settings\.env:4 PORTT is not a setting: did you mean PORT\?\n$/,
      { 'config/settings.env': 'ADMIN_USERS="ann,\nbob"\nPROT2X=1\nexport PORTT=9000\n' },
    ],
    [
      'a wrong setting after a byte order mark',
      'check config',
      /PORT="nope": expected/,
      { 'config/settings.env': '\uFEFFPORT=nope\n' },
    ],
    [
      'a wrong setting of the file whose variable is empty',
      'check config',
      /STRICT_PATHS="nope": expected/,
      { 'config/settings.env': 'STRICT_PATHS=nope\n' },
    ],
  ] as const)
    check(
      `${what} is an error that says what to do`,
      args.split(' '),
      1,
      ({ stderr }) => assert.match(stderr, expected),
      async () => ({ cwd: await writeFiles({ ...app, ...files }), env: { CONFIG_DIR: 'config', STRICT_PATHS: '' } }),
    );
});
