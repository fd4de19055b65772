/** Splits protobuf messages into fields without decoding them, to reject those with too many. */
import protobuf from 'protobufjs/minimal.js';
import { requestBounds } from '#config';

/** Shorter messages cannot have enough fields to block the process. */
const uncheckedBytes = 16_384;

/** Twice as many as a message within `requestBounds` has. */
const fieldsMax = 2 * requestBounds.descriptors;

/**
 * Throws for a request with too many fields before the library decodes them. Half a million descriptors fit into the
 * largest message. They would block the process for half a second and take 150 MB.
 */
export function checkFieldCount(request: Buffer): void {
  if (request.length <= uncheckedBytes) return;
  for (const [tag, content] of checkedFields(request, [0x0a, descriptorTag, 0x18]))
    if (tag === descriptorTag && content !== undefined) checkedFields(content, [0x0a, 0x12, 0x1a]);
}

const descriptorTag = 0x12;

/** `tags` are those of the fields 1 to 3. The library ignores the type in a tag, so another one would mislead us. */
function checkedFields(message: Uint8Array, tags: readonly number[]): readonly Field[] {
  const fields = fieldsOf(message, fieldsMax + 1);
  if (fields.length > fieldsMax || fields.some(([tag]) => tag < 0x20 && !tags.includes(tag)))
    throw new RangeError('the message has too many fields, or one of the wrong type');
  return fields;
}

/** A tag contains the number and the type of the field. `content` is undefined for numbers. */
type Field = readonly [tag: number, content: Uint8Array | undefined];

/** Splits a protobuf message into its first `max` fields. Throws if they are malformed. */
export function fieldsOf(message: Uint8Array, max = Number.POSITIVE_INFINITY): readonly Field[] {
  const reader = protobuf.Reader.create(message);
  const fields: Field[] = [];
  while (reader.pos < reader.len && fields.length < max) {
    const tag = reader.uint32();
    const hasLength = tag % 8 === 2;
    fields.push([tag, hasLength ? reader.bytes() : undefined]);
    if (!hasLength) reader.skipType(tag % 8);
  }
  return fields;
}
