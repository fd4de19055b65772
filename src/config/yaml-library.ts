/** YAML as the `yaml` library reads it: all of it, and with what is wrong with a text; a good deal slower than plain YAML is read. */
import {
  type Document,
  isMap,
  isNode,
  isPair,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  type Pair,
  parseAllDocuments,
  type YAMLError,
} from 'yaml';
import type { ConfigurationError } from './configuration.ts';
import type { Documents, Place, PlacedDocument } from './placed-document.ts';

/** Aliases are counted with what they multiply, so that a few lines cannot become gigabytes. */
const aliasesMax = 100;

/** Every document that parses, and an error for each that does not. Empty documents are skipped. */
export function readAnyYaml(text: string, place: Place): Documents {
  const lines = new LineCounter();
  const parsed = parseAllDocuments(text, {
    lineCounter: lines,
    // What it has to say is in its errors; a map as a key need not be told to the process as well.
    logLevel: 'error',
    prettyErrors: false,
    strict: true,
    uniqueKeys: true,
  });
  const lineAt = (offset: number) => place.lineOf(Math.max(1, lines.linePos(offset).line));
  const documents: PlacedDocument[] = [];
  const errors: ConfigurationError[] = [];
  for (const document of parsed) {
    const faults = syntaxErrors(document, text);
    const start = document.contents?.range?.[0] ?? 0;
    const value = faults.length === 0 ? plainValue(document) : undefined;
    if (value instanceof Error) faults.push(aliasError(value, start));
    for (const { offset, ...fault } of faults) {
      errors.push({
        source: { file: place.file, line: lineAt(offset) },
        record: place.record,
        ...fault,
      });
    }
    if (faults.length === 0 && value !== null) documents.push(placed(document, value, place, lineAt));
  }
  return { documents, errors };
}

interface SyntaxFault {
  readonly offset: number;
  readonly message: string;
  readonly remedy: string;
}

/** Repeated keys are named one by one; of other errors the first, because the rest mostly follow from it. */
function syntaxErrors(document: Document, text: string): SyntaxFault[] {
  const errors: readonly YAMLError[] = [...document.errors, ...document.warnings];
  const repeated = errors.filter(({ code }) => code === 'DUPLICATE_KEY');
  const other = errors.filter(({ code }) => code !== 'DUPLICATE_KEY').slice(0, 1);
  return [
    ...repeated.map(({ pos }) => ({
      offset: pos[0],
      message: `the key "${keyAt(text, pos[0])}" stands twice in one map`,
      remedy: 'Keep one of the two.',
    })),
    ...other.map(({ pos, code, message }) => ({
      offset: pos[0],
      message: `this is not YAML that can be read: ${message}`,
      remedy:
        code === 'TAB_AS_INDENT'
          ? 'Indent with spaces.'
          : 'Look at the indentation, quotes and brackets on this line and the one above.',
    })),
  ];
}

function keyAt(text: string, offset: number): string {
  return (
    /^(?:"[^"\n]*"|'[^'\n]*'|[^:\n]*)/
      .exec(text.slice(offset))?.[0]
      .trim()
      .replace(/^(["'])(.*)\1$/, '$2') ?? ''
  );
}

function aliasError(error: Error, offset: number): SyntaxFault {
  return {
    offset,
    message: `the aliases cannot be followed: ${error.message}`,
    remedy: `Define each anchor before its aliases, and use at most ${aliasesMax} of them; or write the values out.`,
  };
}

/** `toJS` throws a ReferenceError for aliases that lead nowhere or to too much. */
function plainValue(document: Document): unknown {
  try {
    return document.toJS({ maxAliasCount: aliasesMax });
  } catch (error) {
    if (error instanceof ReferenceError) return error;
    throw error;
  }
}

function placed(document: Document, value: unknown, place: Place, lineAt: (offset: number) => number): PlacedDocument {
  const contents = document.contents;
  const lineOfPath = (path: readonly PropertyKey[]) => lineAt(walk(contents, path).offset);
  return {
    value,
    file: place.file,
    lineAt: lineOfPath,
    placeWithin: (path, record) => {
      const { node } = walk(contents, path);
      const first = lineAt(node?.range?.[0] ?? 0);
      // Only a literal block has a line of file for each of its own; its text starts below the `|`.
      const literal = isScalar(node) && node.type === 'BLOCK_LITERAL';
      return {
        file: place.file,
        record,
        lineOf: (line) => (literal ? first + line : first),
      };
    },
  };
}

interface Found {
  readonly node: Node | undefined;
  readonly offset: number;
}

/** The node at a path, and the offset to show for it: of the key where there is one. */
function walk(root: unknown, path: readonly PropertyKey[]): Found {
  let found: Found = foundAt(root, root, 0);
  for (const key of path) {
    const step = stepInto(found.node, key);
    if (step === undefined) break;
    found = isPair(step) ? foundAt(step.value, step.key, found.offset) : foundAt(step, step, found.offset);
  }
  return found;
}

function foundAt(node: unknown, shown: unknown, offset: number): Found {
  return {
    node: isNode(node) ? node : undefined,
    offset: isNode(shown) ? (shown.range?.[0] ?? offset) : offset,
  };
}

function stepInto(node: Node | undefined, key: PropertyKey): Pair | Node | undefined {
  if (isMap(node)) return node.items.find((pair) => isScalar(pair.key) && String(pair.key.value) === String(key));
  const item = isSeq(node) && typeof key === 'number' ? node.items[key] : undefined;
  return isNode(item) ? item : undefined;
}
