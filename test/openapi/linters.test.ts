/** Lints the OpenAPI documents with the recommended rules of Redocly and Spectral, if these are installed. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { desksOf } from '../support/desks.ts';
import { isInstalled } from '../support/programs/installed.ts';
import { testServers } from '../support/serve.ts';
import { temporaryFiles } from '../support/temporary-files.ts';
import { documentPrefixes, readDocument, writeDocument } from './written-documents.ts';

const run = promisify(execFile);

/** Our collections intentionally end with a slash. */
const slash = { redocly: 'no-path-trailing-slash', spectral: 'path-keys-no-trailing-slash' };

/** The contact would be the operator of the server, whom the document does not know. */
const contact = 'info-contact';

describe('linting of OpenAPI documents', () => {
  const servers = testServers(after);
  const openDesk = desksOf(servers);
  const writeFiles = temporaryFiles();
  let cwd: string;
  let files: readonly string[];

  before(async () => {
    cwd = await writeFiles({ 'rules.yaml': 'extends: ["spectral:oas"]\n' });
    const desk = await openDesk();
    const { gateway } = await desk.listen();
    files = await Promise.all(
      documentPrefixes.map(async (prefix) => writeDocument(cwd, prefix, await readDocument(gateway.url, prefix))),
    );
  });

  /** Returns the standard output of the linter, whatever its exit code. */
  async function lint(command: string, args: readonly string[]): Promise<string> {
    const env = {
      PATH: process.env['PATH'],
      HOME: cwd,
      REDOCLY_TELEMETRY: 'off',
      REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true',
    };
    const options = { cwd, env, maxBuffer: 64 * 1024 * 1024 };
    const { stdout } = await run(command, [...args, ...files], options).catch((error: { stdout: string }) => error);
    return stdout;
  }

  it("finds only trailing slashes by Redocly's recommended rules", async function () {
    if (!isInstalled('redocly')) this.skip();
    // The output has one JSON document per file.
    const found = await lint('redocly', ['lint', '--extends=recommended', '--format=json']);
    const rules = new Set(Array.from(found.matchAll(/"ruleId": "([^"]*)"/g), ([, rule]) => rule));
    assert.deepEqual([...rules], [slash.redocly], found);
  });

  it("finds only trailing slashes and the missing contact by Spectral's rules", async function () {
    if (!isInstalled('spectral')) this.skip();
    const found = JSON.parse(await lint('spectral', ['lint', '--quiet', '-r', 'rules.yaml', '-f', 'json']));
    const rules = new Set(found.map(({ code }: { readonly code: string }) => code));
    assert.deepEqual([...rules].toSorted(), [contact, slash.spectral], JSON.stringify(found));
  });
});
