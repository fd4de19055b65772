/** Runs the command line as a user does, and checks its output and exit code. */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { closeSync, existsSync, openSync, readFileSync } from 'node:fs';
import { mkdir, readFile, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parsePasswordHash } from '#auth/password-hash';
import { listSettings } from '#config';
import { settingTable } from '#server/product';
import { verifyPassword } from '../../src/auth/users.ts';
import { limitRecord, mappingRecord } from '../support/desks.ts';
import { built } from '../support/programs/built.ts';
import { runCommand } from '../support/programs/command.ts';
import { type Ended, knownCommands, type RunOptions, runFrontdesk } from '../support/programs/frontdesk-process.ts';
import { temporaryFiles, yamlOf } from '../support/temporary-files.ts';

/** The key in the fourth line is misspelt. */
const brokenRecord = 'apiVersion: gateway/v1\nkind: Mapping\nname: rooms\nprefx: /v1/rooms\nservice: hotel\n';

const passwordHash = `$scrypt$ln=14,r=8,p=1$${'A'.repeat(22)}$${'A'.repeat(43)}`;

const useDirectory = 'it uses ./config, or the directory in CONFIG_DIR, as in CONFIG_DIR=./other frontdesk serve';
const setRedis = 'set REDIS_URL in the environment or in settings.env';
const setDirectory = 'set CONFIG_DIR in the environment or in settings.env';

