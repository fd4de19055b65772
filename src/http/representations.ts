/** JSON, problem+json, YAML and HTML, and the choice among them by `Accept`, for normal and for error responses alike. */
import Negotiator from 'negotiator';
import { stringify } from 'yaml';
import { resourcePage } from './html/data.ts';
import { pageHeaders } from './html/html.ts';
import { type ProblemNotes, problemPage } from './html/problem-page.ts';
import { type ErrorBody, problem } from './problem.ts';

/** Makes one representation. Add your own to the list that `createRepresentations` takes. */
export interface Formatter {
  /** The media type that is negotiated, in lower case and without parameters. */
  readonly type: string;
  /** The value of `Content-Type`. */
  readonly contentType: string;
  /** A short word for entity tags: two representations of one version never share a tag. */
  readonly tag: string;
  /** True for a media type that is for errors alone. */
  readonly errorsOnly?: boolean;
  /** Headers that belong to the representation, such as a Content-Security-Policy. */
  readonly headers?: Readonly<Record<string, string>>;
  /** `title` heads the page for people; an error comes with notes. */
  readonly format: (value: unknown, title: string, notes?: ProblemNotes) => string;
}

export interface Representations {
  /** The media types on offer for normal responses, in the server's order of preference. */
  readonly types: readonly string[];
  /** The same for error responses. */
  readonly errorTypes: readonly string[];
  /** Throws `not-acceptable` with the list of what there is. */
  readonly choose: (accept: string | undefined) => Formatter;
  /** Never refuses: an error that the client accepts in no type on offer comes as JSON (RFC 9457 section 3). */
  readonly chooseForError: (accept: string | undefined) => Formatter;
}

export const jsonFormatter: Formatter = {
  type: 'application/json',
  contentType: 'application/json',
  tag: 'json',
  format: (value) => JSON.stringify(value),
};

/**
 * RFC 9457. One object serves both media types: clients ignore members that they do not know (section 3.2). A problem
 * without a page has the type `about:blank`, which means no more than its status (section 4.2.1).
 */
export const problemJsonFormatter: Formatter = {
  type: 'application/problem+json',
  contentType: 'application/problem+json',
  tag: 'problem',
  errorsOnly: true,
  format: (value, message, notes) => {
    const body = value as ErrorBody;
    const { code: status, info_url: page } = body;
    const kind =
      page === undefined
        ? { type: 'about:blank', title: message.replace(/^\d+: /, '') }
        : { type: page, title: notes?.title };
    return JSON.stringify({ ...kind, status, ...body });
  },
};

/** RFC 9512. */
export const yamlFormatter: Formatter = {
  type: 'application/yaml',
  contentType: 'application/yaml',
  tag: 'yaml',
  // A block of lines cannot hold a first line of blanks: yaml writes " \n" as one and reads "\n" back.
  format: (value) => stringify(value, { aliasDuplicateObjects: false, blockQuote: false }),
};

/** For people with a browser. */
export const htmlFormatter: Formatter = {
  type: 'text/html',
  contentType: 'text/html; charset=utf-8',
  tag: 'html',
  headers: pageHeaders(),
  format: (value, title, notes) =>
    notes === undefined ? resourcePage(value, title) : problemPage(value as ErrorBody, notes),
};

/** In the order of the server's preference. */
export const builtInFormatters: readonly Formatter[] = [
  jsonFormatter,
  problemJsonFormatter,
  yamlFormatter,
  htmlFormatter,
];

/** The built-in formatters, with another page for people in place of the plain one. */
export function withHtmlPage(format: Formatter['format'], headers = pageHeaders()): readonly Formatter[] {
  const page = { ...htmlFormatter, format, headers };
  return builtInFormatters.map((formatter) => (formatter === htmlFormatter ? page : formatter));
}

/** The same, but the plain page for people links to the docs below it. */
export function withDocsLink(representations: Representations): Representations {
  return {
    ...representations,
    choose(accept) {
      const chosen = representations.choose(accept);
      return chosen === htmlFormatter ? htmlWithDocs : chosen;
    },
  };
}

