/** Checks that two servers respond alike, so that the benchmark compares the same work. */
import { isDeepStrictEqual } from 'node:util';
import type { Row } from '../processes/start-servers.ts';

interface RowServer {
  readonly port: number;
  readonly row: Pick<Row, 'name' | 'path'>;
  readonly headers: Readonly<Record<string, string>>;
}

/** Throws unless both responses have the same headers, in any order, and bodies with the same fields. */
export async function requireSameResponse(one: RowServer, other: RowServer): Promise<void> {
  const [first, second] = [await outlineOf(one), await outlineOf(other)];
  if (isDeepStrictEqual(first, second)) return;
  const [left, right] = [first, second].map((outline) => JSON.stringify(outline, null, 2));
  throw new Error(`${one.row.name} and ${other.row.name} respond differently:\n${left}\n${right}`);
}

/** Headers whose values differ from request to request, or from one booking to another. */
const varying: ReadonlySet<string> = new Set(['x-request-id', 'date', 'etag', 'content-length']);

async function outlineOf({ port, row: { path }, headers }: RowServer) {
  const response = await fetch(`http://127.0.0.1:${port}${path}`, { headers });
  const values = [...response.headers].map(([name, value]) => [name, varying.has(name) ? typeof value : value]);
  return { status: response.status, headers: Object.fromEntries(values), body: typesOf(await response.json()) };
}

/** Replaces the texts and numbers in a value by their types. */
function typesOf(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(typesOf);
  if (typeof value !== 'object' || value === null) return typeof value;
  return Object.entries(value).map(([name, member]) => [name, typesOf(member)]);
}
