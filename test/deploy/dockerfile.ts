/** Follows the steps of a Dockerfile without an engine: each stage becomes a folder, and base images stay away. */
import { execFile } from 'node:child_process';
import { cp, lchown, mkdir, readdir } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { promisify } from 'node:util';

interface Instruction {
  readonly name: string;
  /** What follows, with continued lines joined. */
  readonly text: string;
}

export interface Stage {
  readonly base: string;
  readonly name: string;
  readonly steps: readonly Instruction[];
}

/** What an image says about the processes that run in it. */
export interface ImageConfiguration {
  readonly env: Readonly<Record<string, string>>;
  readonly ports: readonly number[];
  readonly user: string;
  readonly directory: string;
  readonly entrypoint: readonly string[];
  readonly command: readonly string[];
  readonly health: readonly string[];
}

export function parseDockerfile(text: string): readonly Stage[] {
  const stages: { base: string; name: string; steps: Instruction[] }[] = [];
  const lines = text.replace(/^\s*#.*\n/gm, '').replace(/\\\n\s*/g, '');
  for (const [, name = '', rest = ''] of lines.matchAll(/^([A-Z]+) +(.+)$/gm)) {
    if (name !== 'FROM') stages.at(-1)?.steps.push({ name, text: rest });
    else {
      const [base = '', , stage = String(stages.length)] = rest.split(' ');
      stages.push({ base, name: stage, steps: [] });
    }
  }
  return stages;
}

/** The forms that have no shell are lists. A step in a shell's form throws. */
export function configurationOf({ steps }: Stage): ImageConfiguration {
  const last = (name: string) => steps.findLast((step) => step.name === name)?.text ?? '';
  const pairs = steps.filter(({ name }) => name === 'ENV').flatMap(({ text }) => [...text.matchAll(/(\w+)=(\S+)/g)]);
  return {
    env: Object.fromEntries(pairs.map(([, name = '', value = '']) => [name, value])),
    ports: last('EXPOSE').split(' ').map(Number),
    user: last('USER'),
    directory: last('WORKDIR'),
    entrypoint: JSON.parse(last('ENTRYPOINT')),
    command: JSON.parse(last('CMD')),
    health: JSON.parse(last('HEALTHCHECK').replace(/^.*? CMD /, '')),
  };
}

export interface BuildOptions {
  /** The folder whose files COPY copies. */
  readonly context: string;
  /** The text of `.dockerignore`: `*` first, then the exceptions. */
  readonly ignore: string;
  /** The folder of the root of the file system of a stage. */
  readonly rootOf: (stage: string) => string;
  /** Stands in for the files of a base image. */
  readonly program: { readonly path: string; readonly file: string };
}

/** Instructions that only describe the image. */
const described = ['LABEL', 'ENV', 'EXPOSE', 'USER', 'HEALTHCHECK', 'ENTRYPOINT', 'CMD'];

/** Runs every COPY and RUN. A RUN has its working directory in the folder of the stage, but the root of this machine. */
export async function build(stages: readonly Stage[], options: BuildOptions): Promise<void> {
  for (const { name, steps } of stages) {
    const root = options.rootOf(name);
    let directory = root;
    for (const step of steps) directory = await follow(step, directory, root, options);
  }
}

/** Returns the working directory of the next step. */
async function follow({ name, text }: Instruction, directory: string, root: string, options: BuildOptions) {
  if (name === 'RUN') await run(text, directory, dirname(options.program.file));
  else if (name === 'COPY') await copy(parseCopy(text), directory, root, options);
  else if (name !== 'WORKDIR' && !described.includes(name)) throw new Error(`a step with ${name} cannot be followed`);
  if (name !== 'WORKDIR') return directory;
  await mkdir(join(root, text), { recursive: true });
  return join(root, text);
}

async function run(command: string, cwd: string, programs: string): Promise<void> {
  const { PATH, HOME } = process.env;
  const env = { PATH: `${programs}:${PATH}`, HOME, npm_config_prefer_offline: 'true' };
  await promisify(execFile)('sh', ['-c', command], { cwd, env, maxBuffer: 2 ** 24 });
}

interface Copy {
  readonly paths: readonly string[];
  readonly to: string;
  /** The stage. */
  readonly from: string | undefined;
  readonly user: number;
}

function parseCopy(text: string): Copy {
  const words = text.split(' ');
  const option = (name: string) => words.find((word) => word.startsWith(`--${name}=`))?.split('=')[1];
  const paths = words.filter((word) => !word.startsWith('--'));
  return {
    paths: paths.slice(0, -1),
    to: paths.at(-1) ?? '',
    from: option('from'),
    user: Number.parseInt(option('chown') ?? '0', 10),
  };
}

async function copy(
  { paths, to, from, user }: Copy,
  directory: string,
  root: string,
  options: BuildOptions,
): Promise<void> {
  const { rootOf, program } = options;
  const target = join(to.startsWith('/') ? root : directory, to);
  for (const path of paths) {
    if (from === undefined) await copyContext(path, target, options);
    else if (path === program.path) await cp(program.file, target, { dereference: true });
    else {
      const into = to.endsWith('/') ? join(target, basename(path)) : target;
      await cp(join(rootOf(from), path), into, { recursive: true, verbatimSymlinks: true });
      await own(into, user);
    }
  }
}

async function copyContext(path: string, target: string, { context, ignore }: BuildOptions): Promise<void> {
  const [first, ...exceptions] = ignore.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  if (first !== '*' || !exceptions.every((line) => line.startsWith('!')))
    throw new Error('.dockerignore does not begin with *');
  const admitted = exceptions.map((line) => line.slice(1));
  for (const name of path === '.' ? admitted : [path]) {
    if (!admitted.includes(name)) throw new Error(`.dockerignore leaves out ${name}`);
    await cp(join(context, name), join(target, name), { recursive: true });
  }
}

async function own(path: string, id: number): Promise<void> {
  await lchown(path, id, id);
  const entries = await readdir(path, { recursive: true }).catch(() => []);
  for (const name of entries) await lchown(join(path, name), id, id);
}
