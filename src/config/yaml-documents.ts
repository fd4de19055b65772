/** YAML streams, document by document: plain ones are read fast, all others by the library. */
import type { ConfigurationError } from './configuration.ts';
import type { Documents, Place, PlacedDocument } from './placed-document.ts';
import { readAnyYaml } from './yaml-library.ts';
import { type PlainDocument, readPlainYaml } from './yaml-plain.ts';

export type { PlacedDocument } from './placed-document.ts';

/** Every document that parses, and an error for each that does not. Empty documents are skipped. */
export function readDocuments(text: string, place: Place): Documents {
  const { results, errors } = mapDocuments(text, place, (document) => document);
  return { documents: results, errors };
}

interface Mapped<T> {
  readonly results: readonly T[];
  readonly errors: readonly ConfigurationError[];
}

/** The same with what `read` makes of each document: of ten thousand there is never more than one at a time to keep. */
export function mapDocuments<T>(text: string, place: Place, read: (document: PlacedDocument) => T): Mapped<T> {
  if (mayReachFurther(text)) return mapThoroughly(text, place, read);
  const results: T[] = [];
  let [start, line] = [0, 0];
  while (start < text.length) {
    const part = text.slice(start, nextMarker(text, start));
    const plain = readPlainYaml(part);
    if (plain === undefined) {
      const mapped = mapThoroughly(part, below(place, line), read);
      // What the library takes for the next document where it finds a fault is its own affair: it gets the whole text.
      if (mapped.errors.length > 0) return mapThoroughly(text, place, read);
      results.push(...mapped.results);
    } else if (plain.value !== null) {
      results.push(read(placed(plain, part, place, line)));
    }
    start += part.length;
    line += plain?.lines ?? newlinesIn(part);
  }
  return { results, errors: [] };
}

function mapThoroughly<T>(text: string, place: Place, read: (document: PlacedDocument) => T): Mapped<T> {
  const { documents, errors } = readAnyYaml(text, place);
  return { results: documents.map(read), errors };
}

/** Directives and `...` have a say in what comes after them: a stream that may have one is left to the library. */
function mayReachFurther(text: string): boolean {
  return /^\uFEFF?(?:%|\.\.\.)/.test(text) || text.includes('\n%') || text.includes('\n...');
}

/** The place of a text that begins behind the first `lines` lines. */
function below(place: Place, lines: number): Place {
  return { ...place, lineOf: (line) => place.lineOf(lines + line) };
}

/**
 * The offset of the next line that begins with `---`, which begins a document whatever it stands in
 * (YAML 1.2.2 production 206, c-forbidden).
 */
function nextMarker(text: string, from: number): number {
  let at = text.indexOf('\n---', from);
  while (at !== -1 && !' \t\r\n'.includes(text.charAt(at + 4))) at = text.indexOf('\n---', at + 1);
  return at === -1 ? text.length : at + 1;
}

function newlinesIn(text: string): number {
  let count = 0;
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) count += 1;
  return count;
}

/** Of a plain document the library is asked only for the lines inside it, which few need: those with an error to report. */
function placed(plain: PlainDocument, text: string, place: Place, lines: number): PlacedDocument {
  const { value } = plain;
  const { file } = place;
  const first = place.lineOf(lines + plain.line);
  let read: PlacedDocument | undefined;
  const thorough = () => {
    read ??= readAnyYaml(text, below(place, lines)).documents[0];
    return read;
  };
  return {
    value,
    file,
    lineAt: (path) => (path.length === 0 ? first : (thorough()?.lineAt(path) ?? first)),
    placeWithin(path, record) {
      const holder = path.slice(0, -1).reduce(memberOf, value);
      const literal = plain.literals.find((one) => one.holder === holder && one.key === path.at(-1));
      if (literal === undefined) return thorough()?.placeWithin(path, record) ?? { file, record, lineOf: () => first };
      const header = place.lineOf(lines + literal.line);
      return { file, record, lineOf: (line) => header + line };
    },
  };
}

function memberOf(value: unknown, key: PropertyKey): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, key) : undefined;
}
