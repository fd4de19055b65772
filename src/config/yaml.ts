/** Parses YAML into plain values with line numbers, and reports syntax errors with line and remedy. */
import { isUtf8 } from 'node:buffer';
import {
  Composer,
  type CST,
  type Document,
  isCollection,
  isMap,
  isNode,
  isPair,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  type Pair,
  Parser,
  visit,
  type YAMLError,
  type YAMLMap,
} from 'yaml';
import { type ConfigDocument, type ConfigurationError, type Fault, fileError, type Place } from './errors.ts';
import { quote } from './quote.ts';

/** The library counts every item that nested aliases expand to, so a few lines cannot become gigabytes. */
const aliasesMax = 100;

/** The library composes nested nodes recursively, so deeper nesting could crash the process. */
export const levelsMax = 64;

/** The library needs a few hundred bytes of memory for each character of a document. */
const documentCharactersMax = 2 * 1024 * 1024;

export const keysMax = 1000;

/** The maximum number of errors reported for one text. Later ones often follow from the first. */
const errorsMax = 100;

/** More time than a slow and busy machine needs for valid records. */
const timeLimitMs = ({ length }: string) => 10_000 + length / 100;

interface YamlResult<T> {
  readonly results: readonly T[];
  readonly errors: readonly ConfigurationError[];
}

/**
 * Calls `read` for each document, one at a time, and returns its results, with an error for each document that does not
 * parse. Skips empty documents. A text that is too large or takes too long gets an error with the line where reading
 * stopped. The values of `textKeys` are read as text even if YAML would read numbers or booleans, and keep their
 * spelling: `1.10`, not `1.1`.
 */
export function readYaml<T>(
  text: string,
  place: Place,
  read: (document: ConfigDocument) => T,
  textKeys: readonly string[] = [],
): YamlResult<T> {
  const lines = new LineCounter();
  const lineAt = (offset: number) => place.lineOf(Math.max(1, lines.linePos(offset).line));
  const results: T[] = [];
  const errors: ConfigurationError[] = [];
  const add = (line: number, { message, remedy }: Fault) =>
    errors.push({ source: { file: place.file, line }, record: place.record, message, remedy });
  const report = ({ offset, ...fault }: SyntaxFault) => add(lineAt(offset), fault);
  const largeAt = largeDocument(text);
  if (largeAt !== undefined) {
    add(place.lineOf(text.slice(0, largeAt).split('\n').length), tooLarge);
    return { results, errors };
  }
  const endMs = performance.now() + timeLimitMs(text);
  const tokens = shallowTokens(new Parser(lines.addNewLine).parse(text), report);
  for (const document of withoutStacks(new Composer(options).compose(tokens))) {
    if (textKeys.length > 0) keepSpelling(document, textKeys);
    const { value, faults } = plainValue(document, text);
    faults.forEach(report);
    if (faults.length === 0 && value !== null) results.push(read(configDocument(document, value, place, lineAt)));
    if (errors.length <= errorsMax && performance.now() < endMs) continue;
    report({ offset: document.range[1], ...(errors.length > errorsMax ? tooManyErrors : tooSlow) });
    break;
  }
  return { results, errors };
}

const tooLarge: Fault = {
  message: `this document has more than ${documentCharactersMax / 1024 / 1024} million characters`,
  remedy: 'Split it into several documents or files.',
};
const tooSlow: Fault = { message: 'reading this file took too long and stopped here', remedy: 'Split the file.' };
const tooManyErrors: Fault = {
  message: `there are more than ${errorsMax} errors, so reading stopped here`,
  remedy: 'Correct the errors above first.',
};

/** Returns the offset of a document that is too large. Runs before the parser, which would need too much memory. */
function largeDocument(text: string): number | undefined {
  if (text.length <= documentCharactersMax) return undefined;
  let start = 0;
  for (const { index } of text.matchAll(/^---(?=\s)/gm)) {
    if (index - start > documentCharactersMax) return start;
    start = index;
  }
  return text.length - start > documentCharactersMax ? start : undefined;
}

const options = {
  // The library would also emit process warnings, which only repeat the errors.
  logLevel: 'error',
  prettyErrors: false,
  strict: true,
  // The library compares each key with all previous ones. `keyFaults` finds repeated keys in linear time.
  uniqueKeys: false,
} as const;

interface SyntaxFault extends Fault {
  readonly offset: number;
}

/**
 * The library makes an Error of each fault, and of each comma without an item. Their stacks, which nobody reads, would take
 * most of the time.
 */
function* withoutStacks<T>(items: Iterable<T>): Generator<T> {
  const iterator = items[Symbol.iterator]();
  for (;;) {
    const { stackTraceLimit } = Error;
    Error.stackTraceLimit = 0;
    let next: IteratorResult<T>;
    try {
      next = iterator.next();
    } finally {
      Error.stackTraceLimit = stackTraceLimit;
    }
    if (next.done) return;
    yield next.value;
  }
}

