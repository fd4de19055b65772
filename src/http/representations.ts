/** Representations (JSON, problem+json, YAML, HTML) and content negotiation, for normal and error responses alike. */
import { createRequire } from 'node:module';
import Negotiator from 'negotiator';
import { createBoundedMap } from '#foundation';
import { pageHeaders } from './html/html.ts';
import { type PagePlace, type ProblemNotes, problemPage, resourcePage } from './html/pages.ts';
import { type ErrorBody, problem } from './problem.ts';

/** Serialises values as one media type. Pass your own to `createRepresentations`. */
export interface Formatter {
  /** The media type for negotiation, in lower case and without parameters. */
  readonly type: string;
  /** The value of `Content-Type`. */
  readonly contentType: string;
  /** True for a media type that is only for error responses. */
  readonly errorsOnly?: boolean;
  /** Headers that belong to the representation, such as a Content-Security-Policy. */
  readonly headers?: Readonly<Record<string, string>>;
  /** `title` is the heading of an HTML page. `notes` is set for errors only, and `place` for HTML only. */
  readonly format: (value: unknown, title: string, notes?: ProblemNotes, place?: PagePlace) => string;
}

/** Whether the formatter makes pages for people. Only those need to know where they are. */
export function isPage({ type }: Formatter): boolean {
  return type === htmlFormatter.type;
}

export interface Representations {
  /** The media types of normal responses, in the server's order of preference. */
  readonly types: readonly string[];
  /** The media types of error responses, in the server's order of preference. */
  readonly errorTypes: readonly string[];
  /** Throws `not-acceptable` with the list of available types. */
  readonly choose: (accept: string | undefined) => Formatter;
  /** Never throws: falls back to JSON if the client accepts none of the types (RFC 9457 section 3). */
  readonly chooseForError: (accept: string | undefined) => Formatter;
}

/** Ends with a line break, so that the prompt of a shell begins a new line after the output of curl. */
export const jsonFormatter: Formatter = {
  type: 'application/json',
  contentType: 'application/json',
  format: (value) => `${JSON.stringify(value)}\n`,
};

/**
 * RFC 9457. Includes the members of our own error body as well, because clients ignore unknown members (section 3.2). A
 * problem without a page has the type `about:blank`, which adds nothing to its status (section 4.2.1).
 */
export const problemJsonFormatter: Formatter = {
  type: 'application/problem+json',
  contentType: 'application/problem+json',
  errorsOnly: true,
  format: (value, message, notes) => {
    const body = value as ErrorBody;
    const { code: status } = body;
    const kind =
      notes?.type === undefined
        ? { type: 'about:blank', title: message.replace(/^\d+: /, '') }
        : { type: notes.type, title: notes.title };
    return jsonFormatter.format({ ...kind, status, ...body }, message);
  },
};

/** RFC 9512. Quotes what older parsers, such as PyYAML, would read as a date or a boolean: `2030-01-01`, `no`. */
export const yamlFormatter: Formatter = {
  type: 'application/yaml',
  contentType: 'application/yaml',
  format(value) {
    const { stringify } = loadYaml();
    const text = stringify(value, yamlOptions);
    if (text.search(unprintable) < 0) return text;
    return stringify(value, { ...yamlOptions, defaultStringType: 'QUOTE_DOUBLE' }).replace(unprintable, unicodeEscape);
  },
};

const require = createRequire(import.meta.url);

/** Loads the library with the first YAML response, because most apps that use a part of frontdesk never send one. */
function loadYaml(): typeof import('yaml') {
  return require('yaml');
}

const yamlOptions = {
  aliasDuplicateObjects: false,
  // Block scalars do not round-trip if the first line is blank: yaml reads " \n" back as "\n".
  blockQuote: false,
  compat: 'yaml-1.1',
} as const;

/** Characters that parsers reject or read as line breaks (YAML 1.1 and 1.2, section 5.1). yaml does not escape them. */
const unprintable = /[\x7f-\x9f\u2028\u2029\ufffe\uffff]/g;

function unicodeEscape(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
}

/** HTML for people with a browser. */
export const htmlFormatter: Formatter = {
  type: 'text/html',
  contentType: 'text/html; charset=utf-8',
  headers: pageHeaders(),
  format: (value, title, notes, place) =>
    notes === undefined ? resourcePage(value, title, place) : problemPage(value as ErrorBody, notes, place),
};