describe('frontdesk', () => {
  const writeFiles = temporaryFiles();
  const app = {
    'config/services/app.yaml': 'apiVersion: gateway/v1\nkind: Mapping\nname: a\nprefix: /\nservice: a:1\n',
  };

  /** A run that succeeds prints no errors, one that fails prints only errors, and neither prints a stack trace. */
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

  /** Like `check`, but in a separate process. */
  function checkProcess(...[name, args, code, expected, options]: Parameters<typeof check>): void {
    check(name, args, code, expected, options, runFrontdesk);
  }

  it('is executable, even after a rebuild of a linked checkout', async () => {
    assert.equal((await stat(built('main.js'))).mode & 0o111, 0o111);
  });

  check('--help lists the commands and every setting with its default', ['--help'], 0, ({ stdout }) => {
    for (const word of [...knownCommands, 'CONFIG_DIR', 'TLS_CERT']) assert.ok(stdout.includes(word), word);
    assert.match(stdout, /^ {2}RATELIMIT_PORT +.*\[8081\]$/m);
  });

  check('help settings lists every setting by topic', ['help', 'settings'], 0, ({ stdout }) => {
    for (const row of listSettings(settingTable))
      assert.equal(stdout.split('\n').filter((line) => line.startsWith(`  ${row.variable} `)).length, 1);
    assert.match(stdout, /\n\nlog:\n {2}LOG_LEVEL .*\n {2}ACCESS_LOG .*\n\nhttps:\n/);
  });

  check('help settings lists those that a word describes', ['help', 'settings', 'proxy'], 0, ({ stdout }) => {
    assert.match(stdout, /^Settings with proxy:\n/);
    assert.match(stdout, /^ {2}TRUSTED_PROXIES /m);
    assert.doesNotMatch(stdout, /^ {2}PORT /m);
  });
  check('help settings lists those of one topic', ['help', 'settings', 'HTTPS'], 0, ({ stdout }) =>
    assert.match(
      stdout,
      /^Settings about https:\n {2}TLS_CERT .*\n {2}TLS_KEY .*\n {2}TLS_DIR .*\n(?: {2}(?:TLS|HTTP_REDIRECT)_.*\n){6}$/,
    ),
  );

  for (const name of ['RATELIMIT_PORT', 'ratelimitPort', 'ratelimit_port'])
    check(`help settings describes one of them: ${name}`, ['help', 'settings', name], 0, ({ stdout }) => {
      assert.match(stdout, /^RATELIMIT_PORT {2}Port of the rate-limit service/);
      assert.match(
        stdout,
        /^ {2}value +a whole number from 0 to 65535\n {2}default +8081\n {2}option +ratelimitPort /m,
      );
    });

  for (const [name, hint] of [
    ['prot', 'did you mean PORT?'],
    ['lgo', 'did you mean log?'],
    ['colours', 'the topics are addresses, configuration, rate-limits, '],
  ] as const)
    check(`help settings reports an unknown one: ${name}`, ['help', 'settings', name], 1, ({ stderr }) =>
      assert.ok(stderr.startsWith(`frontdesk: there is no setting or topic of that name: ${hint}`), stderr),
    );

  checkProcess('suggests a command for a misspelt one', ['chek'], 1, ({ stderr }) =>
    assert.match(stderr, /^error: unknown command 'chek'\n\(Did you mean check\?\)\n+Run frontdesk --help .*\n$/),
  );

  for (const names of ['nope', 'users nope'])
    check(`help reports an unknown command: ${names}`, ['help', ...names.split(' ')], 1, ({ stderr }) =>
      assert.equal(stderr.split('\n')[0], `error: unknown command '${names}'`),
    );

  check('the help of a command with commands uses the words of the program', ['users', '--help'], 0, ({ stdout }) =>
    assert.match(stdout, /help \[command\] +print help for a command\n/),
  );

  check('help prints the help for a command below another', ['help', 'users', 'add'], 0, ({ stdout }) =>
    assert.match(stdout, /^Usage: frontdesk users add /),
  );

  checkProcess(
    'check prints file, line, record and remedy of each error in CONFIG_DIR, and exits with 1',
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
    'check names a missing directory that is its argument, without a variable',
    ['check', './nope'],
    1,
    ({ stderr }) =>
      assert.equal(
        stderr.split('.\n')[0],
        './nope  the directory cannot be read: it does not exist\n    Create one with frontdesk init, or pass another directory',
      ),
  );

  checkProcess(
    'hash-password hashes a line of standard input for users.yaml, so that exactly this password matches',
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

  it('hash-password ends although its standard input stays open', async () => {
    const hashing = spawn(process.execPath, [built('main.js'), 'hash-password'], {
      stdio: ['pipe', 'ignore', 'ignore'],
    });
    hashing.stdin.write('secret\n');
    assert.deepEqual(await once(hashing, 'exit'), [0, null]);
  });

  let usersDirectory: string;
  const usersBefore = `# mine\nusers:\n  - name: bob\n    roles: [admin] # mine\n    password_hash: "${passwordHash}"\n`;
  check(
    'users add adds a user with the password from standard input, and leaves the rest of the file alone',
    ['users', 'add', 'ann'],
    0,
    async ({ stdout }) => {
      assert.equal(stdout, 'Added the user ann to users.yaml. A running frontdesk picks up the change.\n');
      const text = await readFile(join(usersDirectory, 'users.yaml'), 'utf8');
      assert.ok(text.startsWith(usersBefore), text);
      const [, hash = ''] =
        /^ {2}- name: ann\n {4}password_hash: "(\S+)"\n$/.exec(text.slice(usersBefore.length)) ?? [];
      assert.ok(await verifyPassword('secret', parsePasswordHash(hash) ?? assert.fail(text)));
    },
    async () => {
      usersDirectory = await writeFiles({ 'users.yaml': usersBefore });
      return { input: 'secret\n', cwd: usersDirectory, env: { CONFIG_DIR: '.' } };
    },
  );

  let newDirectory: string;
  check(
    'users add creates the configuration of a standalone auth service, and --role assigns a role',
    ['users', 'add', 'bob', '--role', 'admin'],
    0,
    async ({ stdout }) => {
      assert.match(stdout, /^Added the user bob to config\/users\.yaml\./);
      const text = await readFile(join(newDirectory, 'config/users.yaml'), 'utf8');
      assert.match(text, /^users:\n {2}- name: bob\n(?: {4}.*\n)* {4}roles:\s*(?:\[ ?|- )admin/m);
    },
    async () => {
      newDirectory = await writeFiles();
      return { input: 'secret\n', cwd: newDirectory };
    },
  );

  check(
    'users add rejects a bad name before it prompts for a password',
    ['users', 'add', 'ann:b'],
    1,
    ({ stderr }) => assert.match(stderr, /^frontdesk: nothing was written:\n.*users\.yaml:2 {2}User ann:…: /),
    async () => ({ cwd: await writeFiles({ 'users.yaml': 'users: []\n' }), env: { CONFIG_DIR: '.' } }),
  );

  check(
    'users add says how to change the password of an existing user',
    ['users', 'add', 'ann'],
    1,
    ({ stderr }) =>
      assert.match(
        stderr,
        /^frontdesk: users\.yaml already has a user named ann: to change the password: frontdesk users set-password ann\n$/,
      ),
    async () => ({
      cwd: await writeFiles({ 'users.yaml': `users:\n  - { name: ann, password_hash: "${passwordHash}" }\n` }),
      env: { CONFIG_DIR: '.' },
    }),
  );

  for (const args of ['check --demo', 'explain GET /v1/hotels --demo'])
    check(
      `${args} uses the demo of the package where there is no configuration`,
      args.split(' '),
      0,
      ({ stdout }) => assert.match(stdout, /hotel/),
      async () => ({ cwd: await writeFiles() }),
    );

  it('users add-key prints a new key alone, and writes only its digest', async () => {
    const cwd = await writeFiles({ 'users.yaml': usersBefore });
    const options = { cwd, env: { CONFIG_DIR: '.' } };
    const { code, stdout, stderr } = await runCommand(
      ['users', 'add-key', 'ci', '--new', '--key-name', 'github'],
      options,
    );
    assert.equal(code, 0, stderr);
    const [, key = ''] = /^(fd_[\w-]{43})\n$/.exec(stdout) ?? [];
    assert.match(stderr, /^Added the key github of ci to users\.yaml, .* cannot be shown again\. A running /);
    const text = await readFile(join(cwd, 'users.yaml'), 'utf8');
    const digest = createHash('sha256').update(key).digest('hex');
    const entry = `  - name: ci\n    api_keys:\n      - name: github\n        sha256: "${digest}"\n`;
    assert.equal(text, usersBefore + entry);
    assert.ok(!stderr.includes(key));
  });

  const sha256 = 'a'.repeat(64);
  const ci = `  - { name: ci, api_keys: [{ name: github, sha256: "${sha256}" }, { name: old, sha256: "${'b'.repeat(64)}" }] }\n`;
  const usersWithKeys = async () => ({
    cwd: await writeFiles({ 'users.yaml': usersBefore + ci }),
    env: { CONFIG_DIR: '.' },
  });
  check(
    'users list shows roles and the names of keys, and no hash',
    ['users', 'list'],
    0,
    ({ stdout }) =>
      assert.equal(
        stdout.replace(/ +$/gm, ''),
        'NAME  ROLES  PASSWORD  API KEYS\nbob   admin  yes       -\nci    -      no        github, old\n',
      ),
    usersWithKeys,
  );

  for (const [args, message] of [
    [['remove-key', 'ci', 'old'], 'Removed the key old of ci from users.yaml.'],
    [['remove', 'bob'], 'Removed the user bob from users.yaml.'],
  ] as const)
    check(
      `users ${args.join(' ')} says what it has removed`,
      ['users', ...args],
      0,
      ({ stdout }) => assert.equal(stdout, `${message} A running frontdesk picks up the change.\n`),
      usersWithKeys,
    );

  let passwordDirectory: string;
  check(
    'users set-password replaces the hash with that of the password from standard input',
    ['users', 'set-password', 'bob'],
    0,
    async ({ stdout }) => {
      assert.equal(stdout, 'Changed the password of bob in users.yaml. A running frontdesk picks up the change.\n');
      const text = await readFile(join(passwordDirectory, 'users.yaml'), 'utf8');
      const [, hash = ''] = /password_hash: "(\S+)"/.exec(text) ?? [];
      assert.equal(text.replace(hash, passwordHash), usersBefore);
      assert.ok(await verifyPassword('secret', parsePasswordHash(hash) ?? assert.fail(text)));
    },
    async () => {
      passwordDirectory = await writeFiles({ 'users.yaml': usersBefore });
      return { input: 'secret\n', cwd: passwordDirectory, env: { CONFIG_DIR: '.' } };
    },
  );

  checkProcess(
    'serve suggests `frontdesk init` when there is no configuration',
    ['serve'],
    1,
    ({ stderr }) =>
      assert.match(stderr, /^frontdesk: .*config {2}.*does not exist\n {4}.*frontdesk init, or set CONFIG_DIR to/s),
    async () => ({ cwd: await writeFiles() }),
  );

  // For other errors see server/options.test.ts and server/listeners.test.ts.
  check(
    'serve reports all bad and misspelt settings in one message',
    ['serve'],
    1,
    ({ stderr }) => {
      assert.match(stderr, /^frontdesk: .*PORT="eighty": expected a whole number from 0 to 65535/s);
      assert.match(stderr, /CONFG_DIR is not a setting.*CONFIG_DIR/);
    },
    async () => ({ env: { PORT: 'eighty', CONFG_DIR: 'x' } }),
  );

  for (const [args, example] of [
    ['serve', '  PORT=9000 frontdesk serve\nSettings such as the port are '],
    ['explain', '  frontdesk explain GET /v1/hotels\n'],
    ['users add', '  frontdesk users add ann --role admin\nThe password is prompted for '],
  ] as const)
    it(`\`${args} --help\` ends with examples`, async () => {
      const { stdout } = await runCommand([...args.split(' '), '--help']);
      assert.ok(stdout.split('\n\nExamples:\n')[1]?.includes(example), stdout);
    });

  for (const [what, expected, create] of [
    ['a link to nothing', 'it does not exist', (file: string) => symlink('nothing', file)],
    ['a device', 'it is not a regular file', (file: string) => symlink('/dev/zero', file)],
    ['a directory', 'it is a directory', (file: string) => mkdir(file)],
    ['Latin-1', 'settings.env:1  this is not valid UTF-8', (file: string) => writeFile(file, '# \xe9\n', 'latin1')],
  ] as const)
    it(`reports settings.env that is ${what}`, async () => {
      const cwd = await writeFiles(app);
      await create(join(cwd, 'config/settings.env'));
      const { code, stderr } = await runCommand(['check'], { cwd });
      assert.deepEqual([code, stderr.split('\n')[0]?.endsWith(expected)], [1, true], stderr);
    });

  for (const args of ['--help', '--version', 'help serve', 'serve --help', 'check', 'hash-password'])
    it(`exits with 1 and a message when the output of \`${args}\` cannot be written`, function () {
      if (!existsSync('/dev/full')) return this.skip();
      const output = openSync('/dev/full', 'w');
      const { status, stderr } = spawnSync(process.execPath, [built('main.js'), ...args.split(' ')], {
        input: 'secret',
        stdio: ['pipe', output, 'pipe'],
        encoding: 'utf8',
      });
      closeSync(output);
      assert.match(stderr, /^frontdesk: cannot write to standard output: ENOSPC[^\n]*\n$/);
      assert.equal(status, 1);
    });

  for (const [args, error, remedy] of [
    [
      'hash-password s3cret',
      "too many arguments for 'hash-password'",
      /\n {2}frontdesk hash-password\n.* < .*\nThe password is prompted for/,
    ],
    [
      'users add ann s3cret',
      "too many arguments for 'add'",
      /\n {2}frontdesk users add ann\n.* --role admin\nThe password is prompted for/,
    ],
    ['users add', "missing required argument 'name'", /\n {2}frontdesk users add ann\n/],
    [
      'init ',
      "command-argument value '' is invalid for argument 'directory'. Use . for the current directory.",
      /\n {2}frontdesk init \.\/config --service http/,
    ],
    [
      'check ',
      "command-argument value '' is invalid for argument 'directory'. Use . for the current directory.",
      /\n {2}frontdesk check \.\/config\n/,
    ],
    ['users everybody', "unknown command 'everybody'", /\n {2}frontdesk users add ann\n/],
    ['users add-key ann fd_s3cret', "too many arguments for 'add-key'", /\n {2}frontdesk users add-key ann\n/],
    ['serve s3cret', `too many arguments for 'serve': ${useDirectory}`, /\n {2}frontdesk serve --demo\n/],
    [
      'serve --port 9000',
      "unknown option '--port': set PORT in the environment or in settings.env",
      /\n {2}PORT=9000 frontdesk serve\n.*environment variables/,
    ],
    ['serve --colour red', "unknown option '--colour'", /\n {2}frontdesk serve --demo\n/],
    ['check --redis-url=redis://:s3cret@a', `unknown option '--redis-url': ${setRedis}`, /\n {2}frontdesk check\n/],
    ['serve --config ./other', `unknown option '--config': ${setDirectory}`, /\n {2}frontdesk serve --demo\n/],
    [
      'split s3cret',
      `too many arguments for 'split': ${useDirectory.replace('serve', 'split')}`,
      /\n {2}PORT=9000 frontdesk split\n.*environment variables/,
    ],
    ['init a s3cret', "too many arguments for 'init'", /\n {2}frontdesk init \.\/config --service http/],
    ['check a s3cret', "too many arguments for 'check'", /\n {2}frontdesk check \.\/config\n/],
    ['explain /orders?s3cret', 'the method is missing: frontdesk explain GET /orders', /\n {2}frontdesk explain POST /],
    ['explain GET', "missing required argument 'url'", /\n {2}frontdesk explain GET \/v1\/hotels\n/],
    ['explain GET / s3cret', "too many arguments for 'explain'", /\n {2}frontdesk explain GET \/v1\/hotels\n/],
    [
      'serve --only hotel,spa',
      "option '--only <modules>' argument 'hotel,spa' is invalid. Choose from gateway, auth, ratelimit, hotel, car, api, separated by commas.",
      /\n {2}frontdesk serve --demo\n/,
    ],
    ['explain GET / --header', "option '-H, --header <line>' argument missing", / -H 'X-Plan: gold'\n/],
  ] as const)
    it(`rejects \`${args}\` and shows examples`, async () => {
      const { code, stderr } = await runCommand(args.split(' '));
      assert.equal(code, 1);
      assert.ok(stderr.startsWith(`error: ${error}\nExamples:\n  frontdesk `), stderr);
      assert.match(stderr, remedy);
      assert.doesNotMatch(stderr, /s3cret/);
    });

  it('accepts a module that --only names twice', async () => {
    const { code, stderr } = await runCommand(['check', '--only', 'gateway,gateway']);
    assert.deepEqual([code, /invalid/.test(stderr)], [0, false]);
  });

  it('runs the modules of every --only', async () => {
    const each = await runCommand(['check', '--only', 'gateway', '--only', 'hotel']);
    const together = await runCommand(['check', '--only', 'gateway,hotel']);
    assert.deepEqual(each, together);
    assert.match(each.stderr, /"car" does not run in this process/);
    assert.doesNotMatch(each.stderr, /"hotel" does not run in this process/);
  });

  for (const [what, args, expected, files = {}] of [
    ['a subfolder of the directory', 'check config/services', /^ {4}.* Use the parent directory: config\.$/m],
    [
      'a file instead of a directory',
      'check config/services/app.yaml',
      /^config.services.app\.yaml {2}.* is not a directory\n {4}Use a directory\. A conf/,
    ],
    [
      'a directory that already contains a configuration',
      'init',
      /^frontdesk: .*config.services.app\.yaml\. Choose another directory: frontdesk init /,
    ],
    [
      'settings written as YAML',
      'serve',
      /^frontdesk: config.settings\.env:2 is not a setting: write NAME=value, such as PORT=9000\n$/,
      { 'config/settings.env': '# mine\nPORT: 9000\n' },
    ],
    [
      'CONFIG_DIR in settings.env',
      'check',
      /^config.settings\.env:1 {2}CONFIG_DIR determines where this file is: set it in the env/,
      { 'config/settings.env': 'CONFIG_DIR=./other\n' },
    ],
    [
      'an unknown name in settings.env',
      'serve',
      /^frontdesk: 2 settings cannot be used:\n {2}config.settings\.env:3 PROT2X is not a setting: remove it\n {2}config.settings\.env:4 PORTT is not a setting: did you mean PORT\?\n$/,
      { 'config/settings.env': 'ADMIN_USERS="ann,\nbob"\nPROT2X=1\nexport PORTT=9000\n' },
    ],
    [
      'a setting that settings.env contains twice',
      'check',
      /^config.settings\.env:3 {2}PORT is already set in line 1: remove one of the two\n {4}frontdesk help settings lists /,
      { 'config/settings.env': 'PORT=9000\n# mine\nexport PORT=9001\n' },
    ],
    [
      'values in settings.env that end early or begin with a quotation mark',
      'check',
      /^config.settings\.env:4 {2}REDIS_URL contains a #, .*: put the value into quotes, .*\n.*\nconfig.settings\.env:5 {2}HOST has a quotation mark that is never closed: close it\n/,
      {
        'config/settings.env':
          'PORT=9000 # mine, a#b\nPUBLIC_URL= "http://a" #\nADMIN_USERS="a#b"\nREDIS_URL=redis://:s3#cret@a\nHOST="a\n',
      },
    ],
    [
      'a service that cannot have the role in a record',
      'check',
      /app\.yaml:1 {2}Mapping app: "ratelimit" in this process cannot be used as an HTTP service\n {4}Use another service/,
      { 'config/services/app.yaml': yamlOf(mappingRecord('app', '/', 'ratelimit'), limitRecord) },
    ],
    [
      'published passwords on a server that is open to the network',
      'check',
      /^frontdesk: the demo passwords of demo and guest are published, and HOST=0\.0\.0\.0 is open .*: set other/m,
      { 'config/users.yaml': readFileSync('config/users.yaml', 'utf8'), 'config/settings.env': 'HOST=0.0.0.0\n' },
    ],
    [
      'demo data that does not suit the tables',
      'check --demo',
      /^frontdesk: the demo data cannot be loaded:\n {2}hotels, row 1, id: must be a string$/m,
      { 'config/demo.yaml': 'hotels:\n  - id: 1\n' },
    ],
    [
      'a certificate that does not exist',
      'check',
      /^nope\.pem {2}TLS_CERT cannot be read \(ENOENT\)\n {4}Use a PEM file/m,
      { 'config/settings.env': 'TLS_CERT=nope.pem\nTLS_KEY=nope.key\n' },
    ],
    [
      'a bad value after a byte order mark',
      'check config',
      /PORT="nope": expected/,
      { 'config/settings.env': '\uFEFFPORT=nope\n' },
    ],
    [
      'a bad value in settings.env when the environment variable is empty',
      'check config',
      /STRICT_PATHS="nope": expected/,
      { 'config/settings.env': 'STRICT_PATHS=nope\n' },
    ],
  ] as const)
    check(
      `reports ${what} with a remedy`,
      args.split(' '),
      1,
      ({ stderr }) => assert.match(stderr, expected),
      async () => ({ cwd: await writeFiles({ ...app, ...files }), env: { CONFIG_DIR: 'config', STRICT_PATHS: '' } }),
    );
});
