/** Runs the shell commands of a documentation page: steps, each under a comment with the expected status. */
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

/** A comment that begins with the expected status, and the lines below it. */
export interface Step {
  readonly status: number;
  readonly what: string;
  readonly lines: string;
}

/** A response as `curl -i` prints it. */
export interface CurlResponse {
  readonly status: number;
  readonly head: string;
  readonly body: string;
}

export interface ShellOptions {
  readonly cwd: string;
  /** Replacements for the ports of 127.0.0.1 that the page shows. */
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

/** Runs all lines in one shell, because they build on each other. Returns the responses of each step. */
export async function runStory(story: Story, options: ShellOptions): Promise<readonly (readonly CurlResponse[])[]> {
  const logs = await mkdtemp(join(tmpdir(), 'frontdesk-story-'));
  const logOf = (index: number) => join(logs, `${index}.log`);
  const script = [
    // Also records the responses in the log of the step.
    'curl() { command curl "$@" | tee -a "$log"; }',
    story.preparation,
    ...story.steps.map(({ lines }, index) => `log='${logOf(index)}'\n${lines}`),
  ];
  try {
    await runShell(script.join('\n'), options);
    return await Promise.all(story.steps.map(async (_, index) => parseResponses(await readFile(logOf(index), 'utf8'))));
  } finally {
    await rm(logs, { recursive: true });
  }
}

/** Returns standard error followed by standard output. Rejects if a command fails. */
export async function runShell(script: string, { cwd, ports = {} }: ShellOptions): Promise<string> {
  const npx = `npx() { shift; ${frontdeskCommand} "$@"; }`;
  const text = `${npx}\n${onPorts(script, ports)}`;
  const env = { PATH: process.env['PATH'], NODE_COMPILE_CACHE: compileCache };
  const { stdout, stderr } = await promisify(execFile)('sh', ['-eu', '-c', text], { cwd, env });
  return `${stderr}${stdout}`;
}

/** Replaces ports, which follow `before` in the text. Throws if the text does not contain one of them. */
export function onPorts(text: string, ports: Readonly<Record<number, number>>, before = '127.0.0.1:'): string {
  const missing = Object.keys(ports).filter((shown) => !text.includes(before + shown));
  if (missing.length > 0) throw new Error(`port ${missing.join(', ')} is missing in: ${text}`);
  const shownPorts = new RegExp(`(?<=${before.replaceAll('.', '\\.')})\\d+\\b`, 'g');
  return text.replace(shownPorts, (shown) => String(ports[Number(shown)] ?? shown));
}

function parseResponses(log: string): readonly CurlResponse[] {
  return log.split(/(?=HTTP\/[12][.\d]* \d)/).map((text) => {
    const [head = '', ...body] = text.split('\r\n\r\n');
    return { status: Number(head.split(' ')[1]), head, body: body.join('\r\n\r\n') };
  });
}
