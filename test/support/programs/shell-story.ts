/** Lines of a page, run by a shell with curl as a reader would: steps that each begin with the status of the answer. */
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { compileCache } from '../compile-cache.ts';
import { frontdeskCommand } from './frontdesk-process.ts';

export interface Story {
  /** The text before the first step. */
  readonly preparation: string;
  readonly steps: readonly Step[];
}

/** A comment that begins with the status of the answer, and the lines below it. */
export interface Step {
  readonly status: number;
  readonly what: string;
  readonly lines: string;
}

/** One answer, as `curl -i` shows it. */
export interface Heard {
  readonly status: number;
  readonly head: string;
  readonly body: string;
}

export interface ShellOptions {
  readonly cwd: string;
  /** By the port of this machine that is shown, the one to take in its place. */
  readonly ports?: Readonly<Record<number, number>>;
}

export function parseStory(text: string): Story {
  const [preparation = '', ...rest] = text.split(/^# (?=\d{3}: )/m);
  const steps = rest.map((part) => {
    const [heading = '', ...lines] = part.split('\n');
    return { status: Number(heading.slice(0, 3)), what: heading.slice(5), lines: lines.join('\n') };
  });
  return { preparation, steps };
}

/** All of it in one shell, since its lines build on each other. Gives the answers to each step. */
export async function runStory(story: Story, options: ShellOptions): Promise<readonly (readonly Heard[])[]> {
  const logs = await mkdtemp(join(tmpdir(), 'frontdesk-story-'));
  const logOf = (index: number) => join(logs, `${index}.log`);
  const script = [
    // It writes down what it is answered as well.
    'curl() { command curl "$@" | tee -a "$log"; }',
    story.preparation,
    ...story.steps.map(({ lines }, index) => `log='${logOf(index)}'\n${lines}`),
  ];
  try {
    await runShell(script.join('\n'), options);
    return await Promise.all(story.steps.map(async (_, index) => parseAnswers(await readFile(logOf(index), 'utf8'))));
  } finally {
    await rm(logs, { recursive: true });
  }
}

/** Standard error and output, in this order. Rejects when a command fails. */
export async function runShell(script: string, { cwd, ports = {} }: ShellOptions): Promise<string> {
  const npx = `npx() { shift; ${frontdeskCommand} "$@"; }`;
  const text = `${npx}\n${onPorts(script, ports)}`;
  const env = { PATH: process.env['PATH'], NODE_COMPILE_CACHE: compileCache };
  const { stdout, stderr } = await promisify(execFile)('sh', ['-eu', '-c', text], { cwd, env });
  return `${stderr}${stdout}`;
}

/** The text with other ports of 127.0.0.1. Throws when it does not show one that is to be replaced. */
export function onPorts(text: string, ports: Readonly<Record<number, number>>): string {
  const missing = Object.keys(ports).filter((shown) => !text.includes(`127.0.0.1:${shown}`));
  if (missing.length > 0) throw new Error(`there is no port ${missing.join(', ')} in: ${text}`);
  return text.replace(/(?<=127\.0\.0\.1:)\d+/g, (shown) => String(ports[Number(shown)] ?? shown));
}

function parseAnswers(log: string): readonly Heard[] {
  return log.split(/(?=HTTP\/1\.1 \d)/).map((text) => {
    const [head = '', ...body] = text.split('\r\n\r\n');
    return { status: Number(head.split(' ')[1]), head, body: body.join('\r\n\r\n') };
  });
}
