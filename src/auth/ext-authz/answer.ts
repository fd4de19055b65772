/** CheckResponse: what a proxy should do with a request (envoy/service/auth/v3/external_auth.proto). */
import { textFromBytes } from '#foundation';
import { decodeHeaderValue } from './check.ts';
import { content, joinFields, type MessageView, number, submessage, viewMessage } from './fields.ts';

export type CheckAnswer = OkAnswer | DeniedAnswer | { readonly kind: 'error'; readonly reason: string };

/** The request may pass, with these changes. Names of headers are in lower case. */
export interface OkAnswer {
  readonly kind: 'ok';
  readonly headers: readonly HeaderEdit[];
  readonly headersToRemove: readonly string[];
  /** For the response to the client. */
  readonly responseHeaders: readonly HeaderEdit[];
  /** Whether it changes the query. */
  readonly editsQuery: boolean;
}

/** The response for the client. */
export interface DeniedAnswer {
  readonly kind: 'denied';
  readonly status: number;
  readonly headers: readonly HeaderEdit[];
  readonly body: Uint8Array;
}

export interface HeaderEdit {
  readonly name: string;
  /** With one character for each byte, as Node shows it. */
  readonly value: string;
  /** How the value relates to values that the header already has. */
  readonly action: 'set' | 'append' | 'set-if-absent' | 'set-if-present';
}

/** Ample: more headers would exceed the bounds of most servers. */
const fieldsMax = 4096;

/** The numbers of HeaderAppendAction. `append` also needs the older flag, because its number is the default. */
const appendActions: Readonly<Record<HeaderEdit['action'], number>> = {
  append: 0,
  'set-if-absent': 1,
  set: 2,
  'set-if-present': 3,
};

/** `code`: the gRPC status of a denial, such as 16 for 401. */
export function encodeCheckAnswer(answer: OkAnswer | DeniedAnswer, code = 0): Buffer {
  const status = submessage(1, joinFields(number(1, code)));
  if (answer.kind === 'denied') return joinFields(status, submessage(2, encodeDenied(answer)));
  const { headers, headersToRemove, responseHeaders } = answer;
  const ok = joinFields(
    encodeEdits(2, headers),
    headersToRemove.flatMap((name) => content(5, name)),
    encodeEdits(6, responseHeaders),
  );
  return joinFields(status, submessage(3, ok));
}

function encodeDenied({ status, headers, body }: DeniedAnswer): Buffer {
  return joinFields(submessage(1, joinFields(number(1, status))), encodeEdits(2, headers), content(3, body));
}

function encodeEdits(field: number, edits: readonly HeaderEdit[]): readonly Buffer[] {
  return edits.flatMap(({ name, value, action }) => {
    const header = joinFields(content(1, name), content(2, textFromBytes(value)));
    const append = action === 'append' ? submessage(2, joinFields(number(1, 1))) : [];
    return submessage(field, joinFields(submessage(1, header), append, number(3, appendActions[action])));
  });
}

/**
 * Ignores unknown fields. Throws an Error for bytes that are not a CheckResponse, and for one that says neither whether
 * the request may pass nor what the client gets.
 */
export function decodeCheckAnswer(message: Uint8Array): CheckAnswer {
  const answer = viewMessage(message, fieldsMax);
  const [status, denied, ok] = [answer.view(1), answer.view(2), answer.view(3)];
  const code = status?.number(1) ?? 0;
  if (answer.content(5) !== undefined) return { kind: 'error', reason: 'it responded that it cannot decide' };
  if (code !== 0) return decodeDenied(denied);
  if (denied !== undefined) throw new Error('its response is a denial with the status OK');
  // Envoy would allow the request.
  if (status === undefined && ok === undefined) throw new Error('its response has no status');
  return {
    kind: 'ok',
    headers: decodeEdits(ok?.views(2)),
    headersToRemove: ok?.list(5).map((name) => name.toString('latin1').toLowerCase()) ?? [],
    responseHeaders: decodeEdits(ok?.views(6)),
    editsQuery: ok !== undefined && (ok.content(7) ?? ok.content(8)) !== undefined,
  };
}

function decodeDenied(denied: MessageView | undefined): DeniedAnswer {
  return {
    kind: 'denied',
    status: denied?.view(1)?.number(1) || 403,
    headers: decodeEdits(denied?.views(2)),
    body: denied?.content(3) ?? new Uint8Array(),
  };
}

/** Decodes HeaderValueOptions. */
function decodeEdits(options: readonly MessageView[] = []): readonly HeaderEdit[] {
  return options.map((option) => {
    const header = option.view(1);
    const [name, value] = header === undefined ? ['', ''] : decodeHeaderValue(header);
    return { name: name.toLowerCase(), value, action: actionOf(option.view(2)?.number(1), option.number(3)) };
  });
}

/**
 * Without an action, the value replaces those of the client, as Envoy's documentation of ext_authz says. Services that
 * append set the older flag.
 */
function actionOf(append: number | undefined, action: number): HeaderEdit['action'] {
  if (append !== undefined) return append === 0 ? 'set' : 'append';
  if (action === appendActions['set-if-absent']) return 'set-if-absent';
  return action === appendActions['set-if-present'] ? 'set-if-present' : 'set';
}