const htmlWithDocs: Formatter = { ...htmlFormatter, format: (value, title) => resourcePage(value, title, true) };

export function createRepresentations(formatters: readonly Formatter[] = builtInFormatters): Representations {
  const normal = formatters.filter(({ errorsOnly }) => errorsOnly !== true);
  const [fallback] = normal;
  if (fallback === undefined)
    throw new TypeError('createRepresentations needs a formatter that is not for errors only');
  const types = normal.map(({ type }) => type);
  const select = remember((accept) => negotiate(accept, normal));
  const selectForError = remember((accept) => negotiateError(accept, formatters));
  return Object.freeze({
    types,
    errorTypes: formatters.map(({ type }) => type),
    choose(accept: string | undefined) {
      const chosen = select(accept);
      if (chosen === undefined)
        throw problem('not-acceptable', {
          detail: `This resource comes as ${types.join(', ')}.`,
        });
      return chosen;
    },
    chooseForError: (accept: string | undefined) => selectForError(accept) ?? fallback,
  });
}

type Selection = (accept: string | undefined) => Formatter | undefined;

const rememberedMax = 256;
const rememberedLengthMax = 512;

/** Of `Accept`; the cost of a longer one grows with its square, so everything is acceptable (RFC 9110 section 12.5.1). */
const acceptLengthMax = 1024;

/** Negotiation costs microseconds and clients repeat themselves, so results are kept, for headers of ordinary length. */
function remember(select: Selection): Selection {
  const remembered = new Map<string, Formatter>();
  return (sent = '') => {
    const accept = sent.length > acceptLengthMax ? '' : sent;
    const known = remembered.get(accept);
    if (known !== undefined) return known;
    const selected = select(accept);
    if (selected !== undefined && accept.length <= rememberedLengthMax) keep(accept, selected);
    return selected;
  };

  function keep(accept: string, selected: Formatter): void {
    const oldest = remembered.size < rememberedMax ? undefined : remembered.keys().next().value;
    if (oldest !== undefined) remembered.delete(oldest);
    remembered.set(accept, selected);
  }
}

function negotiate(accept: string | undefined, formatters: readonly Formatter[]): Formatter | undefined {
  const type = negotiatorOf(accept).mediaType(formatters.map((one) => one.type));
  return formatters.find((one) => one.type === type);
}

/** A client that lists an errors-only type beside the plain one wants its errors in it, in whatever order it lists them. */
function negotiateError(accept: string | undefined, formatters: readonly Formatter[]): Formatter | undefined {
  const chosen = negotiate(accept, formatters);
  if (chosen !== formatters[0]) return chosen;
  const listed = negotiatorOf(accept).mediaTypes();
  return formatters.find(({ errorsOnly, type }) => errorsOnly === true && listed.includes(type)) ?? chosen;
}

function negotiatorOf(accept: string | undefined): Negotiator {
  return new Negotiator({ headers: { accept: readableAccept(accept) } });
}

/**
 * `Accept` without the parameters that no formatter of ours distinguishes (`charset`, `version`), since negotiator takes
 * each for a different type. Drops what is no media range; with none left, everything is acceptable (RFC 9110 section
 * 12.5.1).
 */
function readableAccept(accept = ''): string {
  const ranges = accept.split(',').flatMap((part) => {
    const [range = '', ...parameters] = part.split(';').map((text) => text.trim().toLowerCase());
    if (!/^(?:\*\/\*|[\w!#$&^.+-]+\/(?:\*|[\w!#$&^.+-]+))$/.test(range)) return [];
    const quality = parameters.find((parameter) => /^q\s*=/.test(parameter))?.replace(/^q\s*=\s*/, '');
    if (quality === undefined) return [range];
    // Java writes `q=.2` and scripts write `q=0.33333`: outside the grammar, but clear.
    return /^(?:0?\.\d+|0\.?|1(?:\.0*)?)$/.test(quality) ? [`${range};q=${quality}`] : [];
  });
  return ranges.length === 0 ? '*/*' : ranges.join(',');
}
