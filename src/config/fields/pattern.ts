/** Regular expressions in RE2 syntax, matched in linear time so that no request can make one slow. */
import { type Matcher, RE2JS } from 're2js';
import { messageOf } from '#foundation';
import type { Fault } from '../errors.ts';
import { mayHoldSecret, quote } from '../quote.ts';

export interface Pattern {
  /** Reports whether the pattern matches the whole text. */
  readonly matches: (text: string) => boolean;
  /**
   * Replaces every match like Envoy's regex_rewrite: `\0` is the match, `\1` to `\9` are its groups, and `\\` is
   * a backslash. Replaces at most 100 matches.
   */
  readonly replace: (text: string, substitution: string) => string;
}

type CompiledPattern = { readonly ok: true; readonly pattern: Pattern } | { readonly ok: false; readonly fault: Fault };

const lengthMax = 1000;

/** Counts RE2 instructions, which bound the steps per character. The same as Emissary's default `regex_max_size`. */
const programSizeMax = 200;

/** Each search for the next match may read to the end of the text. Bounding their number keeps the total linear. */
const replacementsMax = 100;

export function compilePattern(text: string): CompiledPattern {
  if (text.length > lengthMax) return faulty(tooLarge(text, `has more than ${lengthMax} characters`));
  const compiled = compiledOrFault(text);
  if (!(compiled instanceof RE2JS)) return faulty(compiled);
  if (compiled.programSize() > programSizeMax) {
    return faulty(tooLarge(text, `is too large: ${compiled.programSize()} instructions of at most ${programSizeMax}`));
  }
  return { ok: true, pattern: patternOf(compiled) };
}

/** Like `compilePattern`, for a pattern that compiles. The result ignores case, and may therefore be larger. */
export function compileIgnoringCase(text: string): Pattern {
  return patternOf(RE2JS.compile(text, RE2JS.CASE_INSENSITIVE));
}

/** Returns the fault of a pattern, or undefined when it is valid. */
export function patternFault(text: string): Fault | undefined {
  const compiled = compilePattern(text);
  return compiled.ok ? undefined : compiled.fault;
}

/** Like `patternFault`, but the message omits the pattern, which may be a secret. */
export function secretPatternFault(text: string): Fault | undefined {
  const fault = patternFault(text);
  return fault && { message: 'is not a valid regular expression', remedy: fault.remedy };
}

/** Returns the fault of a substitution for the pattern `text`, or undefined when it is valid. */
export function substitutionFault(substitution: string, text: string): Fault | undefined {
  const compiled = compiledOrFault(text);
  if (!(compiled instanceof RE2JS)) return undefined;
  const groups = compiled.groupCount();
  const escapes = substitution.match(/\\./gs) ?? [];
  const wrong = escapes.find((used) => !(used === '\\\\' || (/\d/.test(used) && Number(used[1]) <= groups)));
  if (wrong !== undefined) {
    return {
      message: `${quote(substitution)} contains ${wrong}, but the pattern ${quote(text)} has ${groupsInWords(groups)}`,
      remedy:
        'Put parentheses around the part to insert: \\1 is the first group, \\0 the whole match, \\\\ a backslash.',
    };
  }
  return /(?<!\\)(?:\\\\)*\\$/.test(substitution)
    ? { message: `${quote(substitution)} ends in a backslash`, remedy: 'Write a backslash as \\\\.' }
    : undefined;
}

function groupsInWords(groups: number): string {
  if (groups === 0) return 'no groups';
  return groups === 1 ? 'one group' : `${groups} groups`;
}

function patternOf(compiled: RE2JS): Pattern {
  return Object.freeze({
    matches: (text: string) => compiled.testExact(text),
    replace: (text: string, substitution: string) => replaceAll(compiled.matcher(text), text, substitution),
  });
}

/**
 * Skips an empty match directly after another match, like RE2's GlobalReplace, so that `.*` matches a text only once.
 */
function replaceAll(matcher: Matcher, text: string, substitution: string): string {
  let replaced = '';
  let end = -1;
  for (let count = 0; count < replacementsMax && matcher.find(); count++) {
    const isEmptyAtEnd = matcher.start() === end && matcher.end() === end;
    if (isEmptyAtEnd) continue;
    replaced += text.slice(Math.max(0, end), matcher.start()) + expand(matcher, substitution);
    end = matcher.end();
  }
  return replaced + text.slice(Math.max(0, end));
}

function expand(matcher: Matcher, substitution: string): string {
  return substitution.replace(/\\(.)/gs, (_, escaped: string) =>
    escaped === '\\' ? escaped : (matcher.group(Number(escaped)) ?? ''),
  );
}

function compiledOrFault(text: string): RE2JS | Fault {
  try {
    return RE2JS.compile(text);
  } catch (error) {
    return syntaxFault(text, messageOf(error));
  }
}

/** Recognises common syntax that other engines support and RE2 does not. */
function syntaxFault(text: string, message: string): Fault {
  const foreign = foreignSyntax.find(({ form }) => form.test(text));
  if (foreign !== undefined) {
    return {
      message: `${quote(text)} uses ${foreign.name}, which cannot be matched in linear time`,
      remedy: foreign.remedy,
    };
  }
  const reason = message.replace(/^error parsing regexp: /, '');
  return {
    // RE2 quotes a part of the pattern after the colon.
    message: `${quote(text)} is not a regular expression: ${mayHoldSecret(text) ? reason.replace(/:.*/s, '') : reason}`,
    remedy: 'Write it in RE2 syntax: https://github.com/google/re2/wiki/Syntax',
  };
}

const foreignSyntax = [
  {
    form: /\(\?<?[=!]/,
    name: 'a look-around',
    remedy: 'Match only what must be present, or add a mapping with a higher precedence for the paths to exclude.',
  },
  {
    form: /\\[1-9k]/,
    name: 'a back-reference',
    remedy: 'Repeat the expression of the group.',
  },
  {
    form: /\(\?>|[*+?}]\+/,
    name: 'an atomic group or a possessive quantifier',
    remedy: 'Remove it: matching never backtracks.',
  },
] as const;

function tooLarge(text: string, message: string): Fault {
  return {
    message: `${quote(text)} ${message}`,
    remedy: 'Write a shorter one: split it into several mappings, or use smaller counts in {n,m}.',
  };
}

function faulty(fault: Fault): CompiledPattern {
  return { ok: false, fault };
}
