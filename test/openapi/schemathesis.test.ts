/** Tests the APIs with Schemathesis, if installed. It generates requests from the documents and checks responses. */
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

/** Generates the same requests each time, except for those that depend on responses. */
const bounds = ['--seed', '1', '--max-examples', '5', '--no-shrink', '--continue-on-failure'];

/** A reported failure that is correct behavior, which the schema of an argument cannot express. */
interface Exception {
  readonly check: string;
  readonly status: number;
  /** Matches the response body. */
  readonly body: RegExp;
  readonly reason: string;
}

const valid = 'positive_data_acceptance';

const exceptions: readonly Exception[] = [
  { check: valid, status: 400, body: /give both \w+ and \w+, or neither/, reason: 'two arguments belong together' },
  {
    check: valid,
    status: 400,
    body: /"(?:must (?:not )?be (?:after|at most) |is in the past)/,
    reason: 'the end of a stay depends on its start and on the current time',
  },
  {
    check: valid,
    status: 400,
    body: /is not a room type of|is not the id of a/,
    reason: 'only rows of the database can be booked',
  },
  {
    check: valid,
    status: 400,
    body: /is not a value that an item here can have/,
    reason: 'the URL of an item begins with the URL of the server',
  },
  {
    check: valid,
    status: 400,
    body: /"parameter":"sort","detail":"lists \w+ more than once/,
    reason: 'id and -id are the same field',
  },
  {
    check: valid,
    status: 400,
    body: /"parameter":"id","detail":"must be a whole number/,
    reason: 'it tries ids from other responses',
  },
  { check: valid, status: 400, body: /NUL/, reason: 'PostgreSQL cannot store a NUL in text' },
  { check: valid, status: 400, body: /problems\/bad-path"/, reason: 'a path must not contain control characters' },
  { check: valid, status: 412, body: /problems\/precondition-failed"/, reason: 'an entity tag changes with the item' },
  { check: valid, status: 422, body: /problems\/idempotency-mismatch"/, reason: 'a key belongs to its first body' },
  { check: 'missing_required_header', status: 428, body: /Send If-Match/, reason: 'RFC 6585 section 3' },
  {
    check: 'ignored_auth',
    status: 429,
    body: /problems\/login-throttled"/,
    reason: 'it has tried too many passwords',
  },
];

interface Failure {
  readonly check: string;
  readonly status: number;
  readonly body: string;
  readonly request: string;
}

describe('the APIs, tested by Schemathesis', function () {
  this.timeout(120_000);
  if (!isInstalled('schemathesis')) return void it('needs schemathesis on the PATH');
  const openDesk = desksOf(testServers(after));
  const writeFiles = temporaryFiles();
  let cwd: string;
  let gatewayUrl: string;

  before(async () => {
    cwd = await writeFiles();
    const desk = await openDesk();
    gatewayUrl = (await desk.listen()).gateway.url;
  });

  for (const prefix of documentPrefixes) {
    it(`respond as documented, and accept all documented requests: ${prefix}`, async () => {
      const document = withoutSome(await readDocument(gatewayUrl, prefix));
      const file = await writeDocument(cwd, prefix, document);
      const report = `${file}.ndjson`;
      const env = { PATH: process.env['PATH'], HOME: cwd };
      const args = ['run', file, '--url', gatewayUrl + prefix, '--auth', 'demo:demo', ...bounds];
      const reports = ['--report', 'ndjson', '--report-ndjson-path', report, '--output-sanitize', 'false'];
      const { stdout } = await run('schemathesis', [...args, ...reports], { cwd, env }).catch((error) => error);
      const operations = Object.values(document.paths).flatMap(Object.keys).length;
      assert.match(stdout, new RegExp(`Tested: ${operations}\\b`), stdout);
      assert.doesNotMatch(stdout, /^ *Errors:/m, stdout);
      const failures = failuresIn(await readFile(report, 'utf8'));
      assert.deepEqual(
        failures.filter((failure) => !exceptions.some((exception) => isExpected(failure, exception))),
        [],
      );
    });
  }
});

/**
 * Removes arguments whose effect schemas cannot express. `after` cannot be combined with `offset`, so most requests would
 * fail, and with `fields` an item lacks fields that its schema requires.
 */
function withoutSome(document: Document): Document {
  const paths = structuredClone(document.paths);
  for (const operation of Object.values(paths).flatMap((item) => Object.values(item)))
    operation.parameters = operation.parameters?.filter(({ name }) => name !== 'after' && name !== 'fields') ?? [];
  return { ...document, paths };
}

function isExpected({ check, status, body }: Failure, exception: Exception): boolean {
  return exception.check === check && exception.status === status && exception.body.test(body);
}

interface Recorder {
  readonly checks?: Readonly<Record<string, readonly { readonly name: string; readonly status: string }[]>>;
  readonly interactions: Readonly<Record<string, Interaction>>;
}

interface Interaction {
  readonly request: { readonly method: string; readonly uri: string };
  readonly response: { readonly status_code: number; readonly content?: { readonly $base64: string } } | null;
}

/** Returns the failures in the report, which has one JSON text per event. */
function failuresIn(report: string): readonly Failure[] {
  const events = report
    .trim()
    .split('\n')
    .map((line): { ScenarioFinished?: { recorder: Recorder } } => JSON.parse(line));
  return events.flatMap(({ ScenarioFinished: scenario }) => {
    const { checks = {}, interactions = {} } = scenario?.recorder ?? {};
    return Object.entries(checks).flatMap(([id, results]) => {
      const { request: sent, response } = interactions[id] ?? {};
      const body = Buffer.from(response?.content?.$base64 ?? '', 'base64').toString();
      const request = `${sent?.method} ${sent?.uri}`;
      return results
        .filter(({ status }) => status === 'failure')
        .map(({ name }) => ({ check: name, status: response?.status_code ?? 0, body, request }));
    });
  });
}
