/** Which representation a client gets: one choice by `Accept`, for normal and for error responses alike. */
import Negotiator from 'negotiator';
import { builtInFormatters, type Formatter } from './formatters.ts';
import { problem } from './problem.ts';

export interface Representations {
  /** The media types on offer for normal responses, in the server's order of preference. */
  readonly types: readonly string[];
  /** The same for error responses. */
  readonly errorTypes: readonly string[];
  /** Throws `not-acceptable` with the list of what there is. */
  readonly choose: (accept: string | undefined) => Formatter;
  /** Never refuses: an error that cannot be told in the client's terms is told in JSON (RFC 9457 section 3). */
  readonly chooseForError: (accept: string | undefined) => Formatter;
}

/** Negotiation costs microseconds and clients repeat themselves: answers are remembered, for headers of ordinary length. */
const rememberedMax = 256;
const rememberedLengthMax = 512;

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

function remember(select: Selection): Selection {
  const remembered = new Map<string, Formatter>();
  return (accept = '') => {
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
  const type = new Negotiator({
    headers: { accept: readableAccept(accept) },
  }).mediaType(formatters.map((one) => one.type));
  return formatters.find((one) => one.type === type);
}

/** A client that lists an errors-only type beside the plain one wants its errors in it, whichever stands first. */
function negotiateError(accept: string | undefined, formatters: readonly Formatter[]): Formatter | undefined {
  const chosen = negotiate(accept, formatters);
  if (chosen !== formatters[0]) return chosen;
  const asked = new Negotiator({
    headers: { accept: readableAccept(accept) },
  }).mediaTypes();
  return formatters.find(({ errorsOnly, type }) => errorsOnly === true && asked.includes(type)) ?? chosen;
}

/**
 * `Accept` without the parameters that no formatter of ours tells apart (`charset`, `version`), since negotiator takes
 * each as a different type. Ranges that are not media ranges are dropped; with none left, everything is acceptable
 * (RFC 9110 section 12.5.1).
 */
function readableAccept(accept = ''): string {
  const ranges = accept.split(',').flatMap((part) => {
    const [range = '', ...parameters] = part.split(';').map((text) => text.trim().toLowerCase());
    if (!/^(?:\*\/\*|[\w!#$&^.+-]+\/(?:\*|[\w!#$&^.+-]+))$/.test(range)) return [];
    const quality = parameters.find((parameter) => /^q\s*=/.test(parameter))?.replace(/^q\s*=\s*/, '');
    if (quality === undefined) return [range];
    // Java writes `q=.2` and scripts write `q=0.33333`: more than the grammar allows, and plain enough.
    return /^(?:0?\.\d+|0\.?|1(?:\.0*)?)$/.test(quality) ? [`${range};q=${quality}`] : [];
  });
  return ranges.length === 0 ? '*/*' : ranges.join(',');
}
