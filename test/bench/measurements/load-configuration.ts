/** Measures the cost of loading mappings and building the gateway, compared with parsing by the YAML library alone. */
import { spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { root } from '../processes/child.ts';
import { mappingRecord } from '../processes/configuration.ts';
import type { MeasuredRow } from '../table.ts';

interface Layout {
  readonly title: string;
  /** The text of one YAML document. */
  readonly documentOf: (index: number) => string;
  readonly filesMax: number;
}

const layouts: readonly Layout[] = [
  { title: 'records of 5 fields in one file', documentOf: smallRecord, filesMax: 1 },
  { title: 'records of 5 fields as JSON in one file', documentOf: jsonRecord, filesMax: 1 },
  { title: 'records of 20 lines in one file', documentOf: largeRecord, filesMax: 1 },
  { title: 'manifests in 100 files', documentOf: (index) => manifestOf(index, smallRecord(index)), filesMax: 100 },
  { title: 'one manifest per file', documentOf: (index) => manifestOf(index, smallRecord(index)), filesMax: 10_000 },
  {
    title: 'manifests of 20 lines in 100 files',
    documentOf: (index) => manifestOf(index, largeRecord(index)),
    filesMax: 100,
  },
];

const counts = [10, 10_000];
const rounds = 3;

export function measureLoad(parent: string): MeasuredRow[] {
  return layouts.flatMap((layout, index) =>
    counts.flatMap((mappings) => {
      const directory = join(parent, `load-${index}-${mappings}`);
      writeLayout(directory, layout, mappings);
      const times = Array.from({ length: rounds }, () => measureOnce(directory, mappings));
      const least = (name: keyof Times) => Math.min(...times.map((one) => one[name]));
      const load = `load ${mappings} mappings, ${layout.title}`;
      const peer = 'the yaml library alone';
      const figureMax = layout.title.includes('20 lines') ? 3500 : 1500;
      return [
        { title: `${load}: ${peer}`, figure: least('libraryMs'), unit: 'CPU ms' },
        {
          title: `${load}: frontdesk`,
          figure: least('loadMs'),
          unit: 'CPU ms',
          peer,
          ratio: least('loadMs') / least('libraryMs'),
          ...(mappings < 10_000 ? {} : { target: { figureMax } }),
        },
        { title: `${load}: building the gateway`, figure: least('gatewayMs'), unit: 'CPU ms' },
      ];
    }),
  );
}

function writeLayout(directory: string, { documentOf, filesMax }: Layout, mappings: number): void {
  mkdirSync(join(directory, 'services'), { recursive: true });
  const files = Math.min(filesMax, mappings);
  for (let file = 0; file < files; file += 1) {
    const documents = Array.from({ length: mappings / files }, (_, index) =>
      documentOf((file * mappings) / files + index),
    );
    writeFileSync(join(directory, `services/${file}.yaml`), documents.join('---\n'));
  }
}

/** CPU time in milliseconds, which does not depend on other load on the machine. */
interface Times {
  readonly loadMs: number;
  /** The time that the YAML library alone takes to parse the same files. */
  readonly libraryMs: number;
  /** The time to build the gateway from the loaded mappings. */
  readonly gatewayMs: number;
}

/** Measures in new processes, in which V8 has not compiled any code yet, as at a start. */
function measureOnce(directory: string, mappings: number): Times {
  const { loaded, loadMs = Number.NaN, gatewayMs = Number.NaN } = run(loadProgram, directory);
  if (loaded !== mappings) throw new Error(`${loaded} of ${mappings} mappings loaded`);
  const { libraryMs = Number.NaN } = run(libraryProgram, directory);
  return { loadMs, libraryMs, gatewayMs };
}

function run(program: string, directory: string): Readonly<Record<string, number>> {
  const { stdout } = spawnSync(process.execPath, ['--input-type=module', '--eval', program, '--', directory], {
    cwd: root,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  return JSON.parse(stdout);
}

const built = (module: string) => pathToFileURL(join(root, `dist/${module}/index.js`));

const cpuMs = `
  function cpuMs() {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1000;
  }
`;

const libraryProgram = `
  import { readdirSync, readFileSync } from 'node:fs';
  import { parseAllDocuments } from 'yaml';
  ${cpuMs}
  const startedAtMs = cpuMs();
  const directory = process.argv[1] + '/services/';
  for (const file of readdirSync(directory))
    for (const document of parseAllDocuments(readFileSync(directory + file, 'utf8'), { uniqueKeys: false })) document.toJS();
  process.stdout.write(JSON.stringify({ libraryMs: cpuMs() - startedAtMs }));
`;

const loadProgram = `
  import { loadConfiguration } from '${built('config')}';
  import { createGateway, createResolve } from '${built('gateway')}';
  ${cpuMs}
  const resolve = createResolve({ isLocal: () => false, listenerOf: () => undefined, addresses: {} });
  const startedAtMs = cpuMs();
  const { configuration } = await loadConfiguration(process.argv[1]);
  const loadedAtMs = cpuMs();
  const { snapshot } = createGateway({ configuration, resolve, services: {} });
  const gatewayMs = cpuMs() - loadedAtMs;
  const loaded = snapshot().routes.length;
  process.stdout.write(JSON.stringify({ loadMs: loadedAtMs - startedAtMs, gatewayMs, loaded }));
`;

function smallRecord(index: number): string {
  return `apiVersion: gateway/v1
kind: Mapping
name: service-${index}
prefix: /v1/service-${index}
service: service-${index}:8080
`;
}

function jsonRecord(index: number): string {
  const name = `service-${index}`;
  return `${JSON.stringify(mappingRecord(name, `/v1/${name}`, `${name}:8080`))}\n`;
}

function largeRecord(index: number): string {
  return `${smallRecord(index)}# The path arrives without the prefix.
rewrite: /
timeout_ms: 3000
connect_timeout_ms: 500
bypass_auth: false
labels:
  gateway:
    - test_allow:
        - x-gateway-test-allow:
            header: x-gateway-test-allow
            # Without the header there is no label.
            omit_if_not_present: true
    - user:
        - x-travel-user:
            header: X-Travel-User
            default: 'none'
`;
}

function manifestOf(index: number, record: string): string {
  return `apiVersion: v1
kind: Service
metadata:
  name: service-${index}
  annotations:
    gateway.local/config: |
${record.replace(/^/gm, '      ').trimEnd()}
`;
}
