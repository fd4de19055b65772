/** Runs the conformance tests of the Gateway API, which `build.sh` has built. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { builtFile } from '../gateway-api.ts';

export interface SuiteOptions {
  /** A file with the credentials of an administrator. */
  readonly kubeconfig: string;
  readonly gatewayClass: string;
  /** Where the gateway listens, by the port of its listeners. */
  readonly ports: Readonly<Record<number, number>>;
  readonly features: readonly string[];
  readonly skippedTests: readonly string[];
  /** Runs only the tests whose name this regular expression matches. */
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
  /** What the tests that failed logged. */
  readonly log: string;
}

export async function runSuite(options: SuiteOptions): Promise<SuiteRun> {
  const results = join(options.folder, 'results.jsonl');
  const args = Object.entries(flagsOf(options)).map(([name, value]) => `-${name}=${value}`);
  const child = spawn(builtFile('conformance'), [`-results=${results}`, ...args], {
    env: { KUBECONFIG: options.kubeconfig },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [log] = await Promise.all([text(child.stdout), once(child, 'exit')]);
  const lines = (await readFile(results, 'utf8')).split('\n').filter((line) => line !== '');
  return { results: lines.map((line) => JSON.parse(line)), log };
}

function flagsOf({ gatewayClass, ports, features, skippedTests, only, folder }: SuiteOptions) {
  return {
    'gateway-class': gatewayClass,
    'supported-features': features.join(),
    'skip-tests': skippedTests.join(),
    'test.run': `TestConformance/${only}`,
    ports: Object.entries(ports)
      .map(([listener, port]) => `${listener}=${port}`)
      .join(),
    'pod-logs': folder,
  };
}
