/** Says what became of an object, and what to do: in some lines for its status, and in one for its Event. */
import type { ConfigurationError, ObjectVerdict } from '#config';
import { formatSource, truncate } from '#foundation';

/** What an object says about itself in the cluster. */
export interface VerdictText {
  readonly isAccepted: boolean;
  /** One word, for programs. */
  readonly reason: 'Accepted' | 'Conflict' | 'Invalid';
  /** Each error on a line, with its remedy below. */
  readonly message: string;
  /** Of one line and at most 1,024 characters, which is the bound of the Events API. */
  readonly note: string;
}

export function verdictText({ state, errors, notices, consequence }: ObjectVerdict): VerdictText {
  if (state === 'accepted') {
    const summary = notices.length === 0 ? 'In use.' : 'In use, but it may not do what you expect.';
    return { isAccepted: true, reason: 'Accepted', message: messageOf(summary, notices), note: summary };
  }
  const meanwhile = consequence ?? 'its last valid version stays in use';
  const summary = `Not in use. Until it is fixed, ${meanwhile}.`;
  return {
    isAccepted: false,
    reason: errors.some(({ other }) => other !== undefined) ? 'Conflict' : 'Invalid',
    message: messageOf(summary, errors),
    note: noteOf(errors, meanwhile),
  };
}

/** A condition has at most 32,768 characters, which these bounds cannot reach. */
const errorsMax = 10;
const textMax = 500;

function messageOf(summary: string, faults: readonly ConfigurationError[]): string {
  const shown = faults.slice(0, errorsMax).map((fault) => {
    return `${truncate(statementOf(fault), textMax)}\n  ${truncate(inOneLine(fault.remedy), textMax)}`;
  });
  return [truncate(summary, textMax), ...shown, ...moreOf(faults, errorsMax)].join('\n');
}

const noteMax = 1_000;
const noteErrorsMax = 3;

function noteOf(errors: readonly ConfigurationError[], meanwhile: string): string {
  const shown = errors.slice(0, noteErrorsMax).map((error) => {
    const statement = truncate(statementOf(error), textMax / 2);
    return `${statement}${/[.?]$/.test(statement) ? '' : '.'} ${truncate(inOneLine(error.remedy), textMax / 2)}`;
  });
  const end = ` (until it is fixed, ${truncate(meanwhile, textMax / 2)})`;
  const text = inOneLine([...shown, ...moreOf(errors, noteErrorsMax)].join(' '));
  return `${truncate(text, noteMax - end.length)}${end}`;
}

/** `line 3, Mapping orders: prefix is missing`. What is no line of an annotation needs no place: it is in the object. */
function statementOf({ source, record, message, other }: ConfigurationError): string {
  const place = source.line === 0 ? '' : [`line ${source.line}`, ...(record ? [record] : [])].join(', ');
  const second = other === undefined ? '' : ` (${formatSource(other)})`;
  return inOneLine(`${place && `${place}: `}${message}${second}`);
}

function moreOf(faults: readonly ConfigurationError[], shownMax: number): readonly string[] {
  const more = faults.length - shownMax;
  return more <= 0 ? [] : [`And ${more} more: frontdesk check --kubernetes lists all of them.`];
}

function inOneLine(text: string): string {
  return text.replace(/\s*\n\s*/g, ' ');
}