/** Returns the tokens of a stream, with documents that are nested too deeply replaced by empty ones. */
function* shallowTokens(tokens: Iterable<CST.Token>, report: (fault: SyntaxFault) => void): Generator<CST.Token> {
  for (const token of tokens) {
    const deep = token.type === 'document' ? findTooDeep(token) : undefined;
    if (deep === undefined) {
      yield token;
      continue;
    }
    report({
      offset: deep.offset,
      message: `this is nested more than ${levelsMax} levels deep`,
      remedy: 'Remove brackets or indentation: no record needs that many levels.',
    });
    yield { ...token, value: undefined } as unknown as CST.Token;
  }
}

/**
 * Returns the first collection below the deepest allowed level. Does not recurse, because the text may be nested
 * deeply.
 */
function findTooDeep(document: CST.Document): CST.Token | undefined {
  let level: Collection[] = [];
  addCollection(level, document.value);
  for (let depth = 1; level.length > 0; depth += 1) {
    if (depth > levelsMax) return level[0];
    level = levelBelow(level);
  }
  return undefined;
}

function levelBelow(level: readonly Collection[]): Collection[] {
  const below: Collection[] = [];
  for (const { items } of level)
    for (const { key, value } of items) {
      addCollection(below, key);
      addCollection(below, value);
    }
  return below;
}

function addCollection(level: Collection[], token: CST.Token | null | undefined): void {
  if (token && 'items' in token) level.push(token);
}

type Collection = Extract<CST.Token, { readonly items: unknown }>;

function keepSpelling(document: Document, keys: readonly unknown[]): void {
  visit(document, {
    Pair(_, { key, value }) {
      if (!isScalar(key) || !keys.includes(key.value) || !isScalar(value)) return;
      if (['number', 'boolean'].includes(typeof value.value)) value.value = value.source;
    },
  });
}

/** Converts a document to a plain value. `toJS` throws a ReferenceError for aliases that are unknown or too many. */
function plainValue(document: Document, text: string): { readonly value?: unknown; readonly faults: SyntaxFault[] } {
  const faults = syntaxFaults(document, text);
  if (faults.length > 0) return { faults };
  try {
    return { value: document.toJS({ maxAliasCount: aliasesMax }), faults };
  } catch (error) {
    if (!(error instanceof ReferenceError)) throw error;
    return { faults: [unknownAlias(document) ?? tooManyAliases(document)] };
  }
}

/** Returns a fault for the first alias without an anchor. The name is omitted, because it may be a part of a secret. */
function unknownAlias(document: Document): SyntaxFault | undefined {
  const anchors = new Set<string>();
  let offset: number | undefined;
  visit(document, {
    Value(_, { anchor }) {
      if (anchor !== undefined) anchors.add(anchor);
    },
    Alias(_, { source, range }) {
      if (anchors.has(source)) return undefined;
      offset = range?.[0];
      return visit.BREAK;
    },
  });
  if (offset === undefined) return undefined;
  const message = 'a text that begins with * refers to an anchor, and there is none with this name above it';
  return {
    offset,
    message,
    remedy: 'Put the text into quotes, for example "*.example.com", or define the anchor first.',
  };
}

function tooManyAliases({ contents }: Document): SyntaxFault {
  return {
    offset: contents?.range?.[0] ?? 0,
    message: 'the aliases expand to too many values',
    remedy: `Use at most ${aliasesMax} aliases, or write the values out.`,
  };
}

/** Returns all repeated keys, but only the first of the other errors, because the rest usually follow from it. */
function syntaxFaults(document: Document, text: string): SyntaxFault[] {
  const [first] = [...document.errors, ...document.warnings];
  const repeated = keyFaults(document.contents, text);
  return first === undefined ? repeated : [...repeated, faultOf(first)];
}

/** Omits the text that the library quotes after a colon, which may be a part of a secret. */
function faultOf({ pos, code, message }: YAMLError): SyntaxFault {
  return {
    offset: pos[0],
    message: `this is not valid YAML: ${message.replace(/: .*/s, '')}`,
    remedy: remedies[code] ?? 'Check the indentation, quotes and brackets on this line and the one above.',
  };
}

const remedies: { readonly [Code in YAMLError['code']]?: string } = {
  TAB_AS_INDENT: 'Indent with spaces.',
  BAD_ALIAS: 'Put the text that begins with * or & into quotes, for example "*".',
  BAD_SCALAR_START: 'Put the text into quotes.',
  TAG_RESOLVE_FAILED: 'Put the text that begins with ! into quotes, or remove the tag.',
  MULTILINE_IMPLICIT_KEY: 'Write a space after the colon of each field: "name: orders".',
  BLOCK_AS_IMPLICIT_KEY:
    'Put a value that contains ": " into quotes, and indent all fields of a map by the same number of spaces.',
  BAD_DQ_ESCAPE: "Write the text in single quotes: '\\d+'.",
  MISSING_CHAR: 'Add the missing character. The quotation mark or bracket that it belongs to may be further up.',
};