/** In the server's order of preference. */
export const builtInFormatters: readonly Formatter[] = [
  jsonFormatter,
  problemJsonFormatter,
  yamlFormatter,
  htmlFormatter,
];

/** The built-in formatters, with a custom HTML page instead of the generic one. */
export function withHtmlPage(format: Formatter['format'], headers = pageHeaders()): readonly Formatter[] {
  const page = { ...htmlFormatter, format, headers };
  return builtInFormatters.map((formatter) => (formatter === htmlFormatter ? page : formatter));
}

/**
 * Creates the choice of a formatter by `Accept` (RFC 9110 section 12.5.1). Without the header, the first one is chosen.
 * @throws {TypeError} without a formatter for normal responses.
 */
export function createRepresentations(formatters: readonly Formatter[] = builtInFormatters): Representations {
  const normal = formatters.filter(({ errorsOnly }) => errorsOnly !== true);
  const [fallback] = normal;
  if (fallback === undefined)
    throw new TypeError('createRepresentations needs at least one formatter without `errorsOnly`');
  const types = normal.map(({ type }) => type);
  const select = memoize((accept) => negotiate(accept, normal));
  const selectForError = memoize((accept) => negotiateError(accept, formatters));
  return Object.freeze({
    types,
    errorTypes: formatters.map(({ type }) => type),
    choose(accept: string | undefined) {
      const chosen = select(accept);
      if (chosen === undefined)
        throw problem('not-acceptable', {
          detail: `This resource is available as ${types.join(', ')}.`,
        });
      return chosen;
    },
    chooseForError: (accept: string | undefined) => selectForError(accept) ?? fallback,
  });
}

type Selection = (accept: string | undefined) => Formatter | undefined;

const cachedMax = 256;
const cachedLengthMax = 512;

/**
 * A longer `Accept` counts as absent, so it accepts everything (RFC 9110 section 12.5.1): negotiation takes quadratic
 * time.
 */
const acceptLengthMax = 1024;

/** Caches results for headers of ordinary length, because most of them repeat. */
function memoize(select: (accept: string) => Formatter | undefined): Selection {
  const cache = createBoundedMap<string, Formatter>(cachedMax);
  return (sent = '') => {
    const accept = sent.length > acceptLengthMax ? '' : sent;
    const known = cache.get(accept);
    if (known !== undefined) return known;
    const selected = select(accept);
    if (selected !== undefined && accept.length <= cachedLengthMax) cache.set(accept, selected);
    return selected;
  };
}

function negotiate(accept: string, formatters: readonly Formatter[]): Formatter | undefined {
  const type = negotiatorOf(accept).mediaType(formatters.map((one) => one.type));
  return formatters.find((one) => one.type === type);
}

/**
 * Prefers an errors-only type that the client lists explicitly over the default type, in whatever order it lists them.
 */
function negotiateError(accept: string, formatters: readonly Formatter[]): Formatter | undefined {
  const chosen = negotiate(accept, formatters);
  if (chosen !== formatters[0]) return chosen;
  const listed = negotiatorOf(accept).mediaTypes();
  return formatters.find(({ errorsOnly, type }) => errorsOnly === true && listed.includes(type)) ?? chosen;
}

function negotiatorOf(accept: string): Negotiator {
  return new Negotiator({ headers: { accept: normaliseAccept(accept) } });
}

/**
 * Removes parameters such as `charset` and `version` from `Accept`: no formatter distinguishes them, but negotiator
 * would treat each as a different type. Drops invalid media ranges. If none is left, accepts everything (RFC 9110
 * section 12.5.1).
 */
function normaliseAccept(accept: string): string {
  const ranges = accept.split(',').flatMap((part) => {
    const [range = '', ...parameters] = part.split(';').map((text) => text.trim().toLowerCase());
    if (!/^(?:\*\/\*|[\w!#$&^.+-]+\/(?:\*|[\w!#$&^.+-]+))$/.test(range)) return [];
    const quality = parameters.find((parameter) => /^q\s*=/.test(parameter))?.replace(/^q\s*=\s*/, '');
    if (quality === undefined) return [range];
    // Accepts `q=.2` from Java and `q=0.33333` from scripts, which are outside the grammar but unambiguous.
    return /^(?:0?\.\d+|0\.?|1(?:\.0*)?)$/.test(quality) ? [`${range};q=${quality}`] : [];
  });
  return ranges.length === 0 ? '*/*' : ranges.join(',');
}
