/** Runs the conformance tests of the Gateway API, which `build.sh` has built, for the features that the GatewayClass says it supports. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { endProcess } from '../../programs/end-process.ts';
import type { TestServers } from '../../serve.ts';
import { builtFile } from '../gateway-api.ts';

export interface SuiteOptions {
  /** A file with the credentials of an administrator. */
  readonly kubeconfig: string;
  readonly gatewayClass: string;
  /** Where the gateway listens, by the port of its listeners. */
  readonly ports: Readonly<Record<number, number>>;
  /** Runs only the tests whose name this regular expression matches, and says more about them. Empty for all. */
  readonly only: string;
  /** A folder with the log `<pod>.log` of each pod. */
  readonly folder: string;
}

export interface TestResult {
  readonly name: string;
  readonly features: readonly string[];
  readonly result: 'passed' | 'failed' | 'skipped';
}

export interface SuiteRun {
  readonly results: readonly TestResult[];
  /** What the tests that failed logged, and with `only` also the others. */
  readonly log: string;
}

export async function runSuite(servers: TestServers, options: SuiteOptions): Promise<SuiteRun> {
  const results = join(options.folder, 'results.jsonl');
  const args = Object.entries(flagsOf(options)).map(([name, value]) => `-${name}=${value}`);
  const child = spawn(builtFile('conformance'), [`-results=${results}`, ...args], {
    env: { KUBECONFIG: options.kubeconfig },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  servers.later(() => endProcess(child, 'SIGKILL'));
  const [log] = await Promise.all([text(child.stdout), once(child, 'exit')]);
  const lines = (await readFile(results, 'utf8')).split('\n').filter((line) => line !== '');
  return { results: lines.map((line) => JSON.parse(line)), log };
}

function flagsOf({ gatewayClass, ports, only, folder }: SuiteOptions) {
  return {
    'gateway-class': gatewayClass,
    'test.run': `TestConformance/${only}`,
    // Most of the time they wait.
    'test.parallel': 16,
    'test.v': only !== '',
    ports: Object.entries(ports)
      .map(([listener, port]) => `${listener}=${port}`)
      .join(),
    'pod-logs': folder,
  };
}
