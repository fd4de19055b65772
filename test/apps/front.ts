/** A gateway in front of an application, with the record that the recipe shows for it. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { createFrontdesk } from '../../src/index.ts';
import { readRecipe } from '../recipes/page.ts';
import { annRecord } from '../support/desks.ts';
import { freePort } from '../support/programs/free-port.ts';
import { type ProxyProcess, startProxy } from '../support/programs/proxy-process.ts';
import type { Served, TestServers } from '../support/serve.ts';

interface ShownRecord {
  readonly name: string;
  readonly service: string;
}

const { files } = readRecipe('Behind frontdesk: Django, Jupyter, git, npm, WebDAV');
const shown: readonly ShownRecord[] = parseAllDocuments(files['config/services/apps.yaml'] ?? '').map((one) =>
  one.toJS(),
);

/** The Mapping of this name, leading to `service`; `more`: in place of what it says. */
export function shownRecord(name: string, { origin }: Pick<Served, 'origin'>, more: object = {}): object {
  const record = shown.find((one) => one.name === name);
  if (record === undefined) throw new Error(`the recipe shows no Mapping ${name}`);
  return { ...record, service: origin, ...more };
}

/** With the defaults of `serve`; the only user is `ann`, with the password `secret`. */
export async function startFront(servers: TestServers, ...records: readonly object[]): Promise<Served> {
  const config = { records, users: [annRecord] };
  const desk = await createFrontdesk({ config, port: 0, authPort: 0 });
  servers.later(desk.close);
  const { gateway } = await desk.listen();
  if (gateway === undefined) throw new Error('there is no gateway');
  return { origin: gateway.url, port: Number(new URL(gateway.url).port) };
}

/** A Python with the packages of .ci/run; undefined: the tests with applications in Python are pending. */
export const python = process.env['TEST_PYTHON'];

/** The application in a file of this directory, in a separate process. */
export async function startPython(
  servers: TestServers,
  file: string,
  ...args: readonly string[]
): Promise<ProxyProcess> {
  const program = {
    command: python ?? 'python3',
    configure: (text: string) => text,
    args: (program: string) => [program, String(port), ...args],
  };
  const port = await freePort();
  const app = await startProxy(program, readFileSync(join(import.meta.dirname, file), 'utf8'), port);
  servers.later(app.remove);
  return app;
}
