/** Starts a gateway in front of an application, with the record from the recipe. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { createFrontdesk } from '../../src/index.ts';
import { readRecipe } from '../recipes/page.ts';
import { annRecord } from '../support/desks.ts';
import { freePort } from '../support/programs/free-port.ts';
import { type ProxyProcess, startProxy } from '../support/programs/proxy-process.ts';
import type { Served, TestServers } from '../support/serve.ts';
import { untyped } from '../support/untyped.ts';

interface RecipeRecord {
  readonly name: string;
  readonly service: string;
}

const { files } = readRecipe('Behind frontdesk: Django, Jupyter, git, npm, WebDAV');
const recipeRecords: readonly RecipeRecord[] = parseAllDocuments(files['config/services/apps.yaml'] ?? '').map((one) =>
  one.toJS(),
);

/** Returns the recipe's Mapping of this name, with `service` set to the origin and other fields replaced by `more`. */
export function recipeRecord(name: string, { origin }: Pick<Served, 'origin'>, more: object = {}): object {
  const record = recipeRecords.find((one) => one.name === name);
  if (record === undefined) throw new Error(`the recipe has no Mapping named ${name}`);
  return { ...record, service: origin, ...more };
}

/** Starts a gateway with the defaults of `serve`. The only user is `ann`, with the password `secret`. */
export async function startFront(servers: TestServers, ...records: readonly object[]): Promise<Served> {
  const config = untyped({ records, users: [annRecord] });
  const desk = await createFrontdesk({ config, port: 0, authPort: 0 });
  servers.later(desk.close);
  const { gateway } = await desk.listen();
  if (gateway === undefined) throw new Error('the desk has no gateway');
  return { origin: gateway.url, port: Number(new URL(gateway.url).port) };
}

/** A Python with the packages of .ci/run. If undefined, tests of Python applications are pending. */
export const python = process.env['TEST_PYTHON'];

/** Runs a Python file of this directory as a separate process. */
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
