/** The Dockerfile: follows its steps, and runs the result as an engine would, without write access and without a shell. */
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { cp, mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import request from 'supertest';
import { freePort } from '../support/programs/free-port.ts';
import { isInstalled } from '../support/programs/installed.ts';
import { temporaryFiles } from '../support/temporary-files.ts';
import { eventually } from '../support/waiting.ts';
import { build, configurationOf, parseDockerfile } from './dockerfile.ts';

const context = fileURLToPath(new URL('../..', import.meta.url));
const read = (name: string) => readFileSync(join(context, name), 'utf8');
/** The libraries in the base image of the last stage. */
const librariesOfBase = /^(?:ld-linux-.*|lib(?:c|dl|m|pthread|rt|gcc_s|stdc\+\+)\.so\.\d+|linux-vdso\.so\.1)$/;

const stages = parseDockerfile(read('Dockerfile'));
const [, last] = stages;
if (last === undefined) throw new Error('the Dockerfile has no second stage');
const image = configurationOf(last);

/** A Node that the image does not have may need others. */
const isNodeOfImage = stages[0]?.base === `node:${process.versions.node.split('.')[0]}-slim`;
const expected = isNodeOfImage ? librariesOfBase : /./;

describe('the image', () => {
  const writeFiles = temporaryFiles();

  it('is built with a Node that frontdesk accepts', () => {
    const [, major] = /^node:(\d+)-slim$/.exec(stages[0]?.base ?? '') ?? [];
    assert.ok(JSON.parse(read('package.json')).engines.node.startsWith(`>=${major}.`));
  });

  it('runs as a user with a number, without a shell, and says which ports it has', () => {
    assert.deepEqual(image.user, '65532:65532');
    assert.deepEqual([image.entrypoint, image.command], [['node', '/app/dist/main.js'], ['serve']]);
    assert.deepEqual(image.ports, [8080, 8081, 8082, Number(image.env['ADMIN_PORT'])]);
  });

  describe('when it is built', function () {
    if (process.getuid?.() !== 0 || !isInstalled('unshare')) {
      it('needs root and unshare on the PATH');
      return;
    }
    this.timeout(240_000);
    let root: string;

    before(async () => {
      const directory = await writeFiles();
      const rootOf = (stage: string) => join(directory, stage);
      const program = { path: '/usr/local/bin/node', file: process.execPath };
      await build(stages, { context, ignore: read('.dockerignore'), rootOf, program });
      root = rootOf(last.name);
      await copyBase(program.file);
      await mkdir(join(root, 'proc'));
    });

    /** Copies the libraries that Node loads, which the base image must have. */
    async function copyBase(program: string): Promise<void> {
      const lines = execFileSync('ldd', [program], { encoding: 'utf8' }).trim().split('\n');
      for (const line of lines) {
        const [, name = '', path = name] = /^\s*(\S+)(?: => (\S+))? \(/.exec(line) ?? [];
        assert.match(name.split('/').at(-1) ?? '', expected);
        if (!existsSync(path)) continue;
        await mkdir(join(root, dirname(path)), { recursive: true });
        await cp(path, join(root, path), { dereference: true });
      }
    }

    /** Starts a container: its own processes, the image as a file system that cannot be written, the user of the image. */
    function start(args: readonly string[], env: Readonly<Record<string, string>>) {
      const enter = [
        ...['mount --bind "$0" "$0"', 'mount -o remount,bind,ro "$0"', 'mount -t proc proc "$0/proc"'],
        `exec chroot --userspec=${image.user} "$0" "$@"`,
      ].join(' && ');
      const [program = '', ...rest] = args;
      return spawn('unshare', ['-m', '-p', '-f', '--kill-child', 'sh', '-c', enter, root, program, ...rest], {
        env: { PATH: '/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', ...image.env, HOST: '127.0.0.1', ...env },
      });
    }

    /** Runs a program in a container to its end. */
    async function run(args: readonly string[], env: Readonly<Record<string, string>>) {
      const child = start(args, env);
      let output = '';
      for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output += String(chunk)));
      const [code] = await once(child, 'close');
      return { code, output };
    }

    it('contains no tests, no packages for development and nothing that its user could change', () => {
      for (const name of ['src', 'test', 'node_modules/typescript', 'node_modules/mocha', '.git'])
        assert.ok(!existsSync(join(root, 'app', name)), name);
      const writable = execFileSync('find', [root, '!', '-type', 'l', '(', '-uid', '65532', '-o', '-perm', '-2', ')']);
      assert.equal(writable.toString(), `${root}/data\n`);
    });

    it('is small: the package and its libraries take less than 60 MB', () => {
      const kilobytes = Number.parseInt(execFileSync('du', ['-sk', join(root, 'app')], { encoding: 'utf8' }), 10);
      assert.ok(kilobytes < 60_000, String(kilobytes));
    });

    it('serves a read-only file system as process 1, is healthy, and ends with 0 after SIGTERM', async () => {
      const [port, admin] = [await freePort(), await freePort()];
      const ports = { PORT: '0', RATELIMIT_PORT: '0', AUTH_PORT: '0', ADMIN_PORT: String(admin) };
      const env = { ...ports, PORT: String(port), DATABASE_URL: 'sqlite::memory:', ALLOW_DEMO_USERS: 'true' };
      const container = start([...image.entrypoint, ...image.command, '--demo'], env);
      let output = '';
      for (const stream of [container.stdout, container.stderr]) stream.on('data', (chunk) => (output += chunk));
      const ended = once(container, 'close');
      try {
        await eventually(() => assert.match(output, /is ready/), 20);
        await request(`http://127.0.0.1:${port}`).get('/v1/hotels').auth('demo', 'demo').expect(200);
        const healthy = await run(image.health, env);
        assert.deepEqual(healthy, { code: 0, output: '' });
        assert.equal((await run(image.health, { ...env, ADMIN_PORT: '1' })).code, 1);
        const [inside] = readFileSync(`/proc/${container.pid}/task/${container.pid}/children`, 'utf8').split(' ');
        assert.match(readFileSync(`/proc/${inside}/status`, 'utf8'), /^NSpid:\t\d+\t1$/m);
        process.kill(Number(inside), 'SIGTERM');
        const [code] = await ended;
        assert.deepEqual({ code, output: output.slice(-200) }, { code: 0, output: output.slice(-200) });
      } finally {
        container.kill('SIGKILL');
        await ended;
      }
    });

    it('says that nothing is mounted at /config', async () => {
      const { code, output } = await run([...image.entrypoint, ...image.command], {});
      assert.equal(code, 1);
      assert.match(output, /\.\/config {2}the directory cannot be read/);
    });

    it('refuses the demo users on a network', async () => {
      const { code, output } = await run([...image.entrypoint, 'serve', '--demo'], { HOST: '0.0.0.0' });
      assert.equal(code, 1);
      assert.match(output, /ALLOW_DEMO_USERS/);
    });

    it('reads the configuration that is mounted at /config', async () => {
      await mkdir(join(root, 'config/services'), { recursive: true });
      await writeFile(
        join(root, 'config/services/app.yaml'),
        'apiVersion: gateway/v1\nkind: Mapping\nname: app\nprefix: /\nservice: http://app:3000\nbypass_auth: true\n',
      );
      const { code, output } = await run([...image.entrypoint, 'check'], {});
      assert.deepEqual([code, /^\/ +-> +http:\/\/app:3000/m.test(output)], [0, true], output);
    });

    it('has a folder for data that belongs to its user', () => {
      assert.equal(statSync(join(root, 'data')).uid, 65532);
    });
  });
});