/** Returns the faults of all maps in a node. Stops when there are too many, because every character may be one. */
function keyFaults(root: Node | null, text: string): SyntaxFault[] {
  const faults: SyntaxFault[] = [];
  const nodes: unknown[] = [root];
  for (let node = nodes.pop(); node !== undefined && faults.length <= errorsMax; node = nodes.pop()) {
    if (isMap(node)) faults.push(...repeatedKeys(node, text, node === root));
    // Not spread into one call: a sequence may have more items than a call may have arguments.
    for (const inner of collectionsIn(node)) nodes.push(inner);
  }
  return faults.sort((a, b) => a.offset - b.offset).slice(0, errorsMax + 1);
}

function collectionsIn(node: unknown): readonly unknown[] {
  if (isSeq(node)) return node.items.filter(isCollection);
  return isMap(node) ? node.items.flatMap(({ key, value }) => [key, value].filter(isCollection)) : [];
}

/** Returns the fault of a map whose first two keys are repeated in this order: `---` is missing before them. */
function secondRecord(items: YAMLMap['items']): SyntaxFault | undefined {
  const keys = items.map(({ key }) => (isScalar(key) ? key.value : undefined));
  const [first, second] = keys;
  const index = keys.findIndex((key, at) => at > 1 && key === first && keys[at + 1] === second);
  const key = items[index]?.key;
  if (first === undefined || first === second || !isScalar(key)) return undefined;
  const remedy = 'Write --- on the line above.';
  return { offset: key.range?.[0] ?? 0, message: 'a second record begins here, in the same document', remedy };
}

/** `isRecord`: whether the map is the whole document. */
function repeatedKeys({ items, range }: YAMLMap, text: string, isRecord: boolean): readonly SyntaxFault[] {
  if (items.length > keysMax) {
    const message = `this map has ${items.length} keys, and at most ${keysMax} are read`;
    return [{ offset: range?.[0] ?? 0, message, remedy: 'Remove keys: no record needs that many.' }];
  }
  const second = isRecord ? secondRecord(items) : undefined;
  if (second !== undefined) return [second];
  const keys = new Set<unknown>();
  return items.flatMap(({ key }) => {
    if (!isScalar(key) || !keys.has(key.value)) {
      if (isScalar(key)) keys.add(key.value);
      return [];
    }
    const offset = key.range?.[0] ?? 0;
    return [
      {
        offset,
        message: `the key ${quote(keyAt(text, offset))} appears twice in one map`,
        remedy: 'Keep one of the two.',
      },
    ];
  });
}

function keyAt(text: string, offset: number): string {
  const found = /^(?:"[^"\n]*"|'[^'\n]*'|[^:\n]*)/.exec(text.slice(offset, offset + 1000))?.[0] ?? '';
  return found.trim().replace(/^(["'])(.*)\1$/, '$2');
}

function configDocument(
  document: Document,
  value: unknown,
  place: Place,
  lineAt: (offset: number) => number,
): ConfigDocument {
  const { contents } = document;
  const { file } = place;
  return {
    value,
    file,
    lineAt: (path) => lineAt(findNode(contents, path).offset),
    placeWithin(path, record) {
      const { node } = findNode(contents, path);
      const first = lineAt(node?.range?.[0] ?? 0);
      // Only the lines of a literal block correspond to lines of the file. Its text starts on the line after the `|`.
      const isLiteral = isScalar(node) && node.type === 'BLOCK_LITERAL';
      return { file, record, lineOf: (line) => (isLiteral ? first + line : first) };
    },
  };
}

interface Found {
  readonly node: Node | undefined;
  readonly offset: number;
}

/** Finds the node at a path, and the offset that errors report: that of its key, if it has one. */
function findNode(root: unknown, path: readonly PropertyKey[]): Found {
  let found = foundAt(root, root, 0);
  for (const key of path) {
    const step = stepInto(found.node, key);
    if (step === undefined) break;
    found = isPair(step) ? foundAt(step.value, step.key, found.offset) : foundAt(step, step, found.offset);
  }
  return found;
}

function foundAt(node: unknown, reported: unknown, offsetAbove: number): Found {
  return {
    node: isNode(node) ? node : undefined,
    offset: isNode(reported) ? (reported.range?.[0] ?? offsetAbove) : offsetAbove,
  };
}

function stepInto(node: Node | undefined, key: PropertyKey): Pair | Node | undefined {
  if (isMap(node)) return node.items.find((pair) => isScalar(pair.key) && String(pair.key.value) === String(key));
  const item = isSeq(node) && typeof key === 'number' ? node.items[key] : undefined;
  return isNode(item) ? item : undefined;
}

/** Rejects a file that is not UTF-8. Decoding it anyway would replace invalid bytes, for example in paths. */
export function encodingErrorOf(file: string, bytes: Buffer): ConfigurationError | undefined {
  if (isUtf8(bytes)) return undefined;
  // Multi-byte characters in UTF-8 never contain the byte of a line feed, so each line can be checked separately.
  const lines = bytes.toString('latin1').split('\n');
  const line = lines.findIndex((text) => !isUtf8(Buffer.from(text, 'latin1'))) + 1;
  return fileError(file, 'this is not valid UTF-8', 'Save the file as UTF-8.', line);
}
