/** The programs of a recipe in an app that installs the package: compiled under strict TypeScript, and run as they are written. */
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, symlink, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { built } from '../support/programs/built.ts';
import { freePort } from '../support/programs/free-port.ts';
import { type Program, startProgram } from '../support/programs/frontdesk-process.ts';
import { eventually } from '../support/waiting.ts';

const repository = fileURLToPath(new URL('../..', import.meta.url));

/** What an app chooses in its tsconfig.json. */
export const moduleModes = [
  { module: 'nodenext', moduleResolution: 'nodenext' },
  { module: 'esnext', moduleResolution: 'bundler' },
] as const;

/** Installs the package, and the libraries that the programs import, in a directory. */
export async function installIn(directory: string, libraries: readonly string[]): Promise<void> {
  built('index.js');
  await mkdir(join(directory, 'node_modules'));
  await symlink(repository, join(directory, 'node_modules/frontdesk'));
  for (const name of [...libraries, '@types'])
    await symlink(join(repository, 'node_modules', name), join(directory, 'node_modules', name));
}

/** Compiles the programs, by file name. Returns the errors as text, which is empty if there are none. */
export async function compileIn(
  directory: string,
  programs: Readonly<Record<string, string>>,
  mode: (typeof moduleModes)[number],
): Promise<string> {
  for (const [name, text] of Object.entries(programs))
    await writeFile(join(directory, name.replace('.mjs', '.mts')), text);
  const strict = { strict: true, noImplicitReturns: true, exactOptionalPropertyTypes: true, skipLibCheck: true };
  const compilerOptions = { ...strict, ...mode, target: 'es2023', types: ['node'], noEmit: true };
  await writeFile(join(directory, 'tsconfig.json'), JSON.stringify({ include: ['*.mts'], compilerOptions }));
  const tsc = join(repository, 'node_modules/.bin/tsc');
  return promisify(execFile)(tsc, ['-p', directory]).then(
    () => '',
    ({ stdout }) => stdout,
  );
}

/** Starts programs in the directory, each with replacements in its text. They are killed after each case. */
export function programsIn(directory: () => string, files: Readonly<Record<string, string>>) {
  const programs: Program[] = [];

  afterEach(async () => {
    for (const program of programs.splice(0)) {
      program.signal('SIGKILL');
      await program.ended;
    }
  });

  async function start(name: string, changes: readonly (readonly [string, string])[]): Promise<Program> {
    const text = changes.reduce((before, [from, to]) => before.replace(from, to), files[name] ?? '');
    const file = join(directory(), `started-${name}`);
    await writeFile(file, text);
    const program = startProgram(file, { cwd: directory() });
    programs.push(program);
    return program;
  }

  /** Starts a server on a free port, and resolves to the port as soon as it listens. */
  async function serve(name: string, changes: readonly (readonly [string, string])[] = []): Promise<number> {
    const port = await freePort();
    await start(name, [['3000', String(port)], ...changes]);
    await eventually(() => connectOnce(port), 50);
    return port;
  }

  return { start, serve };
}

/** A request instead of a connection might count against a limit. */
async function connectOnce(port: number): Promise<void> {
  const socket = connect(port, '127.0.0.1');
  await once(socket, 'connect');
  socket.destroy();
}
