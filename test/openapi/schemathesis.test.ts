/** The documents and the answers for Schemathesis, which makes requests from the one and judges the other, where it is installed. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { desksOf } from '../support/desks.ts';
import { isInstalled } from '../support/programs/installed.ts';
import { testServers } from '../support/serve.ts';
import { temporaryFiles } from '../support/temporary-files.ts';
import { type Document, documentPrefixes, readDocument, writeDocument } from './written-documents.ts';

const run = promisify(execFile);

/** Always the same requests, but for what the answers lead to. */
const bounds = ['--seed', '1', '--max-examples', '5', '--no-shrink', '--continue-on-failure'];

/** A failure that is none, since no schema of an argument can say it. */
interface Known {
  readonly check: string;
  /** Of the answer. */
  readonly status: number;
  /** In its body. */
  readonly says: RegExp;
  readonly why: string;
}

const valid = 'positive_data_acceptance';

const known: readonly Known[] = [
  { check: valid, status: 400, says: /give both \w+ and \w+, or neither/, why: 'two arguments belong together' },
  {
    check: valid,
    status: 400,
    says: /"(?:must (?:not )?be (?:after|at most) |is in the past)/,
    why: 'a stay has an order, a length and a time',
  },
  {
    check: valid,
    status: 400,
    says: /is not a room type of|is not the id of a/,
    why: 'what there is to book are rows',
  },
  { check: valid, status: 400, says: /is not a value that an item here can have/, why: 'no item could ever have it' },
  { check: valid, status: 400, says: /"parameter":"sort","detail":"lists \w+ more than once/, why: 'id is -id, too' },
  {
    check: valid,
    status: 400,
    says: /"parameter":"id","detail":"must be a whole number/,
    why: 'it tries ids of other answers',
  },
  { check: valid, status: 400, says: /NUL/, why: 'no database keeps a NUL in a text' },
  { check: valid, status: 400, says: /problems\/bad-path"/, why: 'no path has a control character' },
  { check: valid, status: 412, says: /problems\/precondition-failed"/, why: 'an entity tag is of one version' },
  { check: valid, status: 422, says: /problems\/idempotency-mismatch"/, why: 'a key belongs to its first body' },
  { check: 'missing_required_header', status: 428, says: /Send If-Match/, why: 'RFC 6585 section 3' },
  { check: 'ignored_auth', status: 429, says: /problems\/login-throttled"/, why: 'it has tried too many passwords' },
];

interface Failure {
  readonly check: string;
  readonly status: number;
  readonly body: string;
  readonly asked: string;
}

describe('OpenAPI documents, for Schemathesis', function () {
  this.timeout(120_000);
  if (!isInstalled('schemathesis')) return void it('are tested where schemathesis is on the PATH');
  const openDesk = desksOf(testServers(after));
  const writeFiles = temporaryFiles();
  let cwd: string;
  let gatewayUrl: string;

  before(async () => {
    cwd = await writeFiles();
    const desk = await openDesk();
    gatewayUrl = (await desk.listen()).gateway?.url ?? '';
  });

  for (const prefix of documentPrefixes) {
    it(`have answers as described, and refuse nothing that is described: ${prefix}`, async () => {
      const document = withoutCursors(await readDocument(gatewayUrl, prefix));
      const file = await writeDocument(cwd, prefix, document);
      const report = `${file}.ndjson`;
      const env = { PATH: process.env['PATH'], HOME: cwd };
      const args = ['run', file, '--url', gatewayUrl + prefix, '--auth', 'demo:demo', ...bounds];
      const reports = ['--report', 'ndjson', '--report-ndjson-path', report, '--output-sanitize', 'false'];
      const said = await run('schemathesis', [...args, ...reports], { cwd, env }).catch((error) => error);
      const operations = Object.values(document.paths).flatMap(Object.keys).length;
      assert.match(said.stdout, new RegExp(`Tested: ${operations}\\b`), said.stdout);
      assert.doesNotMatch(said.stdout, /^ *Errors:/m, said.stdout);
      const failures = failuresIn(await readFile(report, 'utf8'));
      assert.deepEqual(
        failures.filter((failure) => !known.some((one) => isKnown(failure, one))),
        [],
      );
    });
  }
});

/** A list pages by `offset` or by `after`, which no schema of an argument can say: requests with both test nothing else. */
function withoutCursors(document: Document): Document {
  const paths = structuredClone(document.paths);
  for (const operation of Object.values(paths).flatMap((item) => Object.values(item)))
    operation.parameters = operation.parameters?.filter(({ name }) => name !== 'after') ?? [];
  return { ...document, paths };
}

function isKnown({ check, status, body }: Failure, one: Known): boolean {
  return one.check === check && one.status === status && one.says.test(body);
}

interface Recorder {
  readonly checks?: Readonly<Record<string, readonly { readonly name: string; readonly status: string }[]>>;
  readonly interactions: Readonly<Record<string, Interaction>>;
}

interface Interaction {
  readonly request: { readonly method: string; readonly uri: string };
  readonly response: { readonly status_code: number; readonly content?: { readonly $base64: string } } | null;
}

/** Of the report: a JSON text for each event. */
function failuresIn(report: string): readonly Failure[] {
  const events = report
    .trim()
    .split('\n')
    .map((line): { ScenarioFinished?: { recorder: Recorder } } => JSON.parse(line));
  return events.flatMap(({ ScenarioFinished: scenario }) => {
    const { checks = {}, interactions = {} } = scenario?.recorder ?? {};
    return Object.entries(checks).flatMap(([id, results]) => {
      const { request, response } = interactions[id] ?? {};
      const body = Buffer.from(response?.content?.$base64 ?? '', 'base64').toString();
      const asked = `${request?.method} ${request?.uri}`;
      return results
        .filter(({ status }) => status === 'failure')
        .map(({ name }) => ({ check: name, status: response?.status_code ?? 0, body, asked }));
    });
  });
}
