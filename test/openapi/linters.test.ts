/** The documents by the recommended rules of Redocly and Spectral, where these are installed. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { desksOf } from '../support/desks.ts';
import { isInstalled } from '../support/programs/installed.ts';
import { testServers } from '../support/serve.ts';
import { temporaryFiles } from '../support/temporary-files.ts';
import { documentPrefixes, readDocument, writeDocument } from './written-documents.ts';

const run = promisify(execFile);

/** A collection has a slash at its end here. */
const slash = { redocly: 'no-path-trailing-slash', spectral: 'path-keys-no-trailing-slash' };

/** Whoever runs the server is the contact, and the document does not know them. */
const contact = 'info-contact';

describe('OpenAPI documents, for the linters of others', () => {
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
      documentPrefixes.map(async (prefix) =>
        writeDocument(cwd, prefix, await readDocument(gateway?.url ?? '', prefix)),
      ),
    );
  });

  /** Its standard output, which says what it found with any exit code. */
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

  it("have nothing that Redocly's recommended rules find, but the slash", async function () {
    if (!isInstalled('redocly')) this.skip();
    // A text of JSON for each file.
    const found = await lint('redocly', ['lint', '--extends=recommended', '--format=json']);
    const rules = new Set(Array.from(found.matchAll(/"ruleId": "([^"]*)"/g), ([, rule]) => rule));
    assert.deepEqual([...rules], [slash.redocly], found);
  });

  it("have nothing that Spectral's rules find, but the slash and the contact", async function () {
    if (!isInstalled('spectral')) this.skip();
    const found = JSON.parse(await lint('spectral', ['lint', '--quiet', '-r', 'rules.yaml', '-f', 'json']));
    const rules = new Set(found.map(({ code }: { readonly code: string }) => code));
    assert.deepEqual([...rules].toSorted(), [contact, slash.spectral], JSON.stringify(found));
  });
});
