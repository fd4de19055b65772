/** Reads the fields of a message by their numbers, and writes the ones that are not empty. */
import { type ProtobufField, protobufContent, protobufFields, protobufNumber } from '#foundation';

/** The fields of a message. Of a field that occurs several times, the last one counts, unless it is a list. */
export interface MessageView {
  /** Undefined if it is missing, or is a number. */
  readonly content: (field: number) => Buffer | undefined;
  /** `''` if it is missing. Throws a TypeError for bytes that are not UTF-8. */
  readonly text: (field: number) => string;
  /** 0 if it is missing, or is not a number. */
  readonly number: (field: number) => number;
  readonly list: (field: number) => readonly Buffer[];
  readonly view: (field: number) => MessageView | undefined;
  readonly views: (field: number) => readonly MessageView[];
}

/**
 * Throws a RangeError, here or when a message within it is viewed, for bytes that are not a message, and once there are
 * too many fields in all messages together: many small ones would block the process.
 */
export function viewMessage(message: Uint8Array, fieldsMax: number): MessageView {
  let left = fieldsMax;
  return viewOf(message, (bytes) => {
    const fields = protobufFields(bytes, left + 1);
    left -= fields.length;
    if (left < 0) throw new RangeError(`the message has more than ${fieldsMax} fields`);
    return fields;
  });
}

function viewOf(message: Uint8Array, read: (message: Uint8Array) => readonly ProtobufField[]): MessageView {
  const fields = read(message);
  const last = (tag: number) => fields.findLast((field) => field.tag === tag);
  const content = (field: number) => last(field * 8 + 2)?.content;
  const list = (field: number) => fields.flatMap(({ tag, content }) => (tag === field * 8 + 2 && content) || []);
  return {
    content,
    text: (field) => utf8.decode(content(field)),
    number: (field) => last(field * 8)?.number ?? 0,
    list,
    view(field) {
      const found = content(field);
      return found && viewOf(found, read);
    },
    views: (field) => list(field).map((one) => viewOf(one, read)),
  };
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Joins fields to a message. */
export function joinFields(...fields: readonly (readonly Buffer[])[]): Buffer {
  return Buffer.concat(fields.flat());
}

export function content(field: number, value: string | Uint8Array | undefined): readonly Buffer[] {
  return value === undefined || value.length === 0 ? [] : [protobufContent(field, value)];
}

/** Also writes an empty message, whose presence has a meaning. */
export function submessage(field: number, value: Uint8Array | undefined): readonly Buffer[] {
  return value === undefined ? [] : [protobufContent(field, value)];
}

export function number(field: number, value: number): readonly Buffer[] {
  return value === 0 ? [] : [protobufNumber(field, value)];
}

/** A `map<string, string>` is a list of messages with a key and a value. */
export function textMap(field: number, entries: readonly (readonly [key: string, value: string])[]): readonly Buffer[] {
  return entries.map(([key, value]) => protobufContent(field, joinFields(content(1, key), content(2, value))));
}

export function entriesOf(views: readonly MessageView[]): readonly (readonly [key: string, value: string])[] {
  return views.map((entry) => [entry.text(1), entry.text(2)] as const);
}
