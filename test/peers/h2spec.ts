/** Runs h2spec, which breaks HTTP/2's rules, and lists the cases that a server fails. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

/**
 * The cases of h2spec that Node's own server fails too, because nghttp2 ignores such a frame or closes the connection.
 * A server of ours may fail these and no others.
 */
export const nghttp2Differs: readonly string[] = [
  '5.1 closed: Sends a DATA frame after sending RST_STREAM frame',
  '5.1 closed: Sends a HEADERS frame after sending RST_STREAM frame',
  '5.1 closed: Sends a DATA frame',
  '5.1 closed: Sends a HEADERS frame',
  '5.1.1 Sends stream identifier that is numerically smaller than previous',
  '5.3.1 Sends PRIORITY frame that depend on itself',
  '6.3 Sends a PRIORITY frame with 0x0 stream identifier',
  '6.7 Sends a PING frame with ACK',
  '6.9.1 Sends multiple WINDOW_UPDATE frames increasing the flow control window to above 2^31-1 on a stream',
  // The stream is closed if the response was sent before the frame arrives.
  '5.1 half closed (remote): Sends a DATA frame',
  '5.1 half closed (remote): Sends a HEADERS frame',
  '6.1 Sends a DATA frame on the stream that is not in "open" or "half-closed (local)" state',
];

/**
 * Returns the failed cases, each with its section.
 * @param args the parts of h2spec to run, and its options
 */
export async function h2specFailures(port: number, args: readonly string[]): Promise<readonly string[]> {
  // It ends with 1 if a case fails.
  const running = promisify(execFile)('h2spec', ['-p', String(port), ...args]);
  const { stdout } = await running.catch((error: { readonly stdout: string }) => error);
  const [, passed, failed] = /tests, (\d+) passed, \d+ skipped, (\d+) failed/.exec(stdout) ?? [];
  const [, list = ''] = stdout.split('Failures:');
  let section = '';
  const names: string[] = [];
  for (const [, heading, name] of list.matchAll(/^ *(?:(\d[\d.]*)\. .*|× (?:\d+: )?(.*))$/gm)) {
    if (name === undefined) section = heading ?? '';
    else names.push(`${section} ${name}`);
  }
  assert.ok(Number(passed) > 0 && Number(failed) === names.length, stdout);
  return names;
}
